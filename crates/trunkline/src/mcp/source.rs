//! A source: collections, and the streams of the sinks that ask for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::Notify;
use trunkline_core::Moment;
use trunkline_core::change::{Change, Transaction};
use trunkline_core::database::ApplyError;
use trunkline_core::mcp::{Canaries, Publisher, PublisherStream, Served};
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::BackoffConfig;
use trunkline_proto::mcp::{SINK_METHOD, SOURCE_METHOD};

use super::accept::{Accept, Role};
use super::dial;
use super::link::{Ended, Link, Wire};
use super::source_status::SourceStatus;
use super::source_stream;
use super::{McpResource, delta_xds, wire, xds};
use crate::Server;
use crate::bounds::MCP_REQUEST;
use crate::client::ControlPlane;
use crate::hub::{Engine, EngineGuard, Sliced};
use crate::listen::Listening;

/// Settings of a source.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The collections that it serves.
    pub served: Served,
    /// Sinks that get an update before others; `None` if all get it at once
    /// (M14).
    pub canaries: Option<Canaries>,
    /// How it dials sinks that it lost.
    pub backoff: BackoffConfig,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            served: Served::Any,
            canaries: None,
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
    options: SourceOptions,
    state: Engine<State>,
    /// When time begins for the machines.
    start: Instant,
    /// Told when the soak time of an update begins, or is over for another
    /// reason.
    soaking: Notify,
    /// Whether a task brings updates to everyone.
    is_promoting: AtomicBool,
    /// Long requests are read one at a time: what they say takes several times
    /// their bytes.
    pub(super) reading: tokio::sync::Mutex<()>,
}

/// Contents, and every open stream.
pub(super) struct State {
    pub(super) publisher: Publisher,
    pub(super) streams: BTreeMap<PublisherStream, Open>,
    /// Counters of streams that have ended.
    pub(super) ended_streams: SourceStatus,
}

/// An open stream.
pub(super) struct Open {
    pub(super) peer: String,
    /// Woken by changes that concern the stream.
    pub(super) woken: Arc<Notify>,
}

impl Sliced for State {
    fn end_slice(&mut self) {
        self.publisher.end_slice();
    }
}

impl State {
    /// Wakes streams that are still open.
    fn wake(&self, streams: impl IntoIterator<Item = PublisherStream>) {
        for stream in streams {
            if let Some(open) = self.streams.get(&stream) {
                open.woken.notify_one();
            }
        }
    }

    /// Wakes the streams that the last changes concern.
    pub(super) fn wake_concerned(&mut self) {
        let woken = self.publisher.take_woken();
        self.wake(woken);
    }
}

/// How long the task of roll-outs sleeps at least and at most.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl Shared {
    /// Locks contents and streams; nobody waits while they are locked, and what
    /// is long is done in slices.
    pub(super) fn lock(&self) -> EngineGuard<'_, State> {
        self.state.lock()
    }

    /// Lets others go on between two slices: threads that wait for the lock,
    /// and other streams.
    pub(super) async fn give_way(&self) {
        self.state.give_way();
        tokio::task::yield_now().await;
    }

    /// Returns the time as the machines see it.
    pub(super) fn now(&self) -> Moment {
        Moment::new(self.start.elapsed())
    }

    /// Lets the soak time be looked at again, by a task that is started at the
    /// first call. Does nothing without canaries: there is no soak time then.
    pub(super) fn look_at_soak(self: &Arc<Self>) {
        if self.options.canaries.is_none() {
            return;
        }
        if !self.is_promoting.swap(true, Ordering::Relaxed) {
            tokio::spawn(promote(Arc::downgrade(self)));
        }
        self.soaking.notify_one();
    }
}

