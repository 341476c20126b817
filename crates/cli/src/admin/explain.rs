//! Why a client gets what it gets, as JSON; in full for a host on demand.

use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri};
use serde::Serialize;
use trunkline::explain::{Asker, Connected, ExplainError, Explained, HostOnStream};
use trunkline::{Name, Resource, Server, TypeUrl};
use trunkline_core::database::{HostCandidate, HostForm, MatchedHost};
use trunkline_core::hosts::Domain;
use trunkline_core::params::{Constraints, Params};
use trunkline_proto::text;

use super::Shared;
use super::body::{self, Form};
use super::error::Refusal;
use super::query::Query;
use super::variant::{self, Parameter, Stream};
use super::write;
use crate::kinds;

/// The whole explanation.
#[derive(Debug, Serialize)]
struct Shown {
    asked: String,
    host: String,
    virtual_host: Option<VirtualHost>,
    given: Option<Whole>,
    considered: Vec<Other>,
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
struct Whole {
    name: String,
    version: String,
    domains: Vec<String>,
    form: &'static str,
}

#[derive(Debug, Serialize)]
struct Other {
    domain: String,
    name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<String>,
    seen: bool,
}

#[derive(Debug, Serialize)]
struct Base {
    rules: Vec<String>,
    sets: Vec<String>,
    by_sets: Vec<String>,
    by_name: bool,
}

#[derive(Debug, Serialize)]
struct Client {
    has_route: bool,
    streams: Vec<OnStream>,
}

#[derive(Debug, Serialize)]
struct OnStream {
    #[serde(flatten)]
    stream: Stream,
    is_full: bool,
}

/// `GET /api/v1/explain?node=...` or `?params=...`, with `route` and `host`, or
/// with `type` and `name`.
pub(super) async fn of_client(State(admin): State<Shared>, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["node", "params", "route", "host", "type", "name"])?;
    let question = Question::read(&query)?;
    let (node, params) = (query.one("node")?, query.one("params")?);
    let (node, params) = match (node, params) {
        (Some(node), None) => (node.to_owned(), None),
        (None, Some(params)) => {
            let params = params.parse::<Params>();
            let bad = |error| Refusal::bad(format!("params: {error}"));
            (String::new(), Some(params.map_err(bad)?))
        }
        _ => {
            return Err(Refusal::bad(
                "give either `node`, the id of a client that is connected, or `params`",
            ));
        }
    };
    super::aside(move || {
        let asker = params.as_ref().map(Asker::Params);
        question.answer(&admin.server, asker.unwrap_or(Asker::Client(&node)))
    })
    .await?
}

/// `POST /api/v1/explain`, with a node in the body.
pub(super) async fn of_node(
    State(admin): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["route", "host", "type", "name"])?;
    let question = Question::read(&query)?;
    let body = write::body(&admin, body)?;
    let Form::Text(format) = write::form(&headers) else {
        return Err(Refusal::bad("a node is asked about in YAML or JSON"));
    };
    super::aside(move || {
        let text = std::str::from_utf8(&body);
        let text = text.map_err(|_| Refusal::bad("the body is not text; send it in UTF-8"))?;
        let node = text::read_node(format, "body", text, &text::Options::default());
        let node = node.map_err(|errors| {
            let details = errors.into_iter().map(body::detail).collect();
            Refusal::invalid("this is no node", details)
        })?;
        question.answer(&admin.server, Asker::Node(&node))
    })
    .await?
}

/// A question about a host on demand, or about a resource.
enum Question {
    Host { route: String, host: String },
    Resource { type_url: TypeUrl, name: Name },
}

impl Question {
    fn read(query: &Query) -> Result<Self, Refusal> {
        let given = |key| Ok(query.one(key)?.is_some());
        let host: bool = given("route")? || given("host")?;
        match host || !(given("type")? || given("name")?) {
            true => Ok(Self::Host {
                route: needed(query, "route")?,
                host: needed(query, "host")?,
            }),
            false => Ok(Self::Resource {
                type_url: kinds::parse(&needed(query, "type")?).map_err(Refusal::bad)?,
                name: Name::new(&needed(query, "name")?),
            }),
        }
    }

