//! Collections as the contents of a server: a sink that runs with it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::net::TcpListener;
use trunkline_core::mcp::{Delivery, Verdict};
use trunkline_core::resource::TypeUrl;

use super::server_owner::{OwnerOptions, ServerOwner};
use super::sink::{McpOwner, McpSink, SinkOptions};
use super::sink_status::SinkStatus;
use crate::client::ControlPlane;
use crate::listen::Listening;
use crate::server::{BoxFuture, Contents, Writer};

/// How a sink and its source come together.
#[derive(Debug)]
pub enum Door {
    /// The sink dials a source.
    Dial(Box<ControlPlane>),
    /// A source dials, and reaches the sink here.
    Listen(TcpListener, Box<Listening>),
}

/// The collections of a source as contents of a server. They count as loaded
/// when a response of each has been taken (S51).
///
/// ```no_run
/// use trunkline::Server;
/// use trunkline::mcp::{self, Door, McpContents, SinkOptions};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let options = SinkOptions::of("control-plane-1", ["envoy/cluster/v3/clusters"]);
/// let source = mcp::plaintext("127.0.0.1:9901".parse()?);
/// let contents = McpContents::new(options, Default::default(), Door::Dial(source.into()));
/// let server = Server::builder().contents(contents).build();
/// server.serve(trunkline::listen::bind("127.0.0.1:18000").await?).await;
/// # Ok(())
/// # }
/// ```
pub struct McpContents {
    options: SinkOptions,
    owner: OwnerOptions,
    /// Taken by the task that runs it.
    door: Mutex<Option<Door>>,
    sink: OnceLock<McpSink>,
}

impl McpContents {
    /// Makes the contents that a sink with these options receives through this
    /// door.
    #[must_use]
    pub fn new(options: SinkOptions, owner: OwnerOptions, door: Door) -> Arc<Self> {
        Arc::new(Self {
            options,
            owner,
            door: Mutex::new(Some(door)),
            sink: OnceLock::new(),
        })
    }

    /// Returns what the sink holds, and what was rejected.
    #[must_use]
    pub fn status(&self) -> SinkStatus {
        match self.sink.get() {
            Some(sink) => sink.status(),
            None => SinkStatus::of(&self.options.collections),
        }
    }

    /// Returns the collections of which no response has been taken yet.
    #[must_use]
    pub fn awaited(&self) -> Vec<TypeUrl> {
        let collections = self.status().collections.into_iter();
        let missing = collections.filter(|(_, status)| status.accepted == 0);
        missing.map(|(name, _)| name).collect()
    }
}

impl fmt::Debug for McpContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("McpContents");
        debug.field("options", &self.options);
        debug.finish_non_exhaustive()
    }
}

impl Contents for McpContents {
    /// Runs the sink. A second run does nothing.
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        let door = self.door.lock();
        let door = door.unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            let Some(door) = door else { return };
            let server = writer.server();
            let owner = Loading {
                owner: ServerOwner::with(server.clone(), self.owner.clone()),
                collections: self.options.collections.clone(),
                writer,
            };
            let sink = McpSink::new(self.options.clone(), owner);
            let sink = self.sink.get_or_init(|| sink).clone();
            match door {
                Door::Dial(source) => sink.dial(*source).await,
                Door::Listen(listener, listening) => {
                    sink.listen_beside(&server, listener, *listening).await;
                }
            }
        })
    }

    /// Asks again for what was held.
    fn confirmed(&self) {
        if let Some(sink) = self.sink.get() {
            sink.ask_again();
        }
    }
}

/// An owner that says when all collections were taken once.
struct Loading {
    owner: ServerOwner,
    collections: Vec<TypeUrl>,
    writer: Writer,
}

impl McpOwner for Loading {
    /// Counts the contents as loaded once a response of each collection was
    /// taken.
    fn apply(&self, delivery: Delivery) -> BoxFuture<'_, Verdict> {
        Box::pin(async move {
            let verdict = self.owner.apply(delivery).await;
            let loaded = self.owner.loaded_collections();
            if self.collections.iter().all(|name| loaded.contains(name)) {
                self.writer.loaded();
            }
            verdict
        })
    }
}
