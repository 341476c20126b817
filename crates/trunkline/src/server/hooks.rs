//! Hooks: an embedder's decisions about streams, and the events it is told.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use http::{HeaderMap, Request};
use tonic::Status;
use trunkline_core::database::ApplyError;
use trunkline_core::resource::TypeUrl;

use super::contents::Changed;
use super::lease::LeaseEvent;
pub use super::limit::Limit;
use super::report::{Peer, Report};
use crate::identity::Identity;

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

    /// Returns whether [`Self::changing`] is to be called: its list is made for
    /// it. Called for each change.
    fn vetoes_changes(&self) -> bool {
        false
    }

    /// Decides whether a change may be made, before any of it is: with an error,
    /// which is the reason, nothing is changed. Contents from files propose it
    /// again later. The list is that of [`Self::changed`], but for
    /// [`Change::ReplaceAll`](crate::Change::ReplaceAll) and
    /// [`Change::Fail`](crate::Change::Fail), whose effects are not known
    /// before. Either `changed` or [`Self::withdrawn`] follows, before another
    /// change is told of.
    ///
    /// # Errors
    /// The change may not be made.
    fn changing(&self, origin: &str, changed: &[Changed]) -> Result<(), String> {
        let _ = (origin, changed);
        Ok(())
    }

    /// Called when a change that all hooks allowed was refused: its resources
    /// contradict others. Nothing was changed.
    fn withdrawn(&self, origin: &str, reason: &ApplyError) {
        let _ = (origin, reason);
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
    /// The name in the client's certificate, if it has one.
    pub identity: Option<Identity>,
}

impl Connection {
    /// Returns whether both ends are on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let is_loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
        self.peer.is_some_and(is_loopback) && self.local.is_some_and(is_loopback)
    }

    /// Returns whether nobody else can listen: the connection is local, or
    /// behind TLS. Who is at its other end is another matter.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.secure || self.is_local()
    }

    /// Returns whether secrets may go to a client on this connection, whose
    /// identity is known or not: it is local; or nobody else can listen, and
    /// the client has shown who it is, by a certificate or to the hooks.
    /// Without that, secrets would go to anybody who can reach the port.
    #[must_use]
    pub fn is_for_secrets(&self, has_identity: bool) -> bool {
        self.is_local() || (self.secure && (self.certified || has_identity))
    }
}

/// Hooks that call a closure with each report.
pub(super) struct Observe<F>(pub(super) F);

impl<F: Fn(Peer<'_>, Report<'_>) + Send + Sync + 'static> Hooks for Observe<F> {
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        (self.0)(peer, report);
    }
}
