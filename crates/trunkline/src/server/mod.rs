//! A server of discovery streams.
//!
//! ```text
//!  contents ─▶ apply ─▶ database ─▶ woken streams      one lock, never held
//!                          ▲              │            while something is
//!                          │ lock         ▼            encoded or sent
//!  requests ─▶ body of a response: handle, poll ─▶ one message ─▶ HTTP
//!                          ▲                     (when it has room)
//!                          └── clock
//! ```
//!
//! | file | concern |
//! |---|---|
//! | `service`, `paths` | the stream that an HTTP request opens |
//! | `services`, `poll` | the services beside discovery, and REST |
//! | `admit`, `quotas` | admission of streams |
//! | `body`, `driver` | a stream as the body of a response: waits, and decides nothing |
//! | `requests`, `arrived`, `unfinished` | messages cut out of the request's body, and the memory that they take |
//! | `ending` | the end of a stream by the server |
//! | `status`, `explain` | the state of clients, and why a client gets what it gets |
//! | `stream`, `stream_state`, `push`, `scrub`, `client_node`, `request_details`, `request_outcome`, `revisions`, `oversize` | the session of a stream: bytes in, frames out, events |
//! | `shared` | the hub, and what a server has beside it |
//! | `settle`, `precondition` | contents of all origins, settled with each other |
//! | `store`, `keeping`, `queue`, `restore` | contents that outlive the server, kept one by one or many at once |
//! | `lease`, `leases`, `expiry` | resources that stay only as long as their writer lives |
//! | `convergence` | how long a change takes to reach its subscribers |
//! | `arrival` | which clients have answered all that was sent for a change |
//! | `pace` | how fast requests are read |
//! | `builder`, `contents`, `set`, `hooks`, `hook_set`, `limit`, `report`, `options` | the embedder's side |
//!
//! A response is built when the transport has taken the one before, so a slow
//! client costs one message at most and gets the newest state next.

mod admit;
mod arrival;
mod arrived;
mod aside;
mod body;
mod builder;
mod client_node;
mod contents;
mod convergence;
mod driver;
mod ending;
mod expiry;
mod explain;
mod group_commit;
mod hook_set;
mod hooks;
mod keeping;
mod lease;
mod leases;
mod limit;
mod options;
mod oversize;
mod pace;
mod poll;
mod precondition;
mod push;
mod queue;
mod quotas;
mod report;
mod request_bounds;
mod request_details;
mod request_outcome;
mod requests;
mod restore;
mod revisions;
mod scrub;
mod service;
mod services;
mod set;
mod settle;
mod shared;
mod shares;
mod status;
mod store;
mod stream;
mod stream_state;
mod unfinished;
mod whole_messages;

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::net::TcpListener;
use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, Database};
use trunkline_core::resource::{Resource, TypeUrl};

use crate::checked::{ContentSet, Guard, Proposal, Settlement};
use crate::listen::Listening;
use crate::load::Load;
use crate::memory::Memory;
use crate::questions::Questions;
use crate::tls::Tls;

pub use arrival::{Arrival, ArrivalState, Awaited, ClientArrival, Outstanding, RejectedResource};
pub use body::Body;
#[cfg(feature = "mcp")]
pub(crate) use body::status_trailers;
pub use builder::Builder;
pub use contents::{Changed, Contents, Writer};
pub use hooks::{BoxFuture, Call, Connection, Hooks, Limit};
pub use keeping::Terms;
pub use lease::{LeaseEvent, LeaseState, LeaseStatus, LeaseTtl, LeaseTtlError, Lifetime};
pub use options::Options;
#[cfg(feature = "mcp")]
pub(crate) use pace::Pace;
pub use precondition::{Conflict, Precondition, RecentChange};
pub use report::{Acknowledged, Oversized, Peer, Report, RequestDetails, Sent};
#[cfg(feature = "mcp")]
pub(crate) use request_bounds::RequestBounds;
pub use service::Service;
#[cfg(feature = "mcp")]
pub(crate) use service::connection_of;
#[cfg(feature = "mcp")]
pub(crate) use set::Manner;
pub use set::{Accepted, Rejected, ResourceMessage};
pub use settle::{Applied, ChangeCounts};
pub use store::{
    Kept, LeaseChange, Repeatable, Store, StoreError, StoredTransaction, TransactionInfo,
    count_rows,
};
#[cfg(feature = "mcp")]
pub(crate) use whole_messages::WholeMessages;

use shared::Shared;

