//! Why a client gets what it gets, as JSON; in full for a host on demand.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, Uri};
use serde::Serialize;
use trunkline::checked::Form;
use trunkline::explain::{
    Asker, BaseExplained, Connected, ExplainError, Explained, Hidden, HostOnStream,
};
use trunkline::{Connection, Name, Resource, Server, TypeUrl};
use trunkline_core::database::{HostCandidate, HostForm, MatchedHost};
use trunkline_core::hosts::Domain;
use trunkline_core::params::{Constraints, Params};
use trunkline_proto::discovery::Node;
use trunkline_proto::text::{self, Format};

use super::Shared;
use super::asking::Asking;
use super::error::{Detail, Refusal};
use super::query::Query;
use super::variant::{self, Parameter, Stream};
use super::{bodies, write};
use crate::kinds;

/// Bytes of a body with a node: a bootstrap of Envoy has some kilobytes. Who may
/// only read may ask, so that it has to be small.
pub(crate) const NODE_BYTES: usize = 1 << 20;
/// Bytes of memory that reading a node may take.
pub(crate) const NODE_MEMORY: u64 = 64 << 20;

/// The whole explanation.
#[derive(Debug, Serialize)]
struct Shown {
    asked: String,
    host: String,
    virtual_host: Option<VirtualHost>,
    given: Option<SentHost>,
    considered: Vec<Candidate>,
    parameters: Vec<Parameter>,
    base: Base,
    client: Option<Client>,
}

/// The virtual host, as its author wrote it.
#[derive(Debug, Serialize)]
struct VirtualHost {
    name: String,
    version: String,
    /// The domain that matches; nothing if only its name does.
    domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    base_sets: Vec<String>,
    /// Why it is not sent as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

/// The virtual host that the client is sent.
#[derive(Debug, Serialize)]
struct SentHost {
    name: String,
    version: String,
    domains: Vec<String>,
    form: &'static str,
}

/// A domain that matches the host, with its virtual host.
#[derive(Debug, Serialize)]
struct Candidate {
    domain: String,
    name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<String>,
    /// Whether the client may see one of its variants.
    seen: bool,
}

/// The base subscriptions of the client, and whether the host is among them.
#[derive(Debug, Serialize)]
struct Base {
    rules: Vec<String>,
    sets: Vec<String>,
    by_sets: Vec<String>,
    by_name: bool,
}

/// A client that is connected.
#[derive(Debug, Serialize)]
struct Client {
    has_route: bool,
    streams: Vec<OnStream>,
}

/// The state of the host on a stream.
#[derive(Debug, Serialize)]
struct OnStream {
    #[serde(flatten)]
    stream: Stream,
    /// Whether the stream has as many unbounded hosts as it may.
    is_full: bool,
}

/// `GET /api/v1/explain`, with `node` or `params`, and `route` and `host` or
/// `type` and `name`: explains what a connected client gets, or what a client
/// with these parameters would get.
pub(super) async fn explain_client(
    State(admin): State<Shared>,
    asking: Asking,
    uri: Uri,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["node", "params", "route", "host", "type", "name"])?;
    let question = Question::read(&query)?;
    let subject = Subject::read(&query)?;
    let answer = move || question.answer(&admin.server, subject.as_asker());
    asking.run(answer).await?
}

/// The client that a question without a body is about.
enum Subject {
    /// A client that is connected, by the id of its node.
    Connected(String),
    /// Any client with these parameters.
    Params(Params),
}

impl Subject {
    /// Reads the parameter `node` or `params`.
    ///
    /// # Errors
    /// Both are given, or neither, or the parameters cannot be parsed.
    fn read(query: &Query) -> Result<Self, Refusal> {
        match (query.one("node")?, query.one("params")?) {
            (Some(node), None) => Ok(Self::Connected(node.to_owned())),
            (None, Some(params)) => {
                let invalid_params = |error| Refusal::bad(format!("params: {error}"));
                params.parse().map(Self::Params).map_err(invalid_params)
            }
            _ => Err(Refusal::bad(
                "give either `node`, the id of a client that is connected, or `params`",
            )),
        }
    }

    /// Returns the client in the type by which the library is asked about one.
    fn as_asker(&self) -> Asker<'_> {
        match self {
            Self::Connected(node) => Asker::Client(node),
            Self::Params(params) => Asker::Params(params),
        }
    }
}

