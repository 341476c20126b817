//! The types that the tool can make contents of.

use clap::ValueEnum;
use serde::Serialize;
use trunkline_core::kind;
use trunkline_proto::discovery::fields;

use super::Mark;

/// A type of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
pub enum Kind {
    /// Clusters.
    #[value(name = "cds")]
    #[serde(rename = "cds")]
    Clusters,
    /// Endpoints.
    #[value(name = "eds")]
    #[serde(rename = "eds")]
    Endpoints,
    /// Listeners.
    #[value(name = "lds")]
    #[serde(rename = "lds")]
    Listeners,
    /// Routes.
    #[value(name = "rds")]
    #[serde(rename = "rds")]
    Routes,
    /// Virtual hosts. Their names are under a route configuration: the prefix
    /// of all names has a slash.
    #[value(name = "vhds")]
    #[serde(rename = "vhds")]
    Hosts,
}

impl Kind {
    /// Every one, in the order in which a client subscribes.
    pub const ALL: [Self; 5] = [
        Self::Clusters,
        Self::Endpoints,
        Self::Listeners,
        Self::Routes,
        Self::Hosts,
    ];

    /// Returns its index in [`Self::ALL`].
    pub(crate) fn place(self) -> usize {
        self as usize
    }

    /// Returns the short name that people use.
    #[must_use]
    pub fn short(self) -> &'static str {
        ["cds", "eds", "lds", "rds", "vhds"][self.place()]
    }

    /// Returns its type URL.
    #[must_use]
    pub fn url(self) -> &'static str {
        [kind::CDS, kind::EDS, kind::LDS, kind::RDS, kind::VHDS][self.place()]
    }

    /// Returns the type of a URL; `None` if the tool has none.
    pub(crate) fn of(url: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.url() == url)
    }

    /// Returns the type whose resources lead to these by name: a client
    /// subscribes to the names that it was led to. `None` if there is no such
    /// type.
    pub(crate) fn led_to_by(self) -> Option<Self> {
        match self {
            Self::Endpoints => Some(Self::Clusters),
            Self::Routes => Some(Self::Listeners),
            Self::Clusters | Self::Listeners | Self::Hosts => None,
        }
    }

    /// Returns the paths of the methods of its own service: that of state of
    /// the world, and that of delta.
    pub(crate) fn methods(self) -> [&'static str; 2] {
        match self {
            Self::Clusters => [
                "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
                "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters",
            ],
            Self::Endpoints => [
                "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints",
                "/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints",
            ],
            Self::Listeners => [
                "/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners",
                "/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners",
            ],
            Self::Routes => [
                "/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes",
                "/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes",
            ],
            // There is no other than delta.
            Self::Hosts => {
                ["/envoy.service.route.v3.VirtualHostDiscoveryService/DeltaVirtualHosts"; 2]
            }
        }
    }

    /// Returns where the revision stands in a body: the numbers of fields, from
    /// the outside in. See [`super::make`].
    fn revision_path(self) -> &'static [u32] {
        match self {
            // alt_stat_name
            Self::Clusters => &[28],
            // endpoints, lb_endpoints, endpoint, hostname
            Self::Endpoints => &[2, 2, 1, 3],
            // stat_prefix
            Self::Listeners => &[28],
            // virtual_hosts, name
            Self::Routes => &[2, 1],
            // routes, name
            Self::Hosts => &[3, 14],
        }
    }

    /// Reads the mark in a body; `None` if the body is not one of the tool's.
    pub(crate) fn read_mark(self, body: &[u8]) -> Option<Mark> {
        let mut at = body;
        for number in self.revision_path() {
            at = fields(at).find(|(n, _)| n == number)?.1;
        }
        Mark::parse(at)
    }
}
