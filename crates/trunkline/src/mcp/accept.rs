//! The service of a role that listens: a task for each stream.

use std::convert::Infallible;
use std::future::Future;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::server::{Grpc, StreamingService};
use tonic::{Request, Response, Status, Streaming};

use super::link::{Ended, Form, Link, Why, Wire};
use crate::codec::RawCodec;
use crate::listen::{BoxError, Closing};
use crate::server::{BoxFuture, Connection};

/// A source or a sink: what it does on a stream.
pub(super) trait Role: Clone + Send + Sync + 'static {
    /// The methods that it serves where it listens.
    const SERVED: &'static [(&'static str, Wire)];

    /// Bytes of a message that it takes.
    const LONGEST: usize;

    /// The method that it opens where it dials, and its messages.
    fn dialled(&self) -> (&'static str, Wire);

    /// Serves a stream until it ends.
    fn run(self, link: &mut Link) -> impl Future<Output = Ended> + Send;
}

/// The gRPC service of a role.
#[derive(Clone, Debug)]
pub(super) struct Accept<R>(pub(super) R);

impl<R: Role, B> tower_service::Service<http::Request<B>> for Accept<R>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError> + Send> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let role = self.0.clone();
        Box::pin(async move {
            let path = request.uri().path();
            let Some((_, wire)) = R::SERVED.iter().find(|(served, _)| *served == path) else {
                let status = Status::unimplemented(format!("no method {path}"));
                return Ok(status.into_http());
            };
            let open = Opener(role, *wire);
            let mut grpc = Grpc::new(RawCodec).max_decoding_message_size(R::LONGEST);
            Ok(grpc.streaming(open, request).await)
        })
    }
}

/// Opens the stream of a request.
struct Opener<R>(R, Wire);

impl<R: Role> StreamingService<Bytes> for Opener<R> {
    type Response = Bytes;
    type ResponseStream = ReceiverStream<Result<Bytes, Status>>;
    type Future = std::future::Ready<Result<Response<Self::ResponseStream>, Status>>;

    /// Starts a task for the stream, whose messages are read from a channel. It
    /// ends when the other end does, or its connection is about to close.
    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let connection = request.extensions().get::<Connection>();
        let peer = connection.and_then(|connection| connection.peer);
        let is_for_secrets = connection.is_some_and(|one| one.is_for_secrets(false));
        let closing = request.extensions().get::<Closing>().cloned();
        let Closing(closing) = closing.unwrap_or_default();
        let (out, messages) = mpsc::channel(1);
        let role = self.0.clone();
        let mut link = Link {
            peer: peer.map_or_else(String::new, |peer| peer.to_string()),
            is_for_secrets,
            wire: self.1,
            form: Form::Accepted {
                inbound: Box::new(request.into_inner()),
                out: out.clone(),
            },
        };
        tokio::spawn(async move {
            let why = tokio::select! {
                ended = role.run(&mut link) => ended.why,
                () = closing.cancelled() => Why::Refused(Status::unavailable("closing")),
            };
            if let Why::Refused(status) = why {
                // Fails if the other end no longer reads.
                let _ = out.send(Err(status)).await;
            }
        });
        std::future::ready(Ok(Response::new(ReceiverStream::new(messages))))
    }
}
