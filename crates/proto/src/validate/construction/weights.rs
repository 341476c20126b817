//! The weights of the clusters of a route.

use prost_reflect::DynamicMessage;

use super::read::{Part, encoded_number, encoded_values, messages, report_at, wrapped_number};
use super::rejected::Rejected;
use crate::validate::walk::Walk;

/// `WeightedCluster.clusters`.
pub(super) const CLUSTERS: u32 = 1;
/// `WeightedCluster.ClusterWeight.weight`.
pub(super) const WEIGHT: u32 = 2;
const MAX_SUM: u64 = u32::MAX as u64;

/// The message around weighted clusters. Other protocols have them too, with
/// rules of their own.
const ROUTE_ACTION: &str = "envoy.config.route.v3.RouteAction";

/// Reports clusters without a weight, and weights whose sum is zero or more
/// than 32 bits.
pub(super) fn check_weights(walk: &mut Walk, weighted: &DynamicMessage) {
    if !walk.is_in_message(|name| name == ROUTE_ACTION) {
        return;
    }
    let clusters = messages(weighted, "clusters");
    if clusters.is_empty() {
        // The rules of the field report an empty list.
        return;
    }

    let mut sum = 0_u64;
    let mut is_complete = true;
    for (index, cluster) in clusters.iter().enumerate() {
        match wrapped_number(cluster, "weight") {
            Some(weight) => sum = sum.saturating_add(weight),
            None => {
                is_complete = false;
                let place = [
                    Part::Field("clusters"),
                    Part::Index(index),
                    Part::Field("weight"),
                ];
                report_at(walk, weighted, &place, Rejected::NoWeight);
            }
        }
    }

    let place = [Part::Field("clusters")];
    if is_complete && sum == 0 {
        report_at(walk, weighted, &place, Rejected::ZeroWeights);
    } else if sum > MAX_SUM {
        report_at(walk, weighted, &place, Rejected::LargeWeights { sum });
    }
}

/// Returns whether the weights in encoded weighted clusters are in order.
pub(super) fn is_plain(weighted: &[u8]) -> bool {
    sum_weights(weighted).is_some_and(|sum| (1..=MAX_SUM).contains(&sum))
}

/// Returns the sum of all weights. Returns `None` if a cluster has no weight,
/// or the bytes are not a message.
fn sum_weights(weighted: &[u8]) -> Option<u64> {
    let mut sum = 0_u64;
    for cluster in encoded_values(weighted, CLUSTERS) {
        let weight = encoded_values(cluster?, WEIGHT).last()??;
        sum = sum.checked_add(encoded_number(weight)?)?;
    }
    Some(sum)
}
