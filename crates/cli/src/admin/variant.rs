//! The variant of a resource that a client gets, and why, as JSON.

use serde::Serialize;
use trunkline::Version;
use trunkline::explain::{self, OnStream, ResourceExplained, VariantExplained};
use trunkline_core::params::Constraints;
use trunkline_core::session::NameState;

use super::status::{nack_error, protocol_name};
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

/// A variant of the resource.
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

/// The resource that a client holds.
#[derive(Debug, Serialize)]
struct Held {
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<String>,
}

/// Shows the explanation of a resource. The variant without an unmet constraint
/// is the one that the client gets; there is at most one. The streams are
/// missing if the question is not about a connected client.
pub(super) fn show_explanation(explained: ResourceExplained) -> Shown {
    let is_met = |variant: &VariantExplained| variant.unmet.is_empty();
    let (given, others): (Vec<_>, Vec<_>) = explained.variants.into_iter().partition(is_met);
    let streams = explained.client;
    Shown {
        r#type: kinds::short(&explained.type_url).to_owned(),
        name: explained.name.to_string(),
        parameters: explained.params.into_iter().map(Parameter::new).collect(),
        given: given.into_iter().next().map(show_variant),
        others: others.into_iter().map(show_variant).collect(),
        streams: streams.map(|all| all.into_iter().map(Stream::new).collect()),
    }
}

/// Shows a variant, with the constraints that the client does not meet.
fn show_variant(variant: VariantExplained) -> Variant {
    let constraints = variant.resource.constraints.as_ref();
    Variant {
        version: variant.resource.version.to_string(),
        constraints: constraints.map(Constraints::to_string),
        unmet: variant.unmet,
    }
}

impl Parameter {
    /// Shows a parameter with its origin.
    pub(super) fn new(parameter: explain::Parameter) -> Self {
        let explain::Parameter { key, value, by } = parameter;
        Self { key, value, by }
    }
}

impl Stream {
    /// Shows the state of a name on a stream. The resource that the client
    /// holds counts before the one that it was sent for its subscription. The
    /// error is that of its NACK, where it rejects the resource.
    pub(super) fn new(on: OnStream) -> Self {
        let subscription = on.asked.as_ref();
        let state = subscription.map(|subscription| &subscription.state);
        let sent = subscription.and_then(|subscription| subscription.resource.as_ref());
        let rejected = match state {
            Some(NameState::Rejected(version)) => Some(version),
            _ => None,
        };
        let error = on.error.filter(|_| rejected.is_some());

        Self {
            stream: on.stream,
            protocol: protocol_name(on.mode),
            aggregated: on.only.is_none(),
            may_see: on.may_see,
            status: state.map(status_word),
            holds: on.holds.as_ref().or(sent).map(|held| Held {
                name: held.name.to_string(),
                version: held.version.to_string(),
                constraints: held.constraints.as_ref().map(Constraints::to_string),
            }),
            rejected_version: rejected.map(Version::to_string),
            error: error.map(|error| nack_error(&error.message)),
        }
    }
}

/// Returns the word for the state of a subscription.
fn status_word(state: &NameState) -> &'static str {
    match state {
        NameState::Requested => "REQUESTED",
        NameState::Absent => "DOES_NOT_EXIST",
        NameState::Sent => "SENT",
        NameState::Accepted => "ACKED",
        NameState::Rejected(_) => "NACKED",
    }
}
