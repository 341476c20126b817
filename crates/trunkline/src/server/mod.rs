//! A server of aggregated discovery streams.
//!
//! ```text
//!  apply ──▶ database ──▶ woken streams                one lock, never held
//!               ▲              │                       while something is
//!               │ lock         ▼                       encoded or sent
//!  requests ─▶ task of a stream: handle, poll ─▶ one message ─▶ body ─▶ HTTP/2
//!               ▲                                  (a channel of one)
//!               └── clock
//! ```
//!
//! | file | concern |
//! |---|---|
//! | `service` | which path is which protocol |
//! | `drive` | the task of a stream: waits, and does nothing else |
//! | `stream` | the session of a stream: bytes in, frames out |
//! | `shared` | the database and who is woken by it |
//! | `body` | frames as an HTTP body, the status at its end |
//! | `report` | what an embedder is told |
//!
//! A response is built when the body has taken the one before, so a slow peer
//! costs two messages at most and gets the newest state next.

mod body;
mod builder;
mod drive;
mod report;
mod service;
mod shared;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

pub use builder::Builder;
pub use report::{Observer, Peer, Report, Sent};

use service::Ads;
use shared::Shared;
use trunkline_core::change::Change;
use trunkline_core::database::ApplyError;

/// How often a silent connection is asked whether it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long connections may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// A server; clones are the same one.
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

/// Why a server ended other than by being stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error("serving ended: {0}")]
    Transport(#[from] tonic::transport::Error),
}

impl Server {
    /// A server with settings of one's own.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Makes all changes, or none; then tells the streams that they concern.
    ///
    /// # Errors
    /// If the contents that would result are not sound; nothing has changed.
    pub fn apply(&self, changes: Vec<Change>) -> Result<(), ApplyError> {
        self.shared.with(|db| db.apply(changes))
    }

    /// Serves on a listener until the server is stopped. May be called for
    /// several listeners.
    ///
    /// # Errors
    /// If the listener fails.
    pub async fn serve(&self, listener: TcpListener) -> Result<(), ServeError> {
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let serving = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEP_ALIVE))
            .serve_with_incoming_shutdown(
                Ads::new(Arc::clone(&self.shared)),
                incoming,
                self.shared.stopped(),
            );
        let too_long = async {
            self.shared.stopped().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            ended = serving => Ok(ended?),
            () = too_long => Ok(()),
        }
    }

    /// Stops serving: streams end, and with them `serve`.
    pub fn stop(&self) {
        self.shared.stop();
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::builder().build()
    }
}
