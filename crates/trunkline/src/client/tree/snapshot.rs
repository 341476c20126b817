//! Snapshots of listeners, and the routes in them.

use std::ops::Deref;
use std::sync::Arc;

use trunkline_core::name::Name;
use trunkline_core::sink::{Cause, WatchError};
use trunkline_proto::envoy::envoy::config::core::v3::TypedExtensionConfig;
use trunkline_proto::envoy::envoy::config::listener::v3::Listener;
use trunkline_proto::envoy::envoy::config::route::v3::{
    RouteConfiguration, ScopedRouteConfiguration, VirtualHost,
};
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::Secret;
use trunkline_proto::envoy::envoy::service::runtime::v3::Runtime;

use super::cluster::ClusterSnapshot;
use super::held::{Held, RawPart, RawSnapshot};
use super::part::Part;
use super::references::virtual_host;
use crate::client::raw::Raw;
use crate::kind::{CDS, ECDS, RDS, RTDS, SDS, SRDS, VHDS};

/// A listener with everything below it, complete at one moment. It never
/// changes; clones share it.
#[derive(Clone, Debug)]
pub struct ListenerSnapshot {
    snapshot: Arc<RawSnapshot>,
}

impl ListenerSnapshot {
    /// Makes the handle of a snapshot whose root is a listener.
    pub(super) fn new(snapshot: Arc<RawSnapshot>) -> Self {
        Self { snapshot }
    }

    /// Returns the listener.
    #[must_use]
    pub fn listener(&self) -> Part<Listener> {
        Part::new(&self.snapshot.root)
    }

    /// Returns the route configurations: those inside of the listener, those by
    /// RDS, and those of [`Self::scopes`]. One that several scopes refer to comes
    /// more than once.
    #[must_use]
    pub fn routes(&self) -> Vec<RouteSnapshot> {
        let root = &self.snapshot.root;
        let inline = match root.content.value() {
            Some(Held::Resource(held)) => held.routes.as_slice(),
            _ => &[],
        };
        let inline = inline.iter().map(|config| RouteSnapshot {
            part: Arc::clone(root),
            inline: Some(Arc::clone(config)),
        });

        let dynamic = root.children.of_type(RDS);
        let scopes = self.scopes().into_iter();
        let scoped = scopes.flat_map(|scope| {
            let routes = scope.inner().children.of_type(RDS).cloned();
            routes.collect::<Vec<_>>()
        });
        let dynamic = dynamic.cloned().chain(scoped);
        let dynamic = dynamic.map(|part| RouteSnapshot { part, inline: None });
        inline.chain(dynamic).collect()
    }

    /// Returns the scopes of routes (SRDS), but for those on demand.
    #[must_use]
    pub fn scopes(&self) -> Vec<Part<ScopedRouteConfiguration>> {
        let collections = self.snapshot.root.children.of_type(SRDS);
        let scopes = collections.flat_map(|collection| collection.children.of_type(SRDS));
        scopes.map(Part::new).collect()
    }

    /// Returns the cluster of a name, if a route or the listener refers to it,
    /// or if it has a subscription of its own.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<ClusterSnapshot> {
        let key = Name::new(name);
        let root = &self.snapshot.root;
        let cluster = root.children.find(CDS, &key);
        let cluster = cluster.or_else(|| self.snapshot.subscribed.find(CDS, &key));
        let cluster = cluster.map(Part::new);
        cluster.or_else(|| self.routes().iter().find_map(|route| route.cluster(name)))
    }

    /// Returns the clusters that have subscriptions of their own.
    pub fn subscribed(&self) -> impl Iterator<Item = ClusterSnapshot> {
        self.snapshot.subscribed.iter().map(Part::new)
    }

    /// Returns the secrets of the listener's transport sockets.
    pub fn secrets(&self) -> impl Iterator<Item = Part<Secret>> {
        self.snapshot.root.children.of_type(SDS).map(Part::new)
    }

    /// Returns the filters whose configurations are subscribed to (ECDS).
    pub fn filters(&self) -> impl Iterator<Item = Part<TypedExtensionConfig>> {
        self.snapshot.root.children.of_type(ECDS).map(Part::new)
    }

    /// Returns the layers of the runtime that the bootstrap names (RTDS), in
    /// its order: a later one counts over those before. Empty if there is no
    /// listener.
    #[must_use]
    pub fn runtime(&self) -> Vec<Part<Runtime>> {
        let Some(Held::Resource(held)) = self.snapshot.root.content.value() else {
            return Vec::new();
        };
        let children = &self.snapshot.root.children;
        let layers = held.layers.iter();
        let parts = layers.filter_map(|name| children.find(RTDS, name));
        parts.map(Part::new).collect()
    }

    /// Returns the first error that concerns the whole snapshot (C53): there is
    /// no listener, or a route configuration is missing, or has no virtual host
    /// for the host of the tree. The error of a cluster is not one of these: it
    /// is in the cluster's own snapshot.
    #[must_use]
    pub fn error(&self) -> Option<WatchError> {
        let listener = self.listener();
        if listener.is_failed() {
            return listener.error().cloned();
        }
        self.routes().iter().find_map(RouteSnapshot::failure)
    }

    /// Returns whether two snapshots are one.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.snapshot, &other.snapshot)
    }
}

/// A route configuration with its clusters.
#[derive(Clone, Debug)]
pub struct RouteSnapshot {
    /// That of the route configuration, or of the listener that has it inside.
    part: Arc<RawPart>,
    inline: Option<Arc<RouteConfiguration>>,
}

