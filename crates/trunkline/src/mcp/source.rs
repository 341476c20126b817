//! A source: collections, and the streams of the sinks that ask for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::sync::Notify;
use trunkline_core::change::{Change, Transaction};
use trunkline_core::database::{ApplyError, Database, StreamId};
use trunkline_core::mcp::{McpSource as Machine, Served};
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::BackoffConfig;
use trunkline_proto::mcp::{SINK_METHOD, SOURCE_METHOD};

use super::accept::{Accept, Role};
use super::dial;
use super::link::{Ended, Link};
use super::source_status::SourceStatus;
use super::source_stream;
use super::{McpResource, wire};
use crate::client::ControlPlane;
use crate::listen::Listening;

/// Settings of a source.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The collections that it serves.
    pub served: Served,
    /// How it dials sinks that it lost.
    pub backoff: BackoffConfig,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            served: Served::Any,
            backoff: BackoffConfig::default(),
        }
    }
}

/// A source of collections. Clones share them. It listens, dials, or both, as
/// often as it is told to.
#[derive(Clone)]
pub struct McpSource {
    pub(super) shared: Arc<Shared>,
}

/// What streams share.
pub(super) struct Shared {
    pub(super) options: SourceOptions,
    state: Mutex<State>,
}

/// Contents, and every open stream.
#[derive(Default)]
pub(super) struct State {
    pub(super) db: Database,
    pub(super) streams: BTreeMap<StreamId, Open>,
    /// Counters of streams that have ended.
    pub(super) past: SourceStatus,
}

/// An open stream.
pub(super) struct Open {
    pub(super) machine: Machine,
    pub(super) peer: String,
    /// Woken by changes that concern the stream.
    pub(super) woken: Arc<Notify>,
}

impl Shared {
    /// Locks contents and streams; nobody waits while they are locked.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for McpSource {
    fn default() -> Self {
        Self::new(SourceOptions::default())
    }
}

impl fmt::Debug for McpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("McpSource");
        shown.field("options", &self.shared.options);
        shown.finish_non_exhaustive()
    }
}

impl McpSource {
    /// A source without contents.
    #[must_use]
    pub fn new(options: SourceOptions) -> Self {
        let state = Mutex::default();
        Self {
            shared: Arc::new(Shared { options, state }),
        }
    }

    /// Makes a collection have exactly these resources. One without a version
    /// gets one: a hash of its contents.
    ///
    /// # Errors
    /// A name is there twice; nothing has changed.
    pub fn set(
        &self,
        collection: impl AsRef<str>,
        resources: impl IntoIterator<Item = McpResource>,
    ) -> Result<(), ApplyError> {
        let resources = resources.into_iter().map(wire::to_core).map(Arc::new);
        let collection = TypeUrl::new(collection);
        self.apply(vec![Change::ReplaceAll(collection, resources.collect())])
    }

    /// Makes one resource of a collection have these contents.
    ///
    /// # Errors
    /// The contents cannot be; nothing has changed.
    pub fn upsert(
        &self,
        collection: impl AsRef<str>,
        resource: McpResource,
    ) -> Result<(), ApplyError> {
        let resource = Arc::new(wire::to_core(resource));
        self.apply(vec![Change::Upsert(TypeUrl::new(collection), resource)])
    }

    /// Applies changes of several collections as one. The body of a resource is
    /// an encoded [`McpResource`].
    ///
    /// # Errors
    /// The contents cannot be; nothing has changed.
    pub fn apply(&self, changes: Transaction) -> Result<(), ApplyError> {
        let mut state = self.shared.lock();
        state.db.apply(changes)?;
        for stream in state.db.take_woken_streams() {
            if let Some(open) = state.streams.get(&stream) {
                open.woken.notify_one();
            }
        }
        Ok(())
    }

    /// The names of the collections that have resources, and how many.
    #[must_use]
    pub fn collections(&self) -> BTreeMap<TypeUrl, usize> {
        let state = self.shared.lock();
        let types = state.db.types();
        let types = types.map(|(id, name)| (name.clone(), state.db.len(id)));
        types.filter(|(_, len)| *len > 0).collect()
    }

    /// What sinks hold, and what they rejected.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        SourceStatus::of(&self.shared.lock())
    }

    /// Serves `ResourceSource` to sinks that dial, as `listening` says, TLS
    /// included.
    pub async fn listen(self, listener: TcpListener, listening: Listening) {
        listening.serve(listener, Accept(self), |_| ()).await;
    }

    /// Dials a sink and speaks `ResourceSink`, again and again.
    pub async fn dial(self, sink: ControlPlane) {
        let backoff = self.shared.options.backoff;
        dial::dial(self, sink, backoff).await;
    }
}

impl Role for McpSource {
    const SERVED: &'static str = SOURCE_METHOD;
    const DIALLED: &'static str = SINK_METHOD;

    async fn run(self, link: &mut Link) -> Ended {
        source_stream::run(&self.shared, link).await
    }
}
