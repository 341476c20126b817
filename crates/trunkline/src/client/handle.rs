//! The client, and what runs behind it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use trunkline_core::client::{Origin, ServerId, SourceId, WatchId, Watched};
use trunkline_core::name::Selector;
use trunkline_core::sink;
use trunkline_proto::discovery::{Limits, Node};

use super::bootstrap::envoy_node;
use super::builder::ClientBuilder;
use super::config_source::{ConfigSource, Specifier};
use super::control_plane::ControlPlane;
use super::driver::drive;
use super::events::Observers;
use super::load::{LoadReporter, LoadTask, Reporting};
use super::metrics::Sample;
use super::query::Query;
use super::settings::{Settings, SourceError};
use super::shared::{Cell, Shared};
use super::sources::{Manners, ServerInfo, Sources};
use super::state::{ErasedState, Loaded};
use super::subscription::{Lease, Subscription};
use super::transport::Connector;
use super::tree::{Trees, grow};
use super::watch::{Watch, WatchMany, Watching};

/// An xDS client: subscribes at control planes, and tells watches what they
/// send.
///
/// Clones are the same client. It runs as tasks of the tokio runtime in which
/// it was made, until it and all its subscriptions and watches are dropped. It
/// connects when something is subscribed to, and closes what nobody needs.
///
/// ```no_run
/// use trunkline::client::{Client, State};
/// use trunkline::envoy::config::cluster::v3::Cluster;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder().server("127.0.0.1:18000")?.node_id("me").build();
/// let subscription = client.subscribe::<Cluster>("backend")?;
/// let mut watch = subscription.watch();
/// loop {
///     match watch.changed().await {
///         State::Ready(cluster) => println!("{} {:?}", cluster.name, cluster.version()),
///         State::Stale(cluster, error) => println!("{} still, but {error}", cluster.name),
///         State::Failed(error) => println!("none: {error}"),
///         State::Pending => {}
///     }
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    running: Arc<Running>,
}

/// What runs behind the handles of one client.
pub(super) struct Running {
    pub(super) shared: Arc<Shared>,
    pub(super) trees: Trees,
    pub(super) settings: Settings,
    pub(super) manners: Manners,
    pub(super) connector: Connector,
    pub(super) limits: Limits,
    pub(super) observers: Arc<Observers>,
    pub(super) sources: Mutex<Sources>,
    /// The tasks of streams, polls and files.
    pub(super) tasks: Mutex<Tasks>,
    /// How many streams were opened, or tried.
    pub(super) attempts: AtomicU64,
    reporting: Reporting,
    pub(super) runtime: Handle,
}

/// The tasks of a client, which end with it.
#[derive(Default)]
pub(super) struct Tasks {
    /// The task of each server: a stream, polls, or the watch of a file.
    pub(super) servers: HashMap<ServerId, AbortHandle>,
    /// The driver and the trees.
    permanent: Vec<AbortHandle>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let tasks = lock(&self.tasks);
        let handles = tasks.servers.values().chain(&tasks.permanent);
        handles.for_each(AbortHandle::abort);
    }
}

