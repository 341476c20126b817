//! Hooks: an embedder's decisions about streams, and the events it is told.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use http::{HeaderMap, Request};
use tonic::Status;
use trunkline_core::resource::TypeUrl;

use super::contents::Changed;
use super::lease::LeaseEvent;
use super::report::{Peer, Report};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An embedder's decisions about streams, and the events it is told. Every
/// method has a default that allows everything and does nothing.
///
/// Except for [`Hooks::authenticate`] the methods are called by the stream's
/// own task, so they should be quick.
///
/// ```
/// use trunkline::{Event, Hooks, Peer, Report, Server};
///
/// struct Log;
/// impl Hooks for Log {
///     fn report(&self, peer: Peer<'_>, report: Report<'_>) {
///         if let Report::Event(Event::Nacked { error, .. }) = report {
///             eprintln!("{} rejects: {}", peer.node, error.message);
///         }
///     }
/// }
/// let server = Server::builder().hooks(Log).build();
/// ```
pub trait Hooks: Send + Sync + 'static {
    /// Decides whether a stream may begin, before anything is sent on it (S78),
    /// or another service be called; health checks are not authenticated.
    /// Returns the client's identity, if it is known.
    fn authenticate<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Option<String>, Status>> {
        let _ = call;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Decides whether a client may see a type. To one that may not, none of
    /// its names exist; its stream goes on (S72).
    fn authorise(&self, peer: Peer<'_>, type_url: &TypeUrl) -> bool {
        let _ = (peer, type_url);
        true
    }

    /// Called when something happened on a stream.
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        let _ = (peer, report);
    }

    /// Returns whether reports of requests have their names, nonce and error,
    /// which are copied for it. Called for each request.
    fn reads_requests(&self) -> bool {
        false
    }

    /// Called when a change was accepted, with the revision that it made. The
    /// origin says who made it. Changes are told one by one, in the order of
    /// their revisions, so this method must not make another change itself:
    /// it would wait for its own return.
    fn changed(&self, revision: u64, origin: &str, changed: &[Changed]) {
        let _ = (revision, origin, changed);
    }

    /// Called when a change has reached all its subscribers, and they have
    /// acknowledged it, so long after it was accepted.
    fn converged(&self, took: Duration) {
        let _ = took;
    }

    /// Called when the first response after a change that concerns a stream was
    /// given to the transport of its client, so long after the change was
    /// accepted. One response may bring several changes: the oldest counts.
    fn pushed(&self, type_url: &TypeUrl, took: Duration) {
        let _ = (type_url, took);
    }

    /// Called when leases ended, or began anew.
    fn lease(&self, event: LeaseEvent<'_>) {
        let _ = event;
    }

    /// Called when a limit was reached.
    fn limited(&self, limit: Limit) {
        let _ = limit;
    }
}

/// A limit of a server that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// A stream was refused: there are too many.
    Streams,
    /// A connection had to wait: there are too many.
    Connections,
    /// Requests had to wait: the stream makes too many in a second.
    RequestRate,
    /// A response had to wait for others.
    Pushes,
    /// A response had to wait for the bytes of others.
    Bytes,
    /// A stream was refused: the first contents are not there yet (S51).
    NotReady,
}

impl Limit {
    /// The label of the limit in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::Connections => "connections",
            Self::RequestRate => "request_rate",
            Self::Pushes => "pushes",
            Self::Bytes => "bytes",
            Self::NotReady => "not_ready",
        }
    }
}

/// The HTTP request that opens a stream, polls by REST, or calls another service
/// of the server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Call {
    /// Its path.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its connection; the default if another server than this one accepted it.
    pub connection: Connection,
}

impl Call {
    /// Describes a request by its path, headers and connection.
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let connection = request.extensions().get::<Connection>();
        Self {
            path: request.uri().path().to_owned(),
            headers: request.headers().clone(),
            connection: connection.cloned().unwrap_or_default(),
        }
    }
}

/// A connection. A server that mounts this one may put its own into the
/// extensions of a request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Connection {
    /// The client's address.
    pub peer: Option<SocketAddr>,
    /// The server's address.
    pub local: Option<SocketAddr>,
    /// Whether it is behind TLS.
    pub secure: bool,
    /// Whether the client sent a certificate that was verified.
    pub certified: bool,
    /// The identity in the client's certificate.
    pub identity: Option<String>,
}

impl Connection {
    /// Whether nobody else can listen: the connection is local, or behind TLS.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.secure || self.peer.is_some_and(|peer| peer.ip().is_loopback())
    }
}

/// Hooks that call a closure with each report.
pub(super) struct Observe<F>(pub(super) F);

impl<F: Fn(Peer<'_>, Report<'_>) + Send + Sync + 'static> Hooks for Observe<F> {
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        (self.0)(peer, report);
    }
}
