//! gRPC reflection, v1 and v1alpha, by which tools like `grpcurl` learn a
//! server's services.
//!
//! Responses come from the descriptors that the process has anyway, so the
//! service costs nothing until it is used. Both versions are the same on the
//! wire.

mod lookup;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;

use prost::Message;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use tonic_reflection::pb::v1::server_reflection_server as v1_server;
use tonic_reflection::pb::v1alpha::server_reflection_server as v1alpha_server;
use tonic_reflection::pb::{v1, v1alpha};

use lookup::ReflectionStream;

/// The full name of the service.
pub const NAME: &str = v1_server::SERVICE_NAME;

/// The full name of its older version.
pub const NAME_V1ALPHA: &str = v1alpha_server::SERVICE_NAME;

/// Describes the services of a server.
#[derive(Clone, Debug)]
pub struct Reflection {
    services: Arc<[String]>,
}

impl Reflection {
    /// `services` are the full names of the server's services.
    #[must_use]
    pub fn new(services: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let services = services.into_iter().map(Into::into).collect();
        Self { services }
    }

    /// The service for a tonic server.
    #[must_use]
    pub fn v1(&self) -> v1_server::ServerReflectionServer<Self> {
        v1_server::ServerReflectionServer::new(self.clone())
    }

    /// The older version, which many tools still use.
    #[must_use]
    pub fn v1alpha(&self) -> v1alpha_server::ServerReflectionServer<Self> {
        v1alpha_server::ServerReflectionServer::new(self.clone())
    }
}

type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl v1_server::ServerReflection for Reflection {
    type ServerReflectionInfoStream = Responses<v1::ServerReflectionResponse>;

    /// Responds to each request of a stream, which remembers the files that it
    /// was sent.
    async fn server_reflection_info(
        &self,
        request: Request<Streaming<v1::ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let mut stream = ReflectionStream::new(Arc::clone(&self.services));
        let requests = request.into_inner();
        let responses = requests.map(move |request| Ok(stream.respond(request?)));
        Ok(Response::new(Box::pin(responses)))
    }
}

#[tonic::async_trait]
impl v1alpha_server::ServerReflection for Reflection {
    type ServerReflectionInfoStream = Responses<v1alpha::ServerReflectionResponse>;

    /// Responds to each request by way of the newer version, whose messages are
    /// the same on the wire.
    async fn server_reflection_info(
        &self,
        request: Request<Streaming<v1alpha::ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let mut stream = ReflectionStream::new(Arc::clone(&self.services));
        let requests = request.into_inner();
        let responses = requests.map(move |request| {
            let response = stream.respond(other_version(&request?)?);
            other_version(&response)
        });
        Ok(Response::new(Box::pin(responses)))
    }
}

/// Converts a message to its type in the other version: it is encoded and
/// decoded again.
fn other_version<T: Message + Default>(message: &impl Message) -> Result<T, Status> {
    let decoded = T::decode(&*message.encode_to_vec());
    decoded.map_err(|error| Status::internal(error.to_string()))
}