/// Brings updates to everyone when their soak time is over, as long as the
/// source lives.
async fn promote(source: Weak<Shared>) {
    while let Some(shared) = source.upgrade() {
        let deadline = {
            let mut state = shared.lock();
            let streams = state.publisher.promote(shared.now());
            if !streams.is_empty() {
                tracing::info!("an update goes to all sinks: canaries have taken it");
            }
            state.wake(streams);
            state.publisher.deadline()
        };
        let wait = deadline.map_or(LONGEST_WAIT, |deadline| {
            let remaining = deadline - shared.now();
            remaining.clamp(SHORTEST_WAIT, LONGEST_WAIT)
        });
        // The time of a wait is bounded so that the task ends with the source.
        let _ = tokio::time::timeout(wait, shared.soaking.notified()).await;
    }
}

impl Default for McpSource {
    fn default() -> Self {
        Self::new(SourceOptions::default())
    }
}

impl fmt::Debug for McpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("McpSource");
        debug.field("options", &self.shared.options);
        debug.finish_non_exhaustive()
    }
}

impl McpSource {
    /// Makes a source without contents.
    #[must_use]
    pub fn new(options: SourceOptions) -> Self {
        let publisher = Publisher::new(options.served.clone(), options.canaries.clone());
        let state = State {
            publisher,
            streams: BTreeMap::new(),
            ended_streams: SourceStatus::default(),
        };
        Self {
            shared: Arc::new(Shared {
                options,
                state: Engine::new(state),
                start: Instant::now(),
                soaking: Notify::new(),
                is_promoting: AtomicBool::new(false),
                reading: tokio::sync::Mutex::default(),
            }),
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
        state.publisher.apply(changes, self.shared.now())?;
        state.wake_concerned();
        self.shared.soaking.notify_one();
        Ok(())
    }

    /// Returns the names of the collections that have resources, and how many.
    #[must_use]
    pub fn collections(&self) -> BTreeMap<TypeUrl, usize> {
        let state = self.shared.lock();
        let db = state.publisher.contents();
        let types = db.types();
        let types = types.map(|(id, name)| (name.clone(), db.len(id)));
        types.filter(|(_, len)| *len > 0).collect()
    }

    /// Returns what sinks hold, and what they rejected.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        SourceStatus::of(&self.shared.lock(), self.shared.now())
    }

    /// Serves `ResourceSource` to sinks that dial, as `listening` says, TLS
    /// included.
    pub async fn listen(self, listener: TcpListener, listening: Listening) {
        self.accept(listener, listening, Accept::alone).await;
    }

    /// Listens as [`Self::listen`] does, beside a server: a stream that is
    /// refused here counts among the limits of the server, and requests that do
    /// not arrive share its bounds.
    pub async fn listen_beside(self, server: &Server, listener: TcpListener, listening: Listening) {
        let bounds = server.request_bounds();
        let make_service = |source| Accept::with_bounds(source, bounds);
        self.accept(listener, listening, make_service).await;
    }

    /// Listens with the service that `service` makes of this.
    async fn accept(
        self,
        listener: TcpListener,
        listening: Listening,
        service: impl FnOnce(Self) -> Accept<Self>,
    ) {
        let service = service(self);
        let report_limit = service.limit_reporter();
        listening.serve(listener, service, report_limit).await;
    }

    /// Dials a sink and speaks `ResourceSink`, again and again.
    pub async fn dial(self, sink: ControlPlane) {
        let backoff = self.shared.options.backoff;
        dial::dial(self, sink, backoff).await;
    }
}

impl Role for McpSource {
    const SERVED: &'static [(&'static str, Wire)] = &[
        (SOURCE_METHOD, Wire::Mcp),
        (xds::METHOD, Wire::Xds),
        (delta_xds::METHOD, Wire::DeltaXds),
    ];

    const LONGEST: usize = MCP_REQUEST;

    const IS_ASKED: bool = true;

    fn dialled_method(&self) -> (&'static str, Wire) {
        (SINK_METHOD, Wire::Mcp)
    }

    async fn run(self, link: &mut Link) -> Ended {
        source_stream::run(&self.shared, link).await
    }
}
