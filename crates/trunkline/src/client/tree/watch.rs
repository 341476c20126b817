//! Roots: listeners and clusters that are watched with everything below them.
//! Also what concerns all trees of a client at once: what is warming, the work,
//! and that hosts are resolved again.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;
use trunkline_core::tree::{Key, RootId, Work};
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::listener::v3::Listener;

use super::cluster::ClusterSnapshot;
use super::held::RawSnapshot;
use super::place::{NodeKey, Referrer, place_of_query};
use super::snapshot::{AnySnapshot, ListenerSnapshot, Show};
use super::trees::Shown;
use crate::client::handle::{Client, Running};
use crate::client::query::Query;
use crate::kind::CDS;

/// A watch of a listener or a cluster with everything below it.
///
/// As with a [`Watch`](crate::client::Watch), a reader that is slow skips
/// snapshots, never the last one, and makes nobody wait. Clones read on their
/// own. When the last one is dropped, everything that only this root needs is
/// unsubscribed from.
pub struct SnapshotWatch<T> {
    receiver: Shown,
    root: Arc<RootLease>,
    value_type: PhantomData<fn() -> T>,
}

/// A root, which ends with its last reader.
struct RootLease {
    client: Arc<Running>,
    id: RootId,
}

impl Drop for RootLease {
    fn drop(&mut self) {
        self.client.trees.remove(&self.client, self.id);
    }
}

/// A resource that is not in use yet, or not in its newest version: it is
/// warming (E3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warming {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// What it waits for: resources that it refers to, or itself if nothing is
    /// known of it.
    pub waits_for: Vec<(TypeUrl, Name)>,
}

impl Client {
    /// Watches a listener with everything below it: routes, clusters,
    /// endpoints, secrets, filters. Each is asked for where the resource says
    /// that names it.
    ///
    /// ```no_run
    /// use trunkline::client::Client;
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder().server("127.0.0.1:18000")?.node_id("me").build();
    /// let mut listener = client.listener("front");
    /// loop {
    ///     let snapshot = listener.changed().await;
    ///     for cluster in snapshot.routes().iter().flat_map(|route| route.clusters()) {
    ///         println!("{}: {:?}", cluster.name(), cluster.load_assignment());
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn listener(&self, query: impl Into<Query<Listener>>) -> SnapshotWatch<ListenerSnapshot> {
        self.root(&query.into(), None)
    }

    /// Watches a listener for the requests to one host: of its routes only the
    /// virtual host that matches counts, and only the clusters of that one are
    /// subscribed to (C52). Virtual hosts on demand (VHDS) are asked for.
    #[must_use]
    pub fn listener_for_host(
        &self,
        query: impl Into<Query<Listener>>,
        host: &str,
    ) -> SnapshotWatch<ListenerSnapshot> {
        self.root(&query.into(), Some(host.into()))
    }

    /// Watches a cluster with everything below it.
    #[must_use]
    pub fn cluster(&self, query: impl Into<Query<Cluster>>) -> SnapshotWatch<ClusterSnapshot> {
        self.root(&query.into(), None)
    }

    /// Watches the resource of a query as a root. A selector that is no name
    /// gives a root that never has a resource.
    fn root<T, S>(&self, query: &Query<T>, host: Option<Arc<str>>) -> SnapshotWatch<S> {
        let client = self.running();
        let name = match &query.selector {
            Selector::Name(name) => name.clone(),
            // A root is one resource, and no resource has such a name.
            other => Name::new(other.as_str()),
        };
        let type_url = query.type_url.as_str();
        let source = query.source.as_ref();
        let place = place_of_query(client, type_url, &name, source, query.parent);
        let key = Key {
            host,
            params: query.params(&Params::default()),
            ..Key::new(type_url, name, place)
        };

        let (id, receiver) = client.trees.add(client, key);
        let client = Arc::clone(client);
        SnapshotWatch {
            receiver,
            root: Arc::new(RootLease { client, id }),
            value_type: PhantomData,
        }
    }

    /// Returns what is warming, in all trees of the client: what Envoy's
    /// `/init_dump` shows (E1).
    #[must_use]
    pub fn warming(&self) -> Vec<Warming> {
        let nodes = self.running().trees.warming().into_iter();
        let type_and_name = |key: &Arc<NodeKey>| (key.type_url.clone(), key.name.clone());
        let resources = nodes.map(|node| {
            let (type_url, name) = type_and_name(&node.key);
            let waits_for = node.waits_for.iter().map(type_and_name).collect();
            Warming {
                type_url,
                name,
                waits_for,
            }
        });
        resources.collect()
    }

