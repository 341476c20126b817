//! Why a client gets what it gets for a host, as JSON.

use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri};
use serde::Serialize;
use trunkline::explain::{Connected, ExplainError, Explained, HostOnStream};
use trunkline::{Resource, Version};
use trunkline_core::database::{Considered, Found, Given};
use trunkline_core::hosts::Domain;
use trunkline_core::message::Mode;
use trunkline_core::params::Constraints;
use trunkline_core::session::NameState;
use trunkline_proto::{redact, text};

use super::Shared;
use super::error::Refusal;
use super::given::{self, Form};
use super::query::Query;
use super::write;

/// All that there is to say.
#[derive(Debug, Serialize)]
struct Shown {
    asked: String,
    host: String,
    virtual_host: Option<VirtualHost>,
    given: Option<Whole>,
    considered: Vec<Other>,
    base: Base,
    client: Option<Client>,
}

/// The virtual host, as its author wrote it.
#[derive(Debug, Serialize)]
struct VirtualHost {
    name: String,
    version: String,
    /// By which domain it was found; nothing if it is only called so.
    domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    base_sets: Vec<String>,
    /// Why it is not given as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

/// What the client is given.
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
    streams: Vec<Stream>,
}

#[derive(Debug, Serialize)]
struct Stream {
    stream: u64,
    protocol: &'static str,
    aggregated: bool,
    may_see: bool,
    is_full: bool,
    /// How the host stands that it asks for; nothing if it does not.
    status: Option<&'static str>,
    holds: Option<Held>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Held {
    name: String,
    version: String,
}

/// `GET /api/v1/explain?node=...&route=...&host=...`
pub(super) async fn of_client(State(admin): State<Shared>, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["node", "route", "host"])?;
    let node = needed(&query, "node")?;
    let (route, host) = (needed(&query, "route")?, needed(&query, "host")?);
    super::aside(move || answer(admin.server.explain_client(&node, &route, &host))).await?
}

/// `POST /api/v1/explain?route=...&host=...`, with a node in the body.
pub(super) async fn of_node(
    State(admin): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["route", "host"])?;
    let (route, host) = (needed(&query, "route")?, needed(&query, "host")?);
    let body = write::body(&admin, body)?;
    let Form::Text(format) = write::form(&headers) else {
        return Err(Refusal::bad("a node is asked about in YAML or JSON"));
    };
    super::aside(move || {
        let text = std::str::from_utf8(&body);
        let text = text.map_err(|_| Refusal::bad("the body is not text; send it in UTF-8"))?;
        let node = text::read_node(format, "body", text, &text::Options::default());
        let node = node.map_err(|errors| {
            let details = errors.into_iter().map(given::detail).collect();
            Refusal::invalid("this is no node", details)
        })?;
        answer(admin.server.explain_node(&node, &route, &host))
    })
    .await?
}

fn needed(query: &Query, key: &str) -> Result<String, Refusal> {
    let value = query.one(key)?.filter(|value| !value.is_empty());
    let missing = || Refusal::bad(format!("give a parameter `{key}`"));
    value.map(str::to_owned).ok_or_else(missing)
}

fn answer(explained: Result<Explained, ExplainError>) -> Result<Response, Refusal> {
    match explained {
        Ok(explained) => Ok(axum::Json(shown(explained)).into_response()),
        Err(error) => Err(Refusal::new(status(&error), error)),
    }
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
    let found = explained.host.found;
    let given = found.as_ref().and_then(|found| found.given.clone());
    let texts = |list: Vec<Box<str>>| list.into_iter().map(String::from).collect();
    Shown {
        asked: explained.asked.to_string(),
        host: explained.host.sought,
        virtual_host: found.map(|found| virtual_host(found, because)),
        given: given.map(|(given, form)| whole(&given, form)),
        considered: explained.host.considered.into_iter().map(other).collect(),
        base: Base {
            rules: explained.base.rules,
            sets: texts(explained.base.sets),
            by_sets: texts(explained.base.by_sets),
            by_name: explained.base.by_name,
        },
        client: explained.client.map(client),
    }
}

fn virtual_host(found: Found, because: Option<String>) -> VirtualHost {
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

/// Why a virtual host is not given as it is.
fn because(explained: &Explained) -> Option<String> {
    let found = explained.host.found.as_ref()?;
    if found.given.is_none() {
        return Some("the host is a pattern, or nothing that a domain can be".to_owned());
    }
    let crowded = found.crowded.as_deref()?;
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

fn whole(given: &Resource, form: Given) -> Whole {
    let domains = given.facts().domains.iter();
    Whole {
        name: given.name.to_string(),
        version: given.version.to_string(),
        domains: domains.map(|domain| domain.to_string()).collect(),
        form: match form {
            Given::Whole => "whole",
            Given::WithoutWildcards => "without_wildcards",
            Given::Narrowed => "narrowed",
        },
    }
}

fn other(one: Considered) -> Other {
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

fn stream(on: HostOnStream) -> Stream {
    let state = on.asked.as_ref().map(|asked| &asked.state);
    let rejected = match state {
        Some(NameState::Rejected(version)) => Some(version),
        _ => None,
    };
    let asked = on.asked.as_ref().and_then(|asked| asked.resource.as_ref());
    // Envoy quotes what it rejects, secrets too.
    let error = on.error.filter(|_| rejected.is_some());
    Stream {
        stream: on.stream,
        protocol: match on.mode {
            Mode::Sotw => "sotw",
            Mode::Delta => "delta",
        },
        aggregated: on.only.is_none(),
        may_see: on.may_see,
        is_full: on.is_full,
        status: state.map(|state| match state {
            NameState::Requested => "REQUESTED",
            NameState::Absent => "DOES_NOT_EXIST",
            NameState::Sent => "SENT",
            NameState::Accepted => "ACKED",
            NameState::Rejected(_) => "NACKED",
        }),
        holds: on.holds.as_ref().or(asked).map(|held| Held {
            name: held.name.to_string(),
            version: held.version.to_string(),
        }),
        rejected_version: rejected.map(Version::to_string),
        error: error.map(|error| redact::quoted(&error.message).into_owned()),
    }
}
