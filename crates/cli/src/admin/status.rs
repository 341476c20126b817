//! The state of clients, as JSON.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use http::Uri;
use serde::Serialize;
use serde_json::Value;
use trunkline::Server;
use trunkline::status::{Client, ClientResource, Clients as _, ResourceState, Sync, TypeState};
use trunkline_core::message::Mode;
use trunkline_proto::redact;

use super::asking::Asking;
use super::error::Refusal;
use super::query::Query;
use super::{Shared, resources, view};

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
    resources: Option<Vec<HeldResource>>,
}

/// The state of a type on a stream.
#[derive(Debug, Serialize)]
struct Type {
    #[serde(rename = "type")]
    type_url: String,
    status: &'static str,
    subscriptions: usize,
    wildcard: bool,
    /// The resources that the client has as they should be.
    current: usize,
    /// The resources that it should have.
    desired: usize,
    /// How long ago the newest response was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_sent_ms: Option<u64>,
    /// How long the oldest response has no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswered_ms: Option<u64>,
    sent_version: Option<String>,
    acked_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejected: Vec<Rejected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oversized_bytes: Option<usize>,
}

/// A resource that the client rejected on its own.
#[derive(Debug, Serialize)]
struct Rejected {
    name: String,
    version: String,
}

/// The state of a resource on a stream.
#[derive(Debug, Serialize)]
struct HeldResource {
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
    /// Its body at `version`, without secrets, if the request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Value>,
    /// The same at `rejected_version`, unless that is no longer served.
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected_resource: Option<Value>,
}

/// Begins and ends a list of clients.
const HEAD: &str = "{\"clients\":[";
const TAIL: &str = "]}";

/// `GET /api/v1/status`: shows each client with its types.
pub(super) async fn list(
    State(admin): State<Shared>,
    mut asking: Asking,
) -> Result<Response, Refusal> {
    let clients = asking.run(move || admin.server.clients()).await?;
    asking.hold(&clients)?;
    let clients = clients.into_iter();
    let clients = clients.map(|client| show_client(client, None));
    let tail = || TAIL.to_owned();
    asking.answer_list(HEAD.to_owned(), clients, tail).await
}

/// `GET /debug/clients`: shows each client, or those of one node, with its
/// types and resources. Of one node, it can show the contents of the resources
/// too.
pub(super) async fn list_with_resources(
    State(admin): State<Shared>,
    mut asking: Asking,
    uri: Uri,
) -> Result<Response, Refusal> {
    let query = Query::read(&uri, &["node", "contents"])?;
    let node = query.one("node")?.map(str::to_owned);
    let with_contents = query.is_on("contents")?;
    if with_contents && node.is_none() {
        return Err(Refusal::bad(
            "contents are shown of one node only; give a parameter `node` too",
        ));
    }

    let server = admin.server.clone();
    let select_clients = move || {
        let is_selected = |client: &Client| node.as_ref().is_none_or(|id| client.node.id == *id);
        let clients = server.clients().into_iter().filter(is_selected);
        clients.collect::<Vec<Client>>()
    };
    let clients = asking.run(select_clients).await?;
    asking.hold(&clients)?;
    let clients = clients.into_iter().map(move |client| {
        let server = &admin.server;
        let show = |resource: &ClientResource| match with_contents {
            true => show_contents(server, resource),
            false => show_resource(resource),
        };
        let resources = server.resources(client.stream);
        let resources = resources.iter().map(show).collect();
        show_client(client, Some(resources))
    });
    let tail = || TAIL.to_owned();
    asking.answer_list(HEAD.to_owned(), clients, tail).await
}

/// Returns the name of a protocol as the API writes it.
pub(crate) fn protocol_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Sotw => "sotw",
        Mode::Delta => "delta",
    }
}

/// Returns a time in milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the error of a NACK without secrets: Envoy quotes the resource that
/// it rejects.
pub(super) fn nack_error(message: &str) -> String {
    redact::quoted(message).into_owned()
}

/// Shows a client on its stream. The list of resources is left out if
/// `resources` is `None`.
fn show_client(client: Client, resources: Option<Vec<HeldResource>>) -> Shown {
    Shown {
        stream: client.stream,
        node: client.node.id,
        cluster: client.node.cluster,
        user_agent: client.node.user_agent,
        address: client.address.map(|address| address.to_string()),
        identity: client.identity.map(|identity| identity.to_string()),
        protocol: protocol_name(client.mode),
        aggregated: client.only.is_none(),
        connected_at: super::timestamp(client.opened),
        types: client.types.into_iter().map(show_type).collect(),
        resources,
    }
}

/// Shows a type on a stream. `rejected` has only quarantined resources, which
/// the client rejected on their own.
fn show_type(state: TypeState) -> Type {
    let quarantined = state.quarantined.into_iter();
    let rejected = quarantined.map(|(name, version)| Rejected {
        name: name.to_string(),
        version: version.to_string(),
    });

    Type {
        type_url: state.type_url.to_string(),
        status: match state.sync {
            Sync::Synced => "SYNCED",
            Sync::Stale => "STALE",
            Sync::Nacked => "NACKED",
        },
        subscriptions: state.subscriptions,
        wildcard: state.wildcard,
        current: state.current,
        desired: state.desired,
        last_sent_ms: state.last_sent.map(millis),
        unanswered_ms: state.unanswered.map(millis),
        sent_version: state.sent_version,
        acked_version: state.acked_version,
        error: state.error.map(|error| nack_error(&error.message)),
        rejected: rejected.collect(),
        oversized_bytes: state.oversized,
    }
}

/// Shows a resource on a stream. If the client rejects a version of the
/// resource, that version and the error are shown too.
fn show_resource(resource: &ClientResource) -> HeldResource {
    let (held_resource, rejection) = (resource.resource.as_ref(), resource.rejected.as_ref());
    HeldResource {
        type_url: resource.type_url.to_string(),
        name: resource.name.to_string(),
        status: match resource.state {
            ResourceState::Requested => "REQUESTED",
            ResourceState::DoesNotExist => "DOES_NOT_EXIST",
            ResourceState::Acked => "ACKED",
            ResourceState::Sent => "SENT",
            ResourceState::Nacked => "NACKED",
        },
        version: held_resource.map(|held_resource| held_resource.version.to_string()),
        rejected_version: rejection.map(|rejection| rejection.version.to_string()),
        error: rejection.map(|rejection| nack_error(&rejection.error.message)),
        resource: None,
        rejected_resource: None,
    }
}

/// Shows a resource on a stream, with its contents and those of the rejected
/// version. A negative answer has no body, so it is shown without contents.
fn show_contents(server: &Server, resource: &ClientResource) -> HeldResource {
    let type_url = &resource.type_url;
    let held_resource = resource.resource.as_ref();
    let held_resource = held_resource.filter(|held_resource| held_resource.body.is_some());
    let rejection = resource.rejected.as_ref().and_then(|rejection| {
        let variants = resources::variants_of(server, type_url, &resource.name);
        let mut variants = variants.into_iter();
        variants.find(|variant| variant.version == rejection.version)
    });
    HeldResource {
        resource: held_resource.map(|held_resource| view::show_body(type_url, held_resource)),
        rejected_resource: rejection.map(|rejection| view::show_body(type_url, &rejection)),
        ..show_resource(resource)
    }
}