    /// Returns the work that all trees have made since the last call, and resets
    /// the counters.
    pub fn take_tree_work(&self) -> Work {
        self.running().trees.take_work()
    }

    /// Requests that the hosts of all DNS clusters are resolved again now, rather
    /// than at the next refresh (C55). Call it when a connection to such a host
    /// failed. Returns at once; new addresses come in a snapshot, and the old
    /// ones stay if the lookup fails.
    pub fn resolve_again(&self) {
        self.running().trees.resolve_again();
    }
}

impl<T: Show> SnapshotWatch<T> {
    /// Returns the newest snapshot; `None` until the first is complete. The
    /// next call of [`SnapshotWatch::changed`] waits for another.
    pub fn snapshot(&mut self) -> Option<T> {
        show(self.receiver.borrow_and_update().as_ref())
    }

    /// Returns the newest snapshot, after waiting for the first if there is none
    /// yet. A root without a resource has a snapshot, too, once it is certain
    /// that the resource does not exist, or the fetch timeout of its source is
    /// over (E1).
    pub async fn ready(&mut self) -> T {
        match self.snapshot() {
            Some(snapshot) => snapshot,
            None => self.changed().await,
        }
    }

    /// Waits for another snapshot than the one that was read last. The first
    /// call returns at once if there is any. Can be cancelled without loss.
    pub async fn changed(&mut self) -> T {
        loop {
            if self.receiver.changed().await.is_err() {
                // The sender lives as long as this watch.
                std::future::pending::<()>().await;
            }
            if let Some(snapshot) = self.snapshot() {
                return snapshot;
            }
        }
    }

    /// Returns the snapshots as a stream, which does not end.
    pub fn into_stream(self) -> impl Stream<Item = T> + Send + Unpin {
        Snapshots {
            snapshots: WatchStream::from_changes(self.receiver),
            _root: self.root,
            value_type: PhantomData,
        }
    }

    /// Subscribes to a cluster beside those that the root refers to, until the
    /// result is dropped: one that a request names in a header, or one that a
    /// call still uses although no route does (C54). Snapshots show the cluster
    /// when it is known, and do not wait for it.
    pub fn subscribe_cluster(&self, name: &str) -> ClusterSubscription {
        let root = Arc::clone(&self.root);
        let client = &root.client;
        let referrer = Referrer {
            client,
            origin: trunkline_core::client::Origin::Static,
        };
        let key = referrer.by_name(CDS, name);
        client.trees.subscribe(client, root.id, key.clone());
        ClusterSubscription { root, key }
    }
}

/// Returns a snapshot in the form that the watch's type asks for.
fn show<T: Show>(snapshot: Option<&Arc<RawSnapshot>>) -> Option<T> {
    snapshot.map(|snapshot| T::show(AnySnapshot(Arc::clone(snapshot))))
}

/// A subscription to a cluster beside a root; dropping it ends it.
#[must_use]
pub struct ClusterSubscription {
    root: Arc<RootLease>,
    key: NodeKey,
}

impl Drop for ClusterSubscription {
    fn drop(&mut self) {
        let client = &self.root.client;
        client.trees.unsubscribe(client, self.root.id, &self.key);
    }
}

impl std::fmt::Debug for ClusterSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ClusterSubscription")
            .field(&self.key.name)
            .finish()
    }
}

/// A watch as a stream.
struct Snapshots<T> {
    snapshots: WatchStream<Option<Arc<RawSnapshot>>>,
    /// The root ends with the stream.
    _root: Arc<RootLease>,
    value_type: PhantomData<fn() -> T>,
}

impl<T: Show> Stream for Snapshots<T> {
    type Item = T;

    /// Passes over the time before the first snapshot.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        loop {
            let next = std::task::ready!(Pin::new(&mut self.snapshots).poll_next(cx));
            match next {
                None => return Poll::Ready(None),
                Some(snapshot) => {
                    if let Some(snapshot) = show(snapshot.as_ref()) {
                        return Poll::Ready(Some(snapshot));
                    }
                }
            }
        }
    }
}

impl<T> Clone for SnapshotWatch<T> {
    fn clone(&self) -> Self {
        Self {
            receiver: self.receiver.clone(),
            root: Arc::clone(&self.root),
            value_type: PhantomData,
        }
    }
}

impl<T> std::fmt::Debug for SnapshotWatch<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotWatch")
            .field("id", &self.root.id)
            .finish_non_exhaustive()
    }
}
