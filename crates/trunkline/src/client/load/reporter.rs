//! The handles by which calls are counted, and the table of open reporters.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use hashbrown::HashMap;
use tokio::sync::oneshot;
use tokio::time::Instant;
use trunkline_proto::envoy::envoy::config::core::v3::Locality;

use super::counters::Counters;
use super::store::{ClusterCounters, ClusterKey, Store};
use crate::client::control_plane::ControlPlane;

/// The reporters of a client, one for each control plane (C63).
#[derive(Debug, Default)]
pub(in crate::client) struct Reporting {
    open: Mutex<HashMap<Arc<ControlPlane>, Weak<Shared>>>,
}

/// What the stream of a new reporter needs.
pub(in crate::client) struct NewStream {
    pub(super) store: Arc<Store>,
    /// Ends when the last reporter is dropped.
    pub(super) closed: oneshot::Receiver<()>,
}

impl Reporting {
    /// Returns the reporter for a control plane. The first reporter of a
    /// control plane comes with the store and the signal that its stream needs.
    pub(in crate::client) fn reporter(
        &self,
        server: &Arc<ControlPlane>,
    ) -> (LoadReporter, Option<NewStream>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, shared| shared.strong_count() > 0);
        if let Some(shared) = open.get(server).and_then(Weak::upgrade) {
            return (LoadReporter { shared }, None);
        }

        let store = Arc::new(Store::default());
        let (keep_open, closed) = oneshot::channel();
        let shared = Arc::new(Shared {
            store: Arc::clone(&store),
            _keep_open: keep_open,
        });

        open.insert(Arc::clone(server), Arc::downgrade(&shared));
        (LoadReporter { shared }, Some(NewStream { store, closed }))
    }
}

#[derive(Debug)]
struct Shared {
    store: Arc<Store>,
    /// Dropped with the last reporter, which ends the stream.
    _keep_open: oneshot::Sender<()>,
}

/// Reports the load of clusters to one control plane, while it, or anything
/// made from it, is there. Clones are the same reporter.
///
/// ```no_run
/// use trunkline::client::{Client, Loaded, SourceError};
/// use trunkline::envoy::config::cluster::v3::Cluster;
/// use trunkline::envoy::config::core::v3::Locality;
///
/// # fn run(client: &Client, cluster: &Loaded<Cluster>) -> Result<(), SourceError> {
/// let reporter = client.load_reporter(cluster)?;
/// let locality = Locality { zone: "zone-a".into(), ..Locality::default() };
/// let zone_a = reporter.cluster("backend", "backend-endpoints").locality(&locality, 0);
///
/// let call = zone_a.begin();
/// // ... the call is made ...
/// call.succeed();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LoadReporter {
    shared: Arc<Shared>,
}

impl LoadReporter {
    /// Returns the counters of a cluster. `service` is the EDS service name of
    /// the cluster, or empty if that is the cluster's own name.
    #[must_use]
    pub fn cluster(&self, cluster: &str, service: &str) -> ClusterReporter {
        let key = ClusterKey {
            cluster: cluster.to_owned(),
            service: service.to_owned(),
        };
        ClusterReporter {
            counters: self.shared.store.cluster(&key, Instant::now()),
            reporter: self.clone(),
        }
    }
}

/// Counts the calls of one cluster.
#[derive(Clone, Debug)]
pub struct ClusterReporter {
    counters: Arc<ClusterCounters>,
    reporter: LoadReporter,
}

impl ClusterReporter {
    /// Returns the counters of a locality in one of the cluster's priorities.
    #[must_use]
    pub fn locality(&self, locality: &Locality, priority: u32) -> LocalityReporter {
        LocalityReporter {
            inner: Arc::new(LocalityInner {
                counters: self.counters.locality(locality, priority),
                _cluster: self.clone(),
            }),
        }
    }

    /// Counts a call that was dropped by policy before it was sent, by the
    /// category that dropped it. A breaker has no category: give an empty one.
    pub fn drop_call(&self, category: &str) {
        self.counters.drop_call(category);
    }

    /// Returns the reporter that this one was made by.
    #[must_use]
    pub fn reporter(&self) -> &LoadReporter {
        &self.reporter
    }
}

/// Counts the calls to one locality. Clones are the same counters.
#[derive(Clone, Debug)]
pub struct LocalityReporter {
    inner: Arc<LocalityInner>,
}

#[derive(Debug)]
struct LocalityInner {
    counters: Arc<Counters>,
    _cluster: ClusterReporter,
}

impl LocalityReporter {
    /// Counts a call that begins. It is in progress until the returned value is
    /// told how it ended.
    #[must_use]
    pub fn begin(&self) -> Call {
        self.inner.counters.begin();
        Call {
            locality: self.clone(),
            is_over: false,
        }
    }

    /// Adds a value to a named metric: what a backend said of a call, by ORCA
    /// (C64). The control plane's name of the metric is meant, `named_metrics.`
    /// and others before it included.
    pub fn add_metric(&self, name: &str, value: f64) {
        self.inner.counters.add_metric(name, value);
    }
}

/// A call in progress. One that is dropped has failed.
#[derive(Debug)]
pub struct Call {
    locality: LocalityReporter,
    is_over: bool,
}

impl Call {
    /// Counts the call as one that succeeded, and ends it.
    pub fn succeed(mut self) {
        self.end(true);
    }

    /// Counts the call as one that failed, and ends it.
    pub fn fail(mut self) {
        self.end(false);
    }

    /// Counts the end of the call, unless it was counted already.
    fn end(&mut self, is_success: bool) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.locality.inner.counters.end(is_success);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end(false);
    }
}
