//! CSDS: a server's view of its clients, as a gRPC service.
//!
//! Bodies are shown without their secrets; a body of an unknown type is not
//! shown.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use prost::Message as _;
use tokio::sync::Mutex;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_proto::envoy::envoy::admin::v3::{ClientResourceStatus, UpdateFailureState};
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::status::v3::client_config::GenericXdsConfig;
use trunkline_proto::envoy::envoy::service::status::v3::client_status_discovery_service_server::{
    ClientStatusDiscoveryService, ClientStatusDiscoveryServiceServer,
};
use trunkline_proto::envoy::envoy::service::status::v3::{
    ClientConfig, ClientStatusRequest, ClientStatusResponse, ConfigStatus,
};
use trunkline_proto::envoy::google::protobuf::Any;
use trunkline_proto::redact;

use super::matcher::NodeMatchers;
use super::{Client, ClientResource, Clients, Rejected, ResourceState, TypeState};
use crate::bounds::{STATUS_ANSWER, STATUS_REQUEST};
use crate::questions::{Asked, Busy, Question, Questions, peer_of};

/// The size of an entry without its texts and its body.
const ENTRY_BYTES: usize = 64;

/// Returns the service for a tonic server, with limits of its own on its work.
#[must_use]
pub fn service(clients: Arc<dyn Clients>) -> ClientStatusDiscoveryServiceServer<Csds> {
    service_with(clients, Questions::default())
}

/// Returns the service for a tonic server. Its work counts among these
/// questions.
#[must_use]
pub fn service_with(
    clients: Arc<dyn Clients>,
    questions: Questions,
) -> ClientStatusDiscoveryServiceServer<Csds> {
    let csds = Csds { clients, questions };
    ClientStatusDiscoveryServiceServer::new(csds).max_decoding_message_size(STATUS_REQUEST)
}

/// The gRPC service over [`Clients`].
pub struct Csds {
    clients: Arc<dyn Clients>,
    questions: Questions,
}

impl fmt::Debug for Csds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Csds")
    }
}

#[tonic::async_trait]
impl ClientStatusDiscoveryService for Csds {
    type StreamClientStatusStream =
        Pin<Box<dyn Stream<Item = Result<ClientStatusResponse, Status>> + Send>>;

    /// Responds to each request of a stream with the state at that moment.
    async fn stream_client_status(
        &self,
        request: Request<Streaming<ClientStatusRequest>>,
    ) -> Result<Response<Self::StreamClientStatusStream>, Status> {
        let clients = Arc::clone(&self.clients);
        let questions = self.questions.clone();
        let peer = peer_of(request.extensions());
        // The bytes of a response count until the client sends its next request.
        let held_question = Arc::new(Mutex::new(None));
        let responses = request.into_inner().then(move |request| {
            let (clients, held_question) = (Arc::clone(&clients), Arc::clone(&held_question));
            let question = questions.ask(peer);
            async move {
                held_question.lock().await.take();
                let (response, question) = respond(clients, request?, question).await?;
                held_question.lock().await.replace(question);
                Ok(response)
            }
        });

        let mut response: Response<Self::StreamClientStatusStream> =
            Response::new(Box::pin(responses));
        let question_of_body = Asked::new(self.questions.ask(peer));
        response.extensions_mut().insert(question_of_body);
        Ok(response)
    }

    /// Responds to one request.
    async fn fetch_client_status(
        &self,
        request: Request<ClientStatusRequest>,
    ) -> Result<Response<ClientStatusResponse>, Status> {
        let clients = Arc::clone(&self.clients);
        let question = self.questions.ask(peer_of(request.extensions()));
        let (response, question) = respond(clients, request.into_inner(), question).await?;
        let mut response = Response::new(response);
        response.extensions_mut().insert(Asked::new(question));
        Ok(response)
    }
}

/// Returns the response to a request: the clients that its matchers accept,
/// with their resources. Runs on a blocking thread, because it compiles regular
/// expressions and may visit every client's whole cache. The returned question
/// holds the bytes of the response.
async fn respond(
    clients: Arc<dyn Clients>,
    request: ClientStatusRequest,
    question: Question,
) -> Result<(ClientStatusResponse, Question), Status> {
    let work = question.work().await.map_err(busy)?;
    let response = tokio::task::spawn_blocking(move || {
        let _work = work;
        let matchers = NodeMatchers::read(request.node_matchers)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let with_contents = !request.exclude_resource_contents;
        let mut builder = ResponseBuilder::new(with_contents, STATUS_ANSWER, question);
        for client in clients.clients() {
            if matchers.accept(&client.node.id) {
                builder.check_room(&client)?;
                builder.add_client(&client, clients.resources(client.stream))?;
            }
        }
        Ok((builder.response, builder.question))
    });
    response
        .await
        .unwrap_or_else(|_| Err(Status::internal("the question was dropped; ask again")))
}

/// Returns the status of a question that is refused.
fn busy(busy: Busy) -> Status {
    Status::resource_exhausted(busy.to_string())
}

/// Builds a response, client by client.
pub(super) struct ResponseBuilder {
    pub(super) response: ClientStatusResponse,
    /// Bodies without secrets, by the address of their resource. The entry
    /// keeps the resource, so that no other one gets its address.
    shown: HashMap<usize, (Arc<Resource>, Option<Any>)>,
    with_contents: bool,
    /// How many bytes may be added.
    bytes_left: usize,
    /// Holds the bytes of the response.
    question: Question,
}