/// Locks a part of a client. Ignores poison: a task that panicked ends alone.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// Makes a client step by step.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Starts the driver and the trees of a client in the present runtime.
    /// Panics outside of one.
    pub(super) fn start(
        shared: Arc<Shared>,
        settings: Settings,
        manners: Manners,
        connector: Connector,
        limits: Limits,
        observers: Arc<Observers>,
    ) -> Self {
        let runtime = Handle::current();
        let running = Arc::new(Running {
            shared,
            trees: Trees::default(),
            settings,
            manners,
            connector,
            limits,
            observers,
            sources: Mutex::default(),
            tasks: Mutex::default(),
            attempts: AtomicU64::default(),
            reporting: Reporting::default(),
            runtime: runtime.clone(),
        });

        let driver = runtime.spawn(drive(Arc::downgrade(&running)));
        let trees = runtime.spawn(grow(Arc::downgrade(&running)));
        lock(&running.tasks).permanent = vec![driver.abort_handle(), trees.abort_handle()];
        Self { running }
    }

    /// Subscribes to a resource, or to many. The source sends changes until the
    /// subscription and all watches made from it are dropped. Two subscriptions
    /// to one resource are one at the source (C23).
    ///
    /// # Errors
    /// There is no source for the type or the name.
    pub fn subscribe<T: Send + Sync + 'static>(
        &self,
        query: impl Into<Query<T>>,
    ) -> Result<Subscription<T>, SourceError> {
        let query = query.into();
        let running = &self.running;
        let settings = &running.settings;
        let selector = settings.selector_of(&query.type_url, query.selector.clone());
        let named_source = match &query.source {
            Some(source) if source.specifier == Specifier::SelfSource => {
                Some(running.source_of_parent(query.parent)?)
            }
            source => source.clone(),
        };

        let source = settings.source_of(&query.type_url, &selector, named_source.as_ref())?;
        let subscription = sink::Subscription {
            params: query.params(&settings.params_of(&query.type_url, &selector)),
            selector,
        };

        let lease = running.lease(&source, query.type_url, subscription)?;
        Ok(Subscription::new(lease))
    }

    /// Watches a resource without asking for it: it is told what others
    /// subscribe to, by name or by wildcard, and what the bootstrap has. Of
    /// several control planes with the same name, the one that has had it for
    /// longest counts.
    #[must_use]
    pub fn watch<T: Send + Sync + 'static>(&self, query: impl Into<Query<T>>) -> Watch<T> {
        let subject = self.subject(&query.into());
        self.running.watch_one(subject, None)
    }

    /// Watches all resources of a query without asking for them.
    #[must_use]
    pub fn watch_many<T: Send + Sync + 'static>(&self, query: impl Into<Query<T>>) -> WatchMany<T> {
        let subject = self.subject(&query.into());
        self.running.watch_many(subject, None)
    }

    /// Returns the subject of a watch that asks for nothing: any source counts.
    fn subject<T>(&self, query: &Query<T>) -> Watched {
        let settings = &self.running.settings;
        Watched {
            type_url: query.type_url.clone(),
            selector: query.selector.clone(),
            params: query.params(&settings.params_of(&query.type_url, &query.selector)),
            source: None,
        }
    }

    /// Returns a reporter of load to the control plane that a resource came
    /// from: what `lrs_server: {self: {}}` of a cluster means. The stream opens
    /// with the first reporter, and closes with the last (C62).
    ///
    /// # Errors
    /// The resource is not from a control plane (C15).
    pub fn load_reporter<T>(&self, resource: &Loaded<T>) -> Result<LoadReporter, SourceError> {
        let running = &self.running;
        let server = running
            .server_of(resource.origin())
            .ok_or(SourceError::NoParent)?;
        let (reporter, new_stream) = running.reporting.reporter(&server);
        // Reporters of one server share a stream; the first one starts it.
        if let Some(new_stream) = new_stream {
            let node = envoy_node(running.node());
            let task = LoadTask::new(running.connector.clone(), server, node, new_stream);
            running.runtime.spawn(task.run());
        }
        Ok(reporter)
    }

    /// Returns the metrics of the client, with gRPC's names (C66).
    #[must_use]
    pub fn metrics(&self) -> Vec<Sample> {
        self.running.metrics()
    }

    /// Returns what runs behind the handles.
    pub(super) fn running(&self) -> &Arc<Running> {
        &self.running
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Running {
    /// Subscribes at a source, and adds the source to the machine if it is new
    /// there. The subscription lasts as long as the lease.
    pub(super) fn lease(
        self: &Arc<Self>,
        source: &ConfigSource,
        type_url: trunkline_core::resource::TypeUrl,
        subscription: sink::Subscription,
    ) -> Result<Lease, SourceError> {
        let mut sources = lock(&self.sources);
        let id = self.shared.change(|state, now| {
            let machine = &mut state.machine;
            let (timeout, manners) = (source.initial_fetch_timeout, &self.manners);
            let id = match &source.specifier {
                Specifier::Api(api) => {
                    sources.find_or_add_api_source(machine, api, timeout, &type_url, manners)
                }
                Specifier::Path(path) => {
                    sources.find_or_add_file_source(machine, path, timeout, &type_url, manners)
                }
                Specifier::Ads => return Err(SourceError::NoAds),
                Specifier::SelfSource => return Err(SourceError::NoParent),
            };
            machine.subscribe(id, &type_url, subscription.clone(), now)?;
            Ok(id)
        })?;
        drop(sources);

        Ok(Lease {
            client: Arc::clone(self),
            source: id,
            type_url,
            subscription,
        })
    }

    /// Returns the source that `self` means in a resource of this origin (C14).
    /// The static resources of a bootstrap have none.
    pub(super) fn source_of_parent(
        &self,
        parent: Option<Origin>,
    ) -> Result<ConfigSource, SourceError> {
        let source = match parent {
            Some(Origin::Source(id)) => lock(&self.sources).config_source(id),
            Some(Origin::Static) | None => None,
        };
        source.ok_or(SourceError::NoParent)
    }

    /// Returns the control plane that a resource of this origin came from.
    /// `None` means that the resource is static or from a file.
    fn server_of(&self, origin: Origin) -> Option<Arc<ControlPlane>> {
        let Origin::Source(source) = origin else {
            return None;
        };
        let id = self
            .shared
            .read(|state, _| state.machine.server_in_use(source))?;
        match lock(&self.sources).info.get(&id)? {
            ServerInfo::Api { control_plane, .. } => Some(Arc::clone(control_plane)),
            ServerInfo::File { .. } => None,
        }
    }

    /// Adds a watch of one name.
    pub(super) fn watch_one<T: Send + Sync + 'static>(
        self: &Arc<Self>,
        subject: Watched,
        lease: Option<Arc<Lease>>,
    ) -> Watch<T> {
        let (sender, receiver) = watch::channel(ErasedState::default());
        let id = self.add_watch(subject, Cell::One(sender));
        let watching = Watching {
            id,
            client: Arc::clone(self),
            _lease: lease,
        };
        Watch::new(receiver, Arc::new(watching))
    }

    /// Adds a watch of many names.
    pub(super) fn watch_many<T: Send + Sync + 'static>(
        self: &Arc<Self>,
        subject: Watched,
        lease: Option<Arc<Lease>>,
    ) -> WatchMany<T> {
        let news = Arc::new(Notify::new());
        let type_url = subject.type_url.clone();
        let id = self.add_watch(subject, Cell::Many(Arc::clone(&news)));
        let inner = Watching {
            id,
            client: Arc::clone(self),
            _lease: lease,
        };
        WatchMany::new(news, type_url, Arc::new(inner))
    }

    /// Adds a watch to the machine, and delivers to the cell what is known
    /// already. A watch with a cell of many names whose selector is a name
    /// watches the collection of that name, or else the whole type.
    pub(super) fn add_watch(&self, mut subject: Watched, cell: Cell) -> WatchId {
        if matches!(cell, Cell::Many(_))
            && let Selector::Name(name) = &subject.selector
        {
            let glob = trunkline_core::name::Glob::of(name);
            subject.selector = glob.map_or(Selector::Wildcard, Selector::Glob);
        }
        self.shared.change_without_waking(|state, _| {
            let id = state.machine.watch(subject);
            state.cells.insert(id, cell);
            id
        })
    }

    /// Returns the servers that are no files, with their addresses.
    pub(super) fn servers(&self) -> Vec<(ServerId, String)> {
        let sources = lock(&self.sources);
        let servers = sources.info.iter();
        let servers = servers.filter_map(|(id, info)| match info {
            ServerInfo::Api { control_plane, .. } => Some((*id, control_plane.address.to_string())),
            ServerInfo::File { .. } => None,
        });
        servers.collect()
    }

    /// Returns where sources are, for people.
    pub(super) fn places(&self) -> BTreeMap<SourceId, String> {
        lock(&self.sources).places()
    }

    /// Returns the name of the client in metrics and CSDS.
    pub(super) fn target(&self) -> &str {
        &self.settings.target
    }

    /// Returns the node of the client.
    pub(super) fn node(&self) -> &Node {
        &self.manners.node
    }
}
