//! The endpoints of a cluster, by its type of discovery.

use prost_reflect::DynamicMessage;

use super::read::{Part, enum_number, has, inner, inner_along, messages, report_at};
use super::rejected::Rejected;
use crate::conditions::has_condition;
use crate::validate::walk::Walk;

/// `Cluster.DiscoveryType.LOGICAL_DNS`.
pub(super) const LOGICAL_DNS: i32 = 2;
/// `Cluster.DiscoveryType.EDS`.
pub(super) const EDS: i32 = 3;

/// Reports a cluster without the endpoints, or the source of endpoints, that
/// its type needs.
pub(super) fn check_cluster(walk: &mut Walk, cluster: &DynamicMessage) {
    if has(cluster, "cluster_type") {
        return;
    }
    match enum_number(cluster, "type") {
        EDS => check_eds(walk, cluster),
        LOGICAL_DNS => check_logical_dns(walk, cluster),
        _ => {}
    }
}

/// Reports a cluster of type EDS without a source of endpoints.
fn check_eds(walk: &mut Walk, cluster: &DynamicMessage) {
    if inner_along(cluster, &["eds_cluster_config", "eds_config"]).is_none() {
        let place = ["eds_cluster_config", "eds_config"].map(Part::Field);
        report_at(walk, cluster, &place, Rejected::NoEdsConfig);
    }
}

/// Reports a cluster of type LOGICAL_DNS that has not exactly one endpoint.
fn check_logical_dns(walk: &mut Walk, cluster: &DynamicMessage) {
    let assignment = inner(cluster, "load_assignment");
    if assignment.is_none_or(has_other_than_one_endpoint) {
        let place = ["load_assignment", "endpoints"].map(Part::Field);
        report_at(walk, cluster, &place, Rejected::NotOneEndpoint);
    }
}

/// Returns whether an assignment does not have exactly one locality and one
/// endpoint. Returns `false` if a part has a condition, since the number then
/// depends on the client.
fn has_other_than_one_endpoint(assignment: &DynamicMessage) -> bool {
    let localities = messages(assignment, "endpoints");
    let endpoints = localities
        .iter()
        .flat_map(|locality| messages(locality, "lb_endpoints"));
    let endpoints: Vec<_> = endpoints.collect();

    let mut parts = localities.iter().chain(&endpoints);
    let is_conditional = parts.any(|part| has_condition(part));
    !is_conditional && (localities.len() != 1 || endpoints.len() != 1)
}
