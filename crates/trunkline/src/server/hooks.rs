//! Where an embedder takes part: who may connect, who may see what, and what
//! happens.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use http::HeaderMap;
use tonic::Status;
use trunkline_core::resource::TypeUrl;

use super::contents::Changed;
use super::report::{Peer, Report};

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an embedder may say and is told. Every method has a default that
/// allows everything and does nothing.
///
/// Except for [`Hooks::authenticate`] they are called by the stream's own task,
/// so they should be quick.
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
    /// and says who is at its other end, if that is known.
    fn authenticate<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Option<String>, Status>> {
        let _ = call;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Decides whether a peer may see a type. To one that may not, none of its
    /// names exist; its stream goes on (S72).
    fn authorise(&self, peer: Peer<'_>, type_url: &TypeUrl) -> bool {
        let _ = (peer, type_url);
        true
    }

    /// Something happened on a stream.
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        let _ = (peer, report);
    }

    /// A change was accepted.
    fn changed(&self, origin: &str, changed: &[Changed]) {
        let _ = (origin, changed);
    }

    /// A change has reached all its subscribers, and they have answered.
    fn converged(&self, took: Duration) {
        let _ = took;
    }

    /// A limit was met.
    fn limited(&self, limit: Limit) {
        let _ = limit;
    }
}

/// A limit of a server that was met.
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
    /// In one word, for metrics.
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

/// How a stream came about.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Call {
    /// The path of its request.
    pub path: String,
    /// The headers of its request.
    pub headers: HeaderMap,
    /// What is known of the connection; the defaults if another server than
    /// this one accepted it.
    pub connection: Connection,
}

/// What is known of a connection. A server that mounts this one may put its
/// own into the extensions of a request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Connection {
    /// Whence.
    pub peer: Option<SocketAddr>,
    /// Where to.
    pub local: Option<SocketAddr>,
    /// Whether it is behind TLS.
    pub secure: bool,
    /// Whether the client showed a certificate that was checked.
    pub certified: bool,
    /// Who the client's certificate says it is.
    pub identity: Option<String>,
}

impl Connection {
    /// Whether nobody else can listen: it is local, or behind TLS.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.secure || self.peer.is_some_and(|peer| peer.ip().is_loopback())
    }
}

/// Calls a closure for what happens on streams.
pub(super) struct Observe<F>(pub(super) F);

impl<F: Fn(Peer<'_>, Report<'_>) + Send + Sync + 'static> Hooks for Observe<F> {
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        (self.0)(peer, report);
    }
}