/// A server of discovery streams; clones are the same one.
///
/// ```
/// use trunkline::envoy::config::cluster::v3::Cluster;
/// use trunkline::{ResourceMessage, Server, kind};
///
/// let server = Server::default();
/// let cluster = Cluster {
///     name: "backend".to_owned(),
///     ..Cluster::default()
/// };
/// server.set("example", [ResourceMessage::of(&cluster)])?;
/// assert_eq!(server.all(&kind::CDS.into()).len(), 1);
/// # Ok::<(), trunkline::Rejected>(())
/// ```
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// Returns the bounds on requests that arrive, for services beside this
    /// one.
    #[cfg(feature = "mcp")]
    pub(crate) fn request_bounds(&self) -> RequestBounds {
        self.shared.request_bounds()
    }

    /// Returns a builder with default settings.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Applies all changes, or none; then wakes the streams that they concern.
    /// Returns the variants that became different.
    ///
    /// More than [`SLICE`](trunkline_core::database::SLICE) names are changed
    /// in slices, between which streams may see some of the changes, in a safe
    /// order: dependencies first, removals last.
    ///
    /// # Errors
    /// If the resources that would result are not sound; nothing has changed.
    pub fn apply(&self, changes: Vec<Change>) -> Result<Vec<Changed>, ApplyError> {
        self.apply_as("program", changes)
    }

    /// Applies all changes, or none, as [`Self::apply`] does. The origin says
    /// who made them: hooks are told it, for logs.
    ///
    /// # Errors
    /// If the resources that would result are not sound; nothing has changed.
    pub fn apply_as(&self, origin: &str, changes: Vec<Change>) -> Result<Vec<Changed>, ApplyError> {
        let (changed, _) = self.shared.apply(origin, changes)?;
        Ok(changed)
    }

    /// Settles changes that an origin proposes with the contents of all origins,
    /// and applies them. The author is whoever made the changes: hooks are told,
    /// for logs. Contents with many resources take long; one proposal waits for
    /// the one before.
    pub fn settle(&self, author: &str, proposal: Proposal<'_>) -> Settlement<Applied> {
        self.shared.settle(author, proposal, Lifetime::Kept)
    }

    /// Settles changes as [`Self::settle`] does, if a precondition holds.
    ///
    /// # Errors
    /// The precondition does not hold; nothing has changed.
    pub fn settle_if(
        &self,
        author: &str,
        proposal: Proposal<'_>,
        precondition: &Precondition,
    ) -> Result<Settlement<Applied>, Conflict> {
        self.settle_for(author, proposal, precondition, Lifetime::Kept)
    }

    /// Settles changes as [`Self::settle_if`] does, and says what they mean for
    /// the lease of their origin, in one step. A change that is rejected leaves
    /// the lease as it was, and so does one that is not applied.
    ///
    /// # Errors
    /// The precondition does not hold; nothing has changed.
    pub fn settle_for(
        &self,
        author: &str,
        proposal: Proposal<'_>,
        precondition: &Precondition,
        lifetime: Lifetime,
    ) -> Result<Settlement<Applied>, Conflict> {
        let terms = Terms {
            precondition: precondition.clone(),
            lifetime,
            ..Terms::default()
        };
        self.settle_on(author, proposal, &terms)
    }

    /// Settles changes as [`Self::settle`] does, on some terms.
    ///
    /// # Errors
    /// A precondition does not hold, or the change was made before; nothing has
    /// changed.
    pub fn settle_on(
        &self,
        author: &str,
        proposal: Proposal<'_>,
        terms: &Terms,
    ) -> Result<Settlement<Applied>, Conflict> {
        self.shared.settle_on(author, proposal, terms)
    }

    /// Makes the contents, the revision and the leases those that a store has
    /// kept. To be called before the server is started.
    ///
    /// # Errors
    /// They contradict each other: a newer release has stricter rules. Nothing
    /// has changed.
    pub fn restore(&self, kept: Kept) -> Result<(), Rejected> {
        self.shared.restore(kept)
    }

    /// Returns the store that keeps the contents, if there is one.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.shared.store.as_ref()
    }

    /// Renews the lease of an origin. Returns whether it has one; if not, its
    /// resources are gone or stay without a lease, and a writer writes them
    /// again. Does not wait for changes.
    #[must_use]
    pub fn renew(&self, origin: &str) -> bool {
        self.shared.leases.renew(origin)
    }

    /// Ends the lease of an origin as if it had not been renewed: its resources
    /// are removed. If the guard holds that, they stay, and so does the lease,
    /// as one that has ended. Returns `None` if there is no lease.
    pub fn end_lease(
        &self,
        author: &str,
        origin: &str,
        guard: Guard,
    ) -> Option<Settlement<Applied>> {
        self.shared.end_lease(author, origin, guard)
    }

    /// Returns all leases, by origin.
    #[must_use]
    pub fn leases(&self) -> Vec<LeaseStatus> {
        self.shared.leases.list()
    }

    /// Returns the revision of the contents: the number of transactions that
    /// they are from.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared.revision()
    }

    /// Confirms a change that is held, by its hash: it is accepted when it is
    /// proposed again. Contents are told, so that they propose it; the removal
    /// for a lease that has ended is proposed soon. See [`Guard`].
    pub fn confirm(&self, hash: &str) {
        self.shared.lock_set().confirm(hash);
        self.shared.leases.confirm(hash);
        for contents in &self.shared.contents {
            contents.confirmed();
        }
    }

    /// Reads the contents of all origins. Proposals wait meanwhile.
    pub fn read_set<T>(&self, look: impl FnOnce(&ContentSet) -> T) -> T {
        look(&self.shared.lock_set())
    }

    /// Reads the database. Streams wait meanwhile, so be quick: resources are
    /// shared and cheap to clone.
    pub fn read<T>(&self, look: impl FnOnce(&Database) -> T) -> T {
        self.shared.with(|db| look(db))
    }

    /// Returns every resource of a type with all its variants, in no order.
    /// Streams do not wait meanwhile, so the list may be from several
    /// transactions.
    #[must_use]
    pub fn all(&self, type_url: &TypeUrl) -> Vec<Arc<Resource>> {
        self.shared.all_resources(type_url)
    }

    /// Returns the longest wait for the database, since the start or since
    /// [`Self::take_longest_wait`].
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        self.shared.hub.longest_wait()
    }

    /// Returns the longest wait for the database, and resets it.
    #[must_use]
    pub fn take_longest_wait(&self) -> Duration {
        self.shared.hub.take_longest_wait()
    }

    /// Returns whether all contents are loaded (S51).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.shared.watch_ready().borrow()
    }

    /// Waits until all contents are loaded.
    pub async fn ready(&self) {
        // The sender lives as long as `self`.
        let mut ready = self.shared.watch_ready();
        let _ = ready.wait_for(|is_ready| *is_ready).await;
    }

    /// Starts the contents, each in a task of its own, unless they were
    /// started. [`Self::serve`] does it as well.
    pub fn start(&self) {
        if !self.shared.claim_start() {
            return;
        }
        tokio::spawn(drop_unused_lists(Arc::downgrade(&self.shared)));
        for (place, contents) in self.shared.contents.iter().enumerate() {
            let shared = Arc::clone(&self.shared);
            tokio::spawn(Arc::clone(contents).run(Writer { shared, place }));
        }
    }

    /// Serves on a listener until the server has drained or is stopped. May be
    /// called for several listeners.
    pub async fn serve(&self, listener: TcpListener) {
        self.serve_with(listener, None).await;
    }

    /// Serves on a listener, with TLS if it is given, until the server has
    /// drained or is stopped. Starts the contents, unless they were started.
    pub async fn serve_with(&self, listener: TcpListener, tls: Option<Tls>) {
        self.start();
        let options = &self.shared.options;
        let listening = Listening {
            tls,
            connections: options.connections,
            connections_per_address: options.connections_per_address,
            streams: options.streams_per_connection,
            send_timeout: options.send_timeout,
            keep_alive: options.keep_alive,
            keep_alive_timeout: options.keep_alive_timeout,
            max_age: options.max_age,
            lanes: options.lanes.clone(),
            draining: self.shared.draining.clone(),
            stopped: self.shared.stopped.clone(),
        };

        let hooks = Arc::clone(&self.shared.hooks);
        let met = move |limit| hooks.limited(limit);
        listening.serve(listener, self.service(), met).await;
    }

    /// Returns the server as an HTTP service, to be mounted on another
    /// listener.
    #[must_use]
    pub fn service(&self) -> Service {
        let shared = Arc::clone(&self.shared);
        Service { shared }
    }

    /// Returns the load reports of clients, and their settings.
    #[must_use]
    pub fn load(&self) -> &Load {
        &self.shared.load
    }

    /// Returns the memory of the process, as the server sees it.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// Returns the bounds on requests that are answered once, for those that
    /// others answer beside this server.
    #[must_use]
    pub fn questions(&self) -> &Questions {
        &self.shared.questions
    }

    /// Reports to the hooks a limit that was met beside this server.
    pub fn limited(&self, limit: Limit) {
        self.shared.hooks.limited(limit);
    }

    /// Returns whether the server drains or has stopped.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.draining.is_cancelled()
    }

    /// Waits until the server drains or has stopped.
    pub async fn drain_started(&self) {
        self.shared.draining.cancelled().await;
    }

    /// Ends streams one by one, within [`Options::drain`], so that clients
    /// connect elsewhere; goes on serving them until then (S79).
    pub async fn drain(&self) {
        self.start_draining();
        tokio::time::sleep(self.shared.options.drain).await;
        self.stop();
    }

    /// Stops serving: streams end, and with them [`Self::serve`].
    pub fn stop(&self) {
        self.start_draining();
        self.shared.stopped.cancel();
    }

    /// Tells clients, by the end of their streams and by health checks, to
    /// connect elsewhere. Returns at once.
    fn start_draining(&self) {
        self.shared.health.set_ready(false);
        self.shared.draining.cancel();
    }
}

/// The interval at which lists that no stream has used are dropped.
const TRIM_INTERVAL: Duration = Duration::from_secs(30);

/// Drops lists that no stream has used for an interval, again and again, until
/// the server stops or its last handle is dropped.
async fn drop_unused_lists(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(TRIM_INTERVAL).await;
        let Some(shared) = shared.upgrade().filter(|s| !s.stopped.is_cancelled()) else {
            return;
        };
        shared.with(Database::drop_unused_lists);
        shared.known_versions.drop_unused();
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::builder().build()
    }
}
