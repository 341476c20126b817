//! Clusters of snapshots, with their endpoints.

use std::sync::Arc;

use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::Secret;

use super::part::Part;
use super::references::DNS;
use crate::client::raw::Raw;
use crate::kind::{CDS, EDS, LEDS, SDS};

/// A cluster with everything below it.
pub type ClusterSnapshot = Part<Cluster>;

/// The endpoints of a cluster, by EDS.
pub type EndpointsSnapshot = Part<ClusterLoadAssignment>;

impl ClusterSnapshot {
    /// Returns the endpoints, if they come by EDS.
    #[must_use]
    pub fn endpoints(&self) -> Option<EndpointsSnapshot> {
        self.of_type(EDS).next()
    }

    /// Returns the endpoints, wherever they come from: by EDS, or inside of the
    /// cluster. `None` if there are none; why that is so by EDS is the error of
    /// [`Part::endpoints`].
    #[must_use]
    pub fn load_assignment(&self) -> Option<Arc<ClusterLoadAssignment>> {
        match self.endpoints() {
            Some(endpoints) => Some(Arc::clone(endpoints.value()?.value())),
            None => self.value()?.load_assignment.clone().map(Arc::new),
        }
    }

    /// Returns the hosts of a cluster whose endpoints come by DNS, by
    /// `host:port`, with their [`Part::addresses`].
    pub fn hosts(&self) -> impl Iterator<Item = Part<Raw>> {
        self.of_type(DNS)
    }

    /// Returns the clusters of an aggregate cluster, one level down.
    ///
    /// They are in the order of their names; [`Part::leaves`] has them in that
    /// of the configuration.
    pub fn clusters(&self) -> impl Iterator<Item = ClusterSnapshot> {
        self.of_type(CDS)
    }

    /// Returns the secrets of its transport sockets.
    pub fn secrets(&self) -> impl Iterator<Item = Part<Secret>> {
        self.of_type(SDS)
    }

    /// Returns the clusters that requests go to: itself, or of an aggregate
    /// cluster the leaves of all levels in the order of priority. A leaf that
    /// comes twice counts where it comes first, one that is missing is left out
    /// (C54).
    #[must_use]
    pub fn leaves(&self) -> Vec<ClusterSnapshot> {
        let mut leaves: Vec<ClusterSnapshot> = Vec::new();
        self.collect_leaves(&mut leaves);
        leaves
    }

    /// Adds the leaves that are not in the list yet. Levels of a tree are
    /// bounded (C54), and so is the recursion.
    fn collect_leaves(&self, leaves: &mut Vec<ClusterSnapshot>) {
        let Some(cluster) = self.value() else {
            return;
        };
        let Some(names) = super::references::aggregate_members(&cluster) else {
            if !leaves.iter().any(|leaf| leaf.name() == self.name()) {
                leaves.push(self.clone());
            }
            return;
        };
        for name in names {
            let child = self.inner().children.find(CDS, &name.as_str().into());
            if let Some(child) = child {
                Self::new(child).collect_leaves(leaves);
            }
        }
    }
}

impl EndpointsSnapshot {
    /// Returns the endpoints of a collection that a locality names (LEDS); none
    /// if the collection is not one of these endpoints.
    #[must_use]
    pub fn collection(&self, name: &str) -> Vec<Part<LbEndpoint>> {
        let collection = self.inner().children.find(LEDS, &name.into());
        let members = collection.into_iter().flat_map(|part| part.children.iter());
        members.map(Part::new).collect()
    }
}