impl RouteSnapshot {
    /// Returns the route configuration; `None` if there is none.
    #[must_use]
    pub fn config(&self) -> Option<Arc<RouteConfiguration>> {
        let of_part = || Some(Arc::clone(self.routes_part()?.value()?.value()));
        self.inline.clone().or_else(of_part)
    }

    /// Returns the resource, unless the configuration is inside of the
    /// listener.
    #[must_use]
    pub fn resource(&self) -> Option<Part<RouteConfiguration>> {
        self.routes_part()
    }

    /// Returns the part of the route configuration; `None` if that is inside of
    /// the listener, whose part it shares.
    fn routes_part(&self) -> Option<Part<RouteConfiguration>> {
        self.inline.is_none().then(|| Part::new(&self.part))
    }

    /// Returns the cluster of a name, if it is one of [`Self::clusters`].
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<ClusterSnapshot> {
        let name = Name::new(name);
        let own = self.part.children.find(CDS, &name);
        let hosts = self.part.children.of_type(VHDS);
        let of_hosts = || {
            hosts
                .into_iter()
                .find_map(|host| host.children.find(CDS, &name))
        };
        own.or_else(of_hosts).map(Part::new)
    }

    /// Returns the clusters that routes and mirrors refer to. One that both the
    /// configuration and a virtual host by VHDS refer to comes more than once.
    ///
    /// In a tree for one host, only the virtual host for it counts, and the
    /// mirrors of the whole configuration (C52). For a configuration inside of
    /// the listener, these are all clusters of the listener. Clusters that a
    /// request names in a header are not among them; those that have a
    /// subscription are in [`ListenerSnapshot::subscribed`].
    pub fn clusters(&self) -> impl Iterator<Item = ClusterSnapshot> {
        let hosts = self.part.children.of_type(VHDS);
        let of_hosts = hosts.flat_map(|host| host.children.of_type(CDS));
        self.part
            .children
            .of_type(CDS)
            .chain(of_hosts)
            .map(Part::new)
    }

    /// Returns the virtual host that matches `host` best, of those that came with
    /// the route configuration. If none does, returns the one that came by VHDS:
    /// it is for the host of the tree, and is not compared with `host`.
    #[must_use]
    pub fn virtual_host(&self, host: &str) -> Option<VirtualHostSnapshot> {
        if let Some(config) = self.config()
            && let Some(index) = virtual_host(&config, host)
        {
            return Some(VirtualHostSnapshot(HostOf::Routes(config, index)));
        }
        let mut on_demand = self
            .part
            .children
            .of_type(VHDS)
            .map(Part::<VirtualHost>::new);
        let host = on_demand.find_map(|part| part.value())?;
        Some(VirtualHostSnapshot(HostOf::Itself(Arc::clone(
            host.value(),
        ))))
    }

    /// Returns why there are no routes: the configuration is missing, or has no
    /// virtual host for the host that the tree is for (C53).
    fn failure(&self) -> Option<WatchError> {
        let failed_part = self.routes_part().filter(Part::is_failed);
        if let Some(part) = failed_part {
            return part.error().cloned();
        }
        let host = self.part.key.host.as_ref()?;
        if self.virtual_host(host).is_some() {
            return None;
        }
        Some(WatchError {
            cause: Cause::Deleted,
            message: format!("no virtual host matches {host}").into(),
        })
    }
}

/// A virtual host, which it dereferences to. Clones share it.
#[derive(Clone, Debug)]
pub struct VirtualHostSnapshot(HostOf);

#[derive(Clone, Debug)]
enum HostOf {
    /// A route configuration has it at this place of its list.
    Routes(Arc<RouteConfiguration>, usize),
    /// It came by itself (VHDS).
    Itself(Arc<VirtualHost>),
}

impl VirtualHostSnapshot {
    /// Returns whether two are one: they came in the same resource.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (HostOf::Routes(a, index), HostOf::Routes(b, other)) => {
                Arc::ptr_eq(a, b) && index == other
            }
            (HostOf::Itself(a), HostOf::Itself(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Deref for VirtualHostSnapshot {
    type Target = VirtualHost;

    fn deref(&self) -> &VirtualHost {
        match &self.0 {
            // The index was found in this very configuration.
            HostOf::Routes(config, index) => &config.virtual_hosts[*index],
            HostOf::Itself(host) => host,
        }
    }
}

/// What the watch of a root shows: a [`ListenerSnapshot`], a [`ClusterSnapshot`],
/// or the resource of any root as a [`Part`].
pub trait Show: Clone + Send + 'static {
    /// Reads it from a snapshot.
    fn show(snapshot: AnySnapshot) -> Self;
}

/// A snapshot of a root whose type is not known yet.
#[derive(Clone, Debug)]
pub struct AnySnapshot(pub(super) Arc<RawSnapshot>);

impl AnySnapshot {
    /// Returns the root as a part of this type.
    pub(super) fn root<T: Send + Sync + 'static>(&self) -> Part<T> {
        Part::new(&self.0.root)
    }
}

impl Show for ListenerSnapshot {
    fn show(snapshot: AnySnapshot) -> Self {
        Self::new(snapshot.0)
    }
}

impl Show for ClusterSnapshot {
    fn show(snapshot: AnySnapshot) -> Self {
        snapshot.root()
    }
}

/// The resource of any root, with everything below it.
impl Show for Part<Raw> {
    fn show(snapshot: AnySnapshot) -> Self {
        snapshot.root()
    }
}