    fn answer(&self, server: &Server, asker: Asker<'_>) -> Result<Response, Refusal> {
        match self {
            Self::Host { route, host } => {
                let explained = server.explain_host(asker, route, host);
                Ok(axum::Json(shown(explained.map_err(refused)?)).into_response())
            }
            Self::Resource { type_url, name } => {
                let explained = server.explain_resource(asker, type_url, name);
                let explained = explained.map_err(refused)?;
                Ok(axum::Json(variant::shown(explained)).into_response())
            }
        }
    }
}

fn needed(query: &Query, key: &str) -> Result<String, Refusal> {
    let value = query.one(key)?.filter(|value| !value.is_empty());
    let missing = || Refusal::bad(format!("give a parameter `{key}`"));
    value.map(str::to_owned).ok_or_else(missing)
}

fn refused(error: ExplainError) -> Refusal {
    Refusal::new(status(&error), error)
}

fn status(error: &ExplainError) -> StatusCode {
    match error {
        ExplainError::NotReady => StatusCode::SERVICE_UNAVAILABLE,
        ExplainError::NoHost { .. } => StatusCode::BAD_REQUEST,
        ExplainError::NoVhds { .. } => StatusCode::CONFLICT,
        _ => StatusCode::NOT_FOUND,
    }
}

fn shown(explained: Explained) -> Shown {
    let because = because(&explained);
    let found = explained.host.matched;
    let given = found.as_ref().and_then(|found| found.answer.clone());
    let texts = |list: Vec<Box<str>>| list.into_iter().map(String::from).collect();
    Shown {
        asked: explained.asked.to_string(),
        host: explained.host.normalized,
        virtual_host: found.map(|found| virtual_host(found, because)),
        given: given.map(|(given, form)| whole(&given, form)),
        considered: explained.host.candidates.into_iter().map(other).collect(),
        parameters: explained.params.into_iter().map(Parameter::new).collect(),
        base: Base {
            rules: explained.base.rules,
            sets: texts(explained.base.sets),
            by_sets: texts(explained.base.by_sets),
            by_name: explained.base.by_name,
        },
        client: explained.client.map(client),
    }
}

fn virtual_host(found: MatchedHost, because: Option<String>) -> VirtualHost {
    let host = &found.host;
    VirtualHost {
        name: host.name.to_string(),
        version: host.version.to_string(),
        domain: found.domain,
        constraints: host.constraints.as_ref().map(Constraints::to_string),
        base_sets: host
            .facts()
            .base_sets()
            .iter()
            .map(|s| s.to_string())
            .collect(),
        because,
    }
}

/// Why a virtual host is not sent as it is.
fn because(explained: &Explained) -> Option<String> {
    let found = explained.host.matched.as_ref()?;
    if found.answer.is_none() {
        return Some("the host is a pattern, or nothing that a domain can be".to_owned());
    }
    let crowded = found.hiding_wildcard.as_deref()?;
    Some(match (&explained.hidden, Domain::of(crowded)) {
        (Some(hidden), _) => {
            format!("{crowded} would hide {} of {}", hidden.domain, hidden.name)
        }
        (None, Domain::Suffix(suffix)) if suffix.starts_with('.') => {
            format!("{crowded} would hide domains of other virtual hosts")
        }
        (None, Domain::Any) => format!("{crowded} would hide every other virtual host"),
        (None, _) => {
            format!("a wildcard like {crowded} is never handed out: it may hide something")
        }
    })
}

fn whole(given: &Resource, form: HostForm) -> Whole {
    let domains = given.facts().domains.iter();
    Whole {
        name: given.name.to_string(),
        version: given.version.to_string(),
        domains: domains.map(|domain| domain.to_string()).collect(),
        form: match form {
            HostForm::Whole => "whole",
            HostForm::WithoutWildcards => "without_wildcards",
            HostForm::Narrowed => "narrowed",
        },
    }
}

fn other(one: HostCandidate) -> Other {
    let constraints = one.variants.iter().flatten();
    Other {
        constraints: constraints.map(Constraints::to_string).collect(),
        domain: one.domain,
        name: one.name.to_string(),
        seen: one.is_seen,
    }
}

fn client(client: Connected) -> Client {
    Client {
        has_route: client.has_route,
        streams: client.streams.into_iter().map(stream).collect(),
    }
}

fn stream(host: HostOnStream) -> OnStream {
    OnStream {
        stream: Stream::new(host.on),
        is_full: host.is_full,
    }
}
