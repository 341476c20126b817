//! The state of clients, as JSON.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use trunkline::status::{Client, ClientResource, Clients as _, ResourceState, Sync, TypeState};
use trunkline_core::message::Mode;
use trunkline_proto::redact;

use super::Shared;
use super::error::Refusal;

/// A client on its stream.
#[derive(Debug, Serialize)]
struct Shown {
    stream: u64,
    node: String,
    cluster: String,
    user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    protocol: &'static str,
    aggregated: bool,
    connected_at: String,
    types: Vec<Type>,
    /// Each resource, if the request asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<One>>,
}

#[derive(Debug, Serialize)]
struct Type {
    #[serde(rename = "type")]
    type_url: String,
    status: &'static str,
    subscriptions: usize,
    wildcard: bool,
    sent_version: Option<String>,
    acked_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejected: Vec<Rejected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oversized_bytes: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Rejected {
    name: String,
    version: String,
}

#[derive(Debug, Serialize)]
struct One {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct List {
    clients: Vec<Shown>,
}

/// `GET /api/v1/status`
pub(super) async fn list(State(admin): State<Shared>) -> Result<Response, Refusal> {
    super::aside(move || {
        let clients = admin.server.clients().into_iter();
        let clients = clients.map(|client| shown(client, None)).collect();
        axum::Json(List { clients }).into_response()
    })
    .await
}

/// `GET /debug/clients`
pub(super) async fn debug(State(admin): State<Shared>) -> Result<Response, Refusal> {
    super::aside(move || {
        let clients = admin.server.clients().into_iter().map(|client| {
            let resources = admin.server.resources(client.stream).into_iter();
            shown(client, Some(resources.map(one).collect()))
        });
        let clients = clients.collect();
        axum::Json(List { clients }).into_response()
    })
    .await
}

fn shown(client: Client, resources: Option<Vec<One>>) -> Shown {
    Shown {
        stream: client.stream,
        node: client.node.id,
        cluster: client.node.cluster,
        user_agent: client.node.user_agent,
        address: client.address.map(|address| address.to_string()),
        identity: client.identity,
        protocol: match client.mode {
            Mode::Sotw => "sotw",
            Mode::Delta => "delta",
        },
        aggregated: client.only.is_none(),
        connected_at: super::time(client.opened),
        types: client.types.into_iter().map(of_type).collect(),
        resources,
    }
}

fn of_type(state: TypeState) -> Type {
    let parked = state.parked.into_iter();
    Type {
        type_url: state.type_url.to_string(),
        status: match state.sync {
            Sync::Synced => "SYNCED",
            Sync::Stale => "STALE",
            Sync::Nacked => "NACKED",
        },
        subscriptions: state.subscriptions,
        wildcard: state.wildcard,
        sent_version: state.sent_version,
        acked_version: state.acked_version,
        // Envoy quotes the resource that it rejects, secrets too.
        error: state
            .error
            .map(|error| redact::quoted(&error.message).into_owned()),
        rejected: parked
            .map(|(name, version)| Rejected {
                name: name.to_string(),
                version: version.to_string(),
            })
            .collect(),
        oversized_bytes: state.oversized,
    }
}

fn one(resource: ClientResource) -> One {
    let rejected = resource.rejected.as_ref();
    One {
        type_url: resource.type_url.to_string(),
        name: resource.name.to_string(),
        status: match resource.state {
            ResourceState::Requested => "REQUESTED",
            ResourceState::DoesNotExist => "DOES_NOT_EXIST",
            ResourceState::Acked => "ACKED",
            ResourceState::Sent => "SENT",
            ResourceState::Nacked => "NACKED",
        },
        version: resource.resource.map(|held| held.version.to_string()),
        rejected_version: rejected.map(|rejected| rejected.version.to_string()),
        error: rejected.map(|rejected| redact::quoted(&rejected.error.message).into_owned()),
    }
}
