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
use std::sync::{Arc, PoisonError};

use prost::Message;
use tokio::sync::Mutex;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use tonic_reflection::pb::v1::server_reflection_server as v1_server;
use tonic_reflection::pb::v1alpha::server_reflection_server as v1alpha_server;
use tonic_reflection::pb::{v1, v1alpha};

use lookup::ReflectionStream;

use crate::bounds::REFLECTION_REQUEST;
use crate::questions::{Asked, Busy, Question, Questions, peer_of};

/// The full name of the service.
pub const NAME: &str = v1_server::SERVICE_NAME;

/// The full name of its older version.
pub const NAME_V1ALPHA: &str = v1alpha_server::SERVICE_NAME;

/// Describes the services of a server.
#[derive(Clone, Debug)]
pub struct Reflection {
    services: Arc<[String]>,
    questions: Questions,
}

/// The responses of a stream.
type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Reflection {
    /// Makes a service that lists these services, by their full names, as those
    /// of the server.
    #[must_use]
    pub fn new(services: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let services = services.into_iter().map(Into::into).collect();
        let questions = Questions::default();
        Self {
            services,
            questions,
        }
    }

    /// Counts the work of the service among these questions, and by their
    /// limits.
    #[must_use]
    pub fn with_questions(self, questions: Questions) -> Self {
        Self { questions, ..self }
    }

    /// Returns the service for a tonic server.
    #[must_use]
    pub fn v1(&self) -> v1_server::ServerReflectionServer<Self> {
        v1_server::ServerReflectionServer::new(self.clone())
            .max_decoding_message_size(REFLECTION_REQUEST)
    }

    /// Returns the service in its older version, which many tools still use.
    #[must_use]
    pub fn v1alpha(&self) -> v1alpha_server::ServerReflectionServer<Self> {
        v1alpha_server::ServerReflectionServer::new(self.clone())
            .max_decoding_message_size(REFLECTION_REQUEST)
    }

    /// Begins to answer a stream, whose questions count for the address in the
    /// extensions of its request.
    fn begin_answering(&self, extensions: &http::Extensions) -> Arc<Answering> {
        let stream = ReflectionStream::new(Arc::clone(&self.services));
        let question = self.questions.ask(peer_of(extensions));
        Arc::new(Answering {
            question: Mutex::new(question),
            stream: Arc::new(std::sync::Mutex::new(stream)),
        })
    }

    /// Makes the HTTP response of a stream, with a question by which the server
    /// hands the body over piece by piece
    /// ([`stream_body`](crate::questions::stream_body)). That question has no
    /// address, for it takes nothing: the work and the bytes of the answers
    /// count in [`Answering::question`], for the address of the client.
    fn paced_response<T>(&self, responses: Responses<T>) -> Response<Responses<T>> {
        let mut response = Response::new(responses);
        let asked = Asked::new(self.questions.ask(None));
        response.extensions_mut().insert(asked);
        response
    }
}

/// A stream that is answered.
struct Answering {
    /// The question of the last answer, whose bytes count until the next.
    question: Mutex<Question>,
    stream: Arc<std::sync::Mutex<ReflectionStream>>,
}

impl Answering {
    /// Responds to one request, on a thread for such work: a file may have
    /// hundreds of others that it depends on. A request that comes while too
    /// many questions are asked ends the stream.
    async fn respond(
        &self,
        request: v1::ServerReflectionRequest,
    ) -> Result<v1::ServerReflectionResponse, Status> {
        let busy = |busy: Busy| Status::resource_exhausted(busy.to_string());
        let mut question = self.question.lock().await;
        question.release();
        let stream = Arc::clone(&self.stream);
        let answer = question.run(move || {
            let stream = stream.lock();
            let mut stream = stream.unwrap_or_else(PoisonError::into_inner);
            stream.respond(request)
        });
        let answer = answer.await.map_err(busy)?;
        let answer = answer.ok_or_else(|| Status::internal("the question was dropped"))?;
        // It is there as a message, and then as bytes.
        question.hold(2 * answer.encoded_len()).map_err(busy)?;
        Ok(answer)
    }
}

#[tonic::async_trait]
impl v1_server::ServerReflection for Reflection {
    type ServerReflectionInfoStream = Responses<v1::ServerReflectionResponse>;

    /// Responds to each request of a stream, which remembers the files that it
    /// was sent.
    async fn server_reflection_info(
        &self,
        request: Request<Streaming<v1::ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let answering = self.begin_answering(request.extensions());
        let responses = request.into_inner().then(move |request| {
            let answering = Arc::clone(&answering);
            async move { answering.respond(request?).await }
        });
        Ok(self.paced_response(Box::pin(responses)))
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
        let answering = self.begin_answering(request.extensions());
        let responses = request.into_inner().then(move |request| {
            let answering = Arc::clone(&answering);
            async move {
                let response = answering.respond(other_version(&request?)?).await?;
                other_version(&response)
            }
        });
        Ok(self.paced_response(Box::pin(responses)))
    }
}

/// Converts a message to its type in the other version: it is encoded and
/// decoded again.
fn other_version<T: Message + Default>(message: &impl Message) -> Result<T, Status> {
    let decoded = T::decode(&*message.encode_to_vec());
    decoded.map_err(|error| Status::internal(error.to_string()))
}
