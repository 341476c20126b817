//! The variant of a resource that a client gets, and why, as JSON.

use serde::Serialize;
use trunkline::Version;
use trunkline::explain::{self, OnStream, ResourceExplained, VariantExplained};
use trunkline_core::message::Mode;
use trunkline_core::params::Constraints;
use trunkline_core::session::NameState;
use trunkline_proto::redact;

use crate::kinds;

/// The whole explanation.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    r#type: String,
    name: String,
    parameters: Vec<Parameter>,
    given: Option<Variant>,
    /// The variants for other clients.
    others: Vec<Variant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<Vec<Stream>>,
}

/// A parameter of the client.
#[derive(Debug, Serialize)]
pub(super) struct Parameter {
    key: String,
    value: String,
    by: String,
}

#[derive(Debug, Serialize)]
struct Variant {
    version: String,
    /// Its constraints; nothing if it is for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<String>,
    /// The constraints that the client does not meet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unmet: Vec<String>,
}

/// The state of a name on a stream.
#[derive(Debug, Serialize)]
pub(super) struct Stream {
    stream: u64,
    protocol: &'static str,
    aggregated: bool,
    may_see: bool,
    /// The state of the subscription; nothing if there is none.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<String>,
}

pub(super) fn shown(explained: ResourceExplained) -> Shown {
    let is_given = |variant: &VariantExplained| variant.unmet.is_empty();
    let (given, others): (Vec<_>, Vec<_>) = explained.variants.into_iter().partition(is_given);
    let streams = explained.client;
    Shown {
        r#type: kinds::short(&explained.type_url).to_owned(),
        name: explained.name.to_string(),
        parameters: explained.params.into_iter().map(Parameter::new).collect(),
        given: given.into_iter().next().map(variant),
        others: others.into_iter().map(variant).collect(),
        streams: streams.map(|all| all.into_iter().map(Stream::new).collect()),
    }
}

fn variant(variant: VariantExplained) -> Variant {
    let constraints = variant.resource.constraints.as_ref();
    Variant {
        version: variant.resource.version.to_string(),
        constraints: constraints.map(Constraints::to_string),
        unmet: variant.unmet,
    }
}

impl Parameter {
    pub(super) fn new(one: explain::Parameter) -> Self {
        let explain::Parameter { key, value, by } = one;
        Self { key, value, by }
    }
}

impl Stream {
    pub(super) fn new(on: OnStream) -> Self {
        let state = on.asked.as_ref().map(|asked| &asked.state);
        let rejected = match state {
            Some(NameState::Rejected(version)) => Some(version),
            _ => None,
        };
        let asked = on.asked.as_ref().and_then(|asked| asked.resource.as_ref());
        // Envoy quotes the resource that it rejects, secrets too.
        let error = on.error.filter(|_| rejected.is_some());
        Self {
            stream: on.stream,
            protocol: match on.mode {
                Mode::Sotw => "sotw",
                Mode::Delta => "delta",
            },
            aggregated: on.only.is_none(),
            may_see: on.may_see,
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
                constraints: held.constraints.as_ref().map(Constraints::to_string),
            }),
            rejected_version: rejected.map(Version::to_string),
            error: error.map(|error| redact::quoted(&error.message).into_owned()),
        }
    }
}
