//! CSDS: what a client holds, as a gRPC service that its application can mount
//! (C65).

use std::pin::Pin;
use std::time::SystemTime;

use prost::Message as _;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use trunkline_core::sink::CacheState;
use trunkline_proto::envoy::envoy::admin::v3::{ClientResourceStatus, UpdateFailureState};
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::status::v3::client_config::GenericXdsConfig;
use trunkline_proto::envoy::envoy::service::status::v3::client_status_discovery_service_server::{
    ClientStatusDiscoveryService, ClientStatusDiscoveryServiceServer,
};
use trunkline_proto::envoy::envoy::service::status::v3::{
    ClientConfig, ClientStatusRequest, ClientStatusResponse,
};
use trunkline_proto::envoy::google::protobuf::{Any, Timestamp};
use trunkline_proto::redact;

use super::dump::Held;
use super::handle::Client;

impl Client {
    /// Returns the client as a service of `ClientStatusDiscoveryService`, for a
    /// tonic server. Private keys are not shown.
    #[must_use]
    pub fn csds(&self) -> ClientStatusDiscoveryServiceServer<ClientStatus> {
        ClientStatusDiscoveryServiceServer::new(ClientStatus::of(self))
    }

    /// Returns the client's cache in the form of CSDS: a flat list of all
    /// names.
    #[must_use]
    pub fn client_config(&self) -> ClientConfig {
        let node = self.running().node().encode_to_vec();
        ClientConfig {
            // The node of discovery and that of CSDS have the same fields.
            node: Node::decode(node.as_slice()).ok(),
            generic_xds_configs: self.dump().into_iter().map(describe).collect(),
            client_scope: self.running().target().to_owned(), // C50
            ..ClientConfig::default()
        }
    }
}

/// The service of [`Client::csds`].
#[derive(Clone, Debug)]
pub struct ClientStatus(Client);

impl ClientStatus {
    /// Returns the status of this client, for a service of one's own.
    #[must_use]
    pub fn of(client: &Client) -> Self {
        Self(client.clone())
    }

    /// Makes the response to a request. One that asks for certain nodes is an
    /// error: there is one client.
    fn respond(&self, request: &ClientStatusRequest) -> Result<ClientStatusResponse, Status> {
        if !request.node_matchers.is_empty() {
            let reason = "this is the status of one client: leave node_matchers empty";
            return Err(Status::invalid_argument(reason)); // C65
        }
        let mut config = self.0.client_config();
        if request.exclude_resource_contents {
            for resource in &mut config.generic_xds_configs {
                resource.xds_config = None;
            }
        }
        Ok(ClientStatusResponse {
            config: vec![config],
        })
    }
}

#[tonic::async_trait]
impl ClientStatusDiscoveryService for ClientStatus {
    type StreamClientStatusStream =
        Pin<Box<dyn Stream<Item = Result<ClientStatusResponse, Status>> + Send>>;

    /// Responds to each request of a stream, in their order.
    async fn stream_client_status(
        &self,
        request: Request<Streaming<ClientStatusRequest>>,
    ) -> Result<Response<Self::StreamClientStatusStream>, Status> {
        let service = self.clone();
        let responses = request
            .into_inner()
            .map(move |request| service.respond(&request?));
        Ok(Response::new(Box::pin(responses)))
    }

    async fn fetch_client_status(
        &self,
        request: Request<ClientStatusRequest>,
    ) -> Result<Response<ClientStatusResponse>, Status> {
        self.respond(request.get_ref()).map(Response::new)
    }
}

/// Returns the entry of a name in CSDS. Of several variants it has the body of
/// the first: CSDS has one resource of a name.
fn describe(entry: Held) -> GenericXdsConfig {
    let resource = entry.resources.first();
    let body = resource.and_then(|resource| resource.body.clone());
    let rejected_update = entry.rejected.as_ref();

    GenericXdsConfig {
        type_url: entry.type_url.to_string(),
        name: entry.name.to_string(),
        version_info: entry
            .version
            .map_or_else(String::new, |version| version.to_string()),
        xds_config: body.and_then(|body| shown_body(entry.type_url.as_str(), body)),
        last_updated: entry.updated.map(timestamp),
        client_status: client_status(entry.state).into(),
        error_state: entry.error.map(|error| UpdateFailureState {
            details: redact::quoted(&error.message).into_owned(),
            version_info: rejected_update
                .map_or_else(String::new, |update| update.version.to_string()),
            last_update_attempt: rejected_update.map(|update| timestamp(update.at)),
            ..UpdateFailureState::default()
        }),
        ..GenericXdsConfig::default()
    }
}

/// Returns the body as the client received it, with its secrets redacted.
/// Returns `None` if the body cannot be decoded, because its secrets could not
/// be found then.
fn shown_body(type_url: &str, body: bytes::Bytes) -> Option<Any> {
    let value = match redact::redact_if_secret(type_url, body.clone()).ok()? {
        None => body.to_vec(),
        Some(redacted) => redacted.encode_to_vec(),
    };
    Some(Any {
        type_url: type_url.to_owned(),
        value,
    })
}

/// Returns the state of a name as CSDS has it.
fn client_status(state: CacheState) -> ClientResourceStatus {
    match state {
        CacheState::Requested => ClientResourceStatus::Requested,
        CacheState::DoesNotExist => ClientResourceStatus::DoesNotExist,
        CacheState::Acked => ClientResourceStatus::Acked,
        CacheState::Nacked => ClientResourceStatus::Nacked,
        CacheState::ReceivedError => ClientResourceStatus::ReceivedError,
        CacheState::Timeout => ClientResourceStatus::Timeout,
    }
}

/// Converts a time into protobuf's.
fn timestamp(time: SystemTime) -> Timestamp {
    let since_epoch = time
        .duration_since(SystemTime::UNIX_EPOCH)
        // A clock before 1970 is shown as that.
        .unwrap_or_default();
    Timestamp {
        seconds: since_epoch.as_secs().try_into().unwrap_or(i64::MAX),
        // A second has less than a billion nanoseconds.
        nanos: since_epoch.subsec_nanos().try_into().unwrap_or_default(),
    }
}