/// `POST /api/v1/explain`, with a node in the body: explains what a client with
/// this node would get. It need not be connected.
pub(super) async fn explain_node(
    State(admin): State<Shared>,
    Extension(connection): Extension<Connection>,
    asking: Asking,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["route", "host", "type", "name"])?;
    let question = Question::read(&query)?;
    let Form::Text(format) = write::read_body_form(&headers) else {
        return Err(Refusal::bad("a node is asked about in YAML or JSON"));
    };
    let body = bodies::read(&admin, &connection, body, NODE_BYTES.min(admin.body_limit)).await?;

    let answer = move || {
        let node = read_node(format, &body.bytes)?;
        question.answer(&admin.server, Asker::Node(&node))
    };
    asking.run(answer).await?
}

/// Reads a node from a body, which is the node itself or a bootstrap with it.
///
/// # Errors
/// The body is not UTF-8, or has no node in it; all mistakes are details.
fn read_node(format: Format, body: &[u8]) -> Result<Node, Refusal> {
    let text = std::str::from_utf8(body);
    let text = text.map_err(|_| Refusal::bad("the body is not text; send it in UTF-8"))?;
    let limits = text::Limits {
        bytes: NODE_BYTES,
        memory: NODE_MEMORY,
        ..text::Limits::default()
    };
    let options = text::Options {
        limits,
        ..text::Options::default()
    };
    let node = text::read_node(format, "body", text, &options);
    node.map_err(|errors| {
        let details = errors.into_iter().map(Detail::from).collect();
        Refusal::invalid("this is no node", details)
    })
}

/// A question about a host on demand, or about a resource.
enum Question {
    Host { route: String, host: String },
    Resource { type_url: TypeUrl, name: Name },
}

impl Question {
    /// Reads the parameters `route` and `host` if one of them is given, and
    /// else `type` and `name`.
    ///
    /// # Errors
    /// The other of the two is missing. If all four are, the error asks for
    /// `route`.
    fn read(query: &Query) -> Result<Self, Refusal> {
        let has = |key| Ok::<bool, Refusal>(query.one(key)?.is_some());
        let is_of_host = has("route")? || has("host")?;
        let is_of_resource = !is_of_host && (has("type")? || has("name")?);

        if is_of_resource {
            return Ok(Self::Resource {
                type_url: kinds::parse(&read_required(query, "type")?).map_err(Refusal::bad)?,
                name: Name::new(&read_required(query, "name")?),
            });
        }
        Ok(Self::Host {
            route: read_required(query, "route")?,
            host: read_required(query, "host")?,
        })
    }

    /// Responds with the explanation for a client, as JSON.
    fn answer(&self, server: &Server, asker: Asker<'_>) -> Result<Response, Refusal> {
        match self {
            Self::Host { route, host } => {
                let explanation = server.explain_host(asker, route, host);
                let explanation = explanation.map_err(refusal)?;
                Ok(axum::Json(show_explanation(explanation)).into_response())
            }
            Self::Resource { type_url, name } => {
                let explanation = server.explain_resource(asker, type_url, name);
                let explanation = explanation.map_err(refusal)?;
                Ok(axum::Json(variant::show_explanation(explanation)).into_response())
            }
        }
    }
}

/// Returns the value of a parameter that must be given once, and not be empty.
fn read_required(query: &Query, key: &str) -> Result<String, Refusal> {
    let value = query.one(key)?.filter(|value| !value.is_empty());
    let missing = || Refusal::bad(format!("give a parameter `{key}`"));
    value.map(str::to_owned).ok_or_else(missing)
}

/// Makes the error response to a question that cannot be answered. Most errors
/// mean that something does not exist.
fn refusal(error: ExplainError) -> Refusal {
    let status = match &error {
        ExplainError::NotReady => StatusCode::SERVICE_UNAVAILABLE,
        ExplainError::NoHost { .. } => StatusCode::BAD_REQUEST,
        ExplainError::NoVhds { .. } => StatusCode::CONFLICT,
        _ => StatusCode::NOT_FOUND,
    };
    Refusal::new(status, error)
}

