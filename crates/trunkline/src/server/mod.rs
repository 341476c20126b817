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
//! | `service`, `paths` | which request is which stream |
//! | `services`, `poll` | the services beside it, and REST |
//! | `admit` | whether a stream may begin |
//! | `body`, `driver` | a stream as the body of a response: waits, and decides nothing |
//! | `requests` | messages cut out of what arrives |
//! | `ending` | when a stream has to end |
//! | `status`, `explain` | how clients stand, and why a host gets what it gets |
//! | `stream`, `outcome`, `marks` | the session of a stream: bytes in, frames out, what is told of it |
//! | `shared` | the hub, and what a server has beside it |
//! | `wave` | how long a change takes to arrive |
//! | `flight`, `pace` | how much at once, how fast |
//! | `contents`, `hooks`, `report`, `options` | what an embedder gives, decides and is told |
//!
//! A response is built when the transport has taken the one before, so a slow
//! peer costs one message at most and gets the newest state next.

mod admit;
mod body;
mod builder;
mod contents;
mod driver;
mod ending;

mod explain;
mod flight;
mod hook_set;
mod hooks;
mod known;
mod marks;
mod options;
mod outcome;
mod oversize;
mod pace;
mod paths;
mod poll;
mod report;
mod requests;
mod service;
mod services;
mod shared;
mod status;
mod stream;
mod wave;

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::net::TcpListener;
use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, Database};
use trunkline_core::resource::{Resource, TypeUrl};

use crate::listen::Listening;
use crate::load::Load;
use crate::tls::Tls;

pub use body::Body;
pub use builder::Builder;
pub use contents::{Changed, Contents, Writer};
pub use hooks::{BoxFuture, Call, Connection, Hooks, Limit};
pub use options::Options;
pub use report::{Oversized, Peer, Report, Sent};
pub use service::Service;

use shared::Shared;

/// A server; clones are the same one.
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// A server with settings of one's own.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Makes all changes, or none; then tells the streams that they concern.
    /// Says what became different.
    ///
    /// More than [`SLICE`](trunkline_core::database::SLICE) names are changed in
    /// slices, between which streams may see some of the changes, in an order
    /// that is safe: what is referred to comes first, and what goes goes last.
    ///
    /// # Errors
    /// If the contents that would result are not sound; nothing has changed.
    pub fn apply(&self, changes: Vec<Change>) -> Result<Vec<Changed>, ApplyError> {
        self.apply_as("program", changes)
    }

    /// The same, and says who made the changes, for logs.
    ///
    /// # Errors
    /// If the contents that would result are not sound; nothing has changed.
    pub fn apply_as(&self, origin: &str, changes: Vec<Change>) -> Result<Vec<Changed>, ApplyError> {
        self.shared.apply(origin, changes)
    }

    /// Looks at the contents. Streams wait meanwhile, so be quick: resources
    /// are shared and cheap to take along.
    pub fn read<T>(&self, look: impl FnOnce(&Database) -> T) -> T {
        self.shared.with(|db| look(db))
    }

    /// Every resource of a type with all its variants, in no order. Streams do
    /// not wait until all are found, so it may be from several transactions.
    #[must_use]
    pub fn all(&self, type_url: &TypeUrl) -> Vec<Arc<Resource>> {
        self.shared.all(type_url)
    }

    /// The longest that something had to wait for the database, since the start
    /// or since [`Self::take_longest_wait`].
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        self.shared.hub.longest_wait()
    }

    /// The same, and begins anew.
    #[must_use]
    pub fn take_longest_wait(&self) -> Duration {
        self.shared.hub.take_longest_wait()
    }

    /// Whether the first contents are there (S51).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.shared.ready().borrow()
    }

    /// Waits until the first contents are there.
    pub async fn ready(&self) {
        // The sender lives as long as this does.
        let _ = self.shared.ready().wait_for(|ready| *ready).await;
    }

    /// Starts what fills the server, unless it was started. [`Self::serve`]
    /// does it as well.
    pub fn start(&self) {
        if !self.shared.begin() {
            return;
        }
        tokio::spawn(trim(Arc::downgrade(&self.shared)));
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

    /// The same, behind TLS if it is given.
    pub async fn serve_with(&self, listener: TcpListener, tls: Option<Tls>) {
        self.start();
        let options = &self.shared.options;
        let listening = Listening {
            tls,
            connections: options.connections,
            streams: options.streams,
            keep_alive: options.keep_alive,
            keep_alive_timeout: options.keep_alive_timeout,
            max_age: options.max_age,
            draining: self.shared.draining.clone(),
            stopped: self.shared.stopped.clone(),
        };
        let full = || self.shared.hooks.limited(Limit::Connections);
        listening.serve(listener, self.service(), full).await;
    }

    /// The server as a service of HTTP, for a listener of one's own.
    #[must_use]
    pub fn service(&self) -> Service {
        let shared = Arc::clone(&self.shared);
        Service { shared }
    }

    /// What clients report of their load, and what they are asked for.
    #[must_use]
    pub fn load(&self) -> &Load {
        &self.shared.load
    }

    /// Whether the server drains or has stopped.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.draining.is_cancelled()
    }

    /// Ends streams one by one, within [`Options::drain`], so that clients
    /// connect elsewhere; goes on serving them until then (S79).
    pub async fn drain(&self) {
        self.begin_to_end();
        tokio::time::sleep(self.shared.options.drain).await;
        self.stop();
    }

    /// Stops serving: streams end, and with them [`Self::serve`].
    pub fn stop(&self) {
        self.begin_to_end();
        self.shared.stopped.cancel();
    }

    fn begin_to_end(&self) {
        self.shared.health.set_ready(false);
        self.shared.draining.cancel();
    }
}

/// How often memory is looked through for what is of no use any more.
const TRIM: Duration = Duration::from_secs(30);

/// Gives memory back for as long as there is a server.
async fn trim(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(TRIM).await;
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
