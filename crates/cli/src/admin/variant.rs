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

/// Shows the explanation of a resource. The client gets the variant that has no
/// unmet constraint; at most one variant has none. `streams` is missing if the
/// question is not about a connected client.
pub(super) fn show_explanation(explanation: ResourceExplained) -> Shown {
    let is_met = |variant: &VariantExplained| variant.unmet.is_empty();
    let (matching, others): (Vec<_>, Vec<_>) = explanation.variants.into_iter().partition(is_met);
    let streams = explanation.client;
    Shown {
        r#type: kinds::short(&explanation.type_url).to_owned(),
        name: explanation.name.to_string(),
        parameters: explanation.params.into_iter().map(Parameter::new).collect(),
        given: matching.into_iter().next().map(show_variant),
        others: others.into_iter().map(show_variant).collect(),
        streams: streams.map(|streams| streams.into_iter().map(Stream::new).collect()),
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
    /// holds is shown rather than the one sent for the subscription, if they
    /// differ. The error of the last NACK is shown only if the client rejects
    /// this resource.
    pub(super) fn new(stream_state: OnStream) -> Self {
        let subscription = stream_state.asked.as_ref();
        let state = subscription.map(|subscription| &subscription.state);
        let sent_resource = subscription.and_then(|subscription| subscription.resource.as_ref());
        let rejected_version = match state {
            Some(NameState::Rejected(version)) => Some(version),
            _ => None,
        };
        let error = stream_state.error.filter(|_| rejected_version.is_some());

        Self {
            stream: stream_state.stream,
            protocol: protocol_name(stream_state.mode),
            aggregated: stream_state.only.is_none(),
            may_see: stream_state.may_see,
            status: state.map(status_word),
            holds: stream_state
                .holds
                .as_ref()
                .or(sent_resource)
                .map(|resource| Held {
                    name: resource.name.to_string(),
                    version: resource.version.to_string(),
                    constraints: resource.constraints.as_ref().map(Constraints::to_string),
                }),
            rejected_version: rejected_version.map(Version::to_string),
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