/// Shows the explanation of a host. `virtual_host` is missing if none matches
/// the host, and `client` if the question is not about a connected client.
fn show_explanation(explanation: Explained) -> Shown {
    let form_reason = reason_for_form(&explanation);
    let matching_host = explanation.host.matched;
    let answer = matching_host
        .as_ref()
        .and_then(|matching_host| matching_host.answer.clone());

    let candidates = explanation.host.candidates.into_iter();
    Shown {
        asked: explanation.asked.to_string(),
        host: explanation.host.normalized,
        virtual_host: matching_host
            .map(|matching_host| show_virtual_host(matching_host, form_reason)),
        given: answer.map(|(host, form)| show_sent_host(&host, form)),
        considered: candidates.map(show_candidate).collect(),
        parameters: explanation.params.into_iter().map(Parameter::new).collect(),
        base: show_base(explanation.base),
        client: explanation.client.map(show_client),
    }
}

/// Shows the base subscriptions of a client, and why the host is among them.
fn show_base(base: BaseExplained) -> Base {
    let texts = |list: Vec<Box<str>>| list.into_iter().map(String::from).collect();
    Base {
        rules: base.rules,
        sets: texts(base.sets),
        by_sets: texts(base.by_sets),
        by_name: base.by_name,
    }
}

/// Shows the virtual host that matches the host. `because` says why the client
/// is not sent the resource unchanged.
fn show_virtual_host(matching_host: MatchedHost, because: Option<String>) -> VirtualHost {
    let host = &matching_host.host;
    let base_sets = host.facts().base_sets().iter();
    VirtualHost {
        name: host.name.to_string(),
        version: host.version.to_string(),
        domain: matching_host.domain,
        constraints: host.constraints.as_ref().map(Constraints::to_string),
        base_sets: base_sets.map(|set| set.to_string()).collect(),
        because,
    }
}

/// Returns why the client is not sent the matching virtual host unchanged: the
/// host cannot be a domain, so it gets no virtual host at all; or a wildcard
/// among the domains would hide domains of other virtual hosts. Returns `None`
/// if the client is sent the resource unchanged, or no virtual host matches.
fn reason_for_form(explanation: &Explained) -> Option<String> {
    let matching_host = explanation.host.matched.as_ref()?;
    if matching_host.answer.is_none() {
        return Some("the host is a pattern, or nothing that a domain can be".to_owned());
    }

    let wildcard = matching_host.hiding_wildcard.as_deref()?;
    if let Some(hidden_domain) = &explanation.hidden {
        let Hidden { domain, name } = hidden_domain;
        return Some(format!("{wildcard} would hide {domain} of {name}"));
    }
    Some(match Domain::of(wildcard) {
        Domain::Suffix(suffix) if suffix.starts_with('.') => {
            format!("{wildcard} would hide domains of other virtual hosts")
        }
        Domain::Any => format!("{wildcard} would hide every other virtual host"),
        _ => format!("a wildcard like {wildcard} is never handed out: it may hide something"),
    })
}

/// Shows the virtual host that the client is sent, with the domains of the
/// resource in this form.
fn show_sent_host(host: &Resource, form: HostForm) -> SentHost {
    let domains = host.facts().domains.iter();
    SentHost {
        name: host.name.to_string(),
        version: host.version.to_string(),
        domains: domains.map(|domain| domain.to_string()).collect(),
        form: match form {
            HostForm::Whole => "whole",
            HostForm::WithoutWildcards => "without_wildcards",
            HostForm::Narrowed => "narrowed",
        },
    }
}

/// Shows a domain that matches, with the constraints of all its variants.
fn show_candidate(host: HostCandidate) -> Candidate {
    let constraints = host.variants.iter().flatten();
    Candidate {
        constraints: constraints.map(Constraints::to_string).collect(),
        domain: host.domain,
        name: host.name.to_string(),
        seen: host.is_seen,
    }
}

/// Shows a connected client with its streams.
fn show_client(client: Connected) -> Client {
    Client {
        has_route: client.has_route,
        streams: client
            .streams
            .into_iter()
            .map(show_host_on_stream)
            .collect(),
    }
}

/// Converts the state of a host on a stream to its form in the answer.
fn show_host_on_stream(host: HostOnStream) -> OnStream {
    OnStream {
        stream: Stream::new(host.on),
        is_full: host.is_full,
    }
}
