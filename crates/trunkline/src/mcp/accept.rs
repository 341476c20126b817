//! The service of a role that listens: a task for each stream.

use std::convert::Infallible;
use std::future::Future;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use tokio::sync::mpsc;
use tonic::Status;

use super::answer::AnswerBody;
use super::link::{Answers, Ended, Form, Link, Why, Wire};
use crate::bounds::{MCP_MESSAGE, MCP_UNFINISHED};
use crate::listen::{BoxError, Closing, LaneExecutor};
use crate::server::{BoxFuture, Connection, Limit, RequestBounds, WholeMessages, connection_of};

/// A source or a sink: what it does on a stream.
pub(super) trait Role: Clone + Send + Sync + 'static {
    /// The methods that it serves where it listens.
    const SERVED: &'static [(&'static str, Wire)];

    /// The most bytes of a message that it takes.
    const LONGEST: usize;

    /// Whether the other end speaks first, and soon, where this side listens.
    const IS_ASKED: bool;

    /// Returns the method that it opens where it dials, and the form of its
    /// messages.
    fn dialled_method(&self) -> (&'static str, Wire);

    /// Serves a stream until it ends.
    fn run(self, link: &mut Link) -> impl Future<Output = Ended> + Send;
}

/// The gRPC service of a role.
#[derive(Clone, Debug)]
pub(super) struct Accept<R> {
    role: R,
    bounds: RequestBounds,
}

impl<R: Role> Accept<R> {
    /// Returns the service of a role that runs without a server.
    pub(super) fn alone(role: R) -> Self {
        Self::with_bounds(role, RequestBounds::alone(MCP_MESSAGE, MCP_UNFINISHED))
    }

    /// Returns the service of a role that shares the bounds of a server.
    pub(super) fn with_bounds(role: R, bounds: RequestBounds) -> Self {
        Self { role, bounds }
    }

    /// Returns a function that reports that a limit was met.
    pub(super) fn limit_reporter(&self) -> impl Fn(Limit) + Send + Sync + 'static {
        let bounds = self.bounds.clone();
        move |limit| bounds.report_limit(limit)
    }

    /// Starts a task for a stream, whose messages it sends to the body of the
    /// response, in the lane of its connection. The task ends when the other
    /// end closes the stream, or its connection is about to close.
    fn open<B>(&self, wire: Wire, request: Request<B>) -> Response<tonic::body::Body>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let extensions = request.extensions();
        let Closing(closing) = extensions.get::<Closing>().cloned().unwrap_or_default();
        let executor = extensions.get::<LaneExecutor>().cloned();
        let (answers, answer_queue) = mpsc::channel(1);
        let mut link = self.make_link(wire, request, answers.clone());

        let role = self.role.clone();
        executor.unwrap_or_default().spawn(async move {
            let reason = tokio::select! {
                ended = role.run(&mut link) => ended.why,
                () = closing.cancelled() => Why::Refused(Status::unavailable("closing")),
            };
            // What arrived of a message is let go before the other end hears.
            drop(link);
            if let Why::Refused(status) = reason {
                // Fails if the other end no longer reads.
                let _ = answers.send(Err(status)).await;
            }
        });

        let mut response = Response::new(tonic::body::Body::new(AnswerBody::new(answer_queue)));
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(CONTENT_TYPE, grpc);
        response
    }

    /// Makes the link of an accepted stream, which reads the body of the
    /// request and sends to `answers`.
    fn make_link<B>(&self, wire: Wire, request: Request<B>, answers: Answers) -> Link
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let activity = connection_of(&request);
        let connection = request.extensions().get::<Connection>();
        let peer = connection.and_then(|connection| connection.peer);
        let is_for_secrets = connection.is_some_and(|connection| connection.is_for_secrets(false));

        let bounds = self.bounds.clone();
        let body = request.into_body();
        let messages = WholeMessages::new(body, bounds.clone(), activity, R::LONGEST);
        let messages = match R::IS_ASKED {
            true => messages,
            false => messages.without_first_deadline(),
        };
        Link {
            peer: peer.map_or_else(String::new, |peer| peer.to_string()),
            is_for_secrets,
            wire,
            bounds: Some(bounds),
            form: Form::Accepted {
                inbound: Box::new(messages),
                answers,
            },
        }
    }
}

impl<R: Role, B> tower_service::Service<Request<B>> for Accept<R>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// Opens a stream, by the method that the path names. Another path is an
    /// unimplemented method.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path();
        let method = R::SERVED
            .iter()
            .find(|(served_path, _)| *served_path == path);
        let response = match method {
            Some((_, wire)) => self.open(*wire, request),
            None => Status::unimplemented(format!("no method {path}")).into_http(),
        };
        Box::pin(std::future::ready(Ok(response)))
    }
}