impl ResponseBuilder {
    /// Returns a response without clients. Bodies are added only
    /// `with_contents`.
    pub(super) fn new(with_contents: bool, max_bytes: usize, question: Question) -> Self {
        Self {
            response: ClientStatusResponse::default(),
            shown: HashMap::new(),
            with_contents,
            bytes_left: max_bytes,
            question,
        }
    }

    /// Checks that there is room at least for the names of a client, so that a
    /// client that is too large need not be listed.
    fn check_room(&self, client: &Client) -> Result<(), Status> {
        let count_least_bytes = |state: &TypeState| {
            let names = state.subscriptions.max(state.desired);
            names.saturating_mul(ENTRY_BYTES + state.type_url.as_str().len())
        };
        let least_bytes: usize = client.types.iter().map(count_least_bytes).sum();
        if least_bytes > self.bytes_left {
            return Err(too_large());
        }
        Ok(())
    }

    /// Adds a client with its resources. An error if the response becomes too
    /// large, or if its bytes cannot be held.
    pub(super) fn add_client(
        &mut self,
        client: &Client,
        resources: Vec<ClientResource>,
    ) -> Result<(), Status> {
        let mut configs = Vec::with_capacity(resources.len());
        for resource in resources {
            let config = self.describe_resource(resource);
            let bytes = ENTRY_BYTES + config.encoded_len();
            let bytes_left = self.bytes_left.checked_sub(bytes);
            self.bytes_left = bytes_left.ok_or_else(too_large)?;
            // The response exists as a message, and then also as bytes.
            self.question.hold(2 * bytes).map_err(busy)?;
            configs.push(config);
        }

        self.response.config.push(ClientConfig {
            node: Some(write_node(client)),
            generic_xds_configs: configs,
            client_scope: client_scope(client),
            ..ClientConfig::default()
        });
        Ok(())
    }

    /// Describes one resource of a client: its state, and the version and body
    /// that were sent last.
    fn describe_resource(&mut self, resource: ClientResource) -> GenericXdsConfig {
        let (config_status, client_status) = statuses(resource.state);
        let error_state = resource.rejected.map(describe_rejection);
        let sent = resource.resource.as_ref();
        let version = sent.map(|sent| sent.version.to_string());
        GenericXdsConfig {
            version_info: version.unwrap_or_default(),
            xds_config: sent.and_then(|sent| self.redacted_body(&resource.type_url, sent)),
            name: resource.name.to_string(),
            type_url: resource.type_url.to_string(),
            config_status: config_status.into(),
            client_status: client_status.into(),
            error_state,
            ..GenericXdsConfig::default()
        }
    }

    /// Returns the body of a resource without its secrets. Returns `None` if
    /// bodies are not requested, or if the type is unknown. Clients share
    /// resources, so each resource is redacted once.
    fn redacted_body(&mut self, type_url: &TypeUrl, resource: &Arc<Resource>) -> Option<Any> {
        if !self.with_contents {
            return None;
        }
        let address = Arc::as_ptr(resource).addr();
        let cached = self.shown.entry(address);
        let redact = || (Arc::clone(resource), redact_body(type_url, resource));
        let (_, any) = cached.or_insert_with(redact);
        any.clone()
    }
}

/// Returns the status of a request whose response would be too large.
fn too_large() -> Status {
    Status::resource_exhausted(
        "the answer is too large; ask for fewer clients by node_matchers, or set exclude_resource_contents",
    )
}

/// Redacts the secrets in the body of a resource. Returns `None` if there is no
/// body, or if its type is unknown, since its secrets are not known then.
fn redact_body(type_url: &TypeUrl, resource: &Resource) -> Option<Any> {
    let body = resource.body.clone()?;
    let message = redact::redact(type_url.as_str(), body).ok()?;
    Some(Any {
        type_url: type_url.to_string(),
        value: message.encode_to_vec(),
    })
}

/// Returns the state of a resource as the server sees it, and as the client
/// does. A resource with a pending ACK may be at the client or not.
fn statuses(state: ResourceState) -> (ConfigStatus, ClientResourceStatus) {
    match state {
        ResourceState::Requested => (ConfigStatus::NotSent, ClientResourceStatus::Requested),
        ResourceState::DoesNotExist => (ConfigStatus::NotSent, ClientResourceStatus::DoesNotExist),
        ResourceState::Acked => (ConfigStatus::Synced, ClientResourceStatus::Acked),
        ResourceState::Sent => (ConfigStatus::Stale, ClientResourceStatus::Unknown),
        ResourceState::Nacked => (ConfigStatus::Error, ClientResourceStatus::Nacked),
    }
}

/// Describes the version that a client rejects, and its error without the
/// secrets of the resource, which Envoy quotes in it.
fn describe_rejection(rejected: Rejected) -> UpdateFailureState {
    UpdateFailureState {
        details: redact::quoted(&rejected.error.message).into_owned(),
        version_info: rejected.version.to_string(),
        ..UpdateFailureState::default()
    }
}

/// Returns the part of a client's node that the server keeps.
fn write_node(client: &Client) -> Node {
    let node = &client.node;
    Node {
        id: node.id.clone(),
        cluster: node.cluster.clone(),
        user_agent_name: node.user_agent.clone(),
        client_features: node.client_features.clone(),
        ..Node::default()
    }
}

/// Describes the stream of a client in words: a client may have several.
fn client_scope(client: &Client) -> String {
    let mut scope = format!("stream {}", client.stream);
    if let Some(address) = client.address {
        scope.push_str(&format!(" from {address}"));
    }
    if let Some(identity) = &client.identity {
        scope.push_str(&format!(" as {identity}"));
    }
    if let Some(only) = &client.only {
        scope.push_str(&format!(" for {only}"));
    }
    scope
}
