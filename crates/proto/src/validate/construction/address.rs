//! Addresses that must be IP addresses: those of endpoints that no DNS is asked
//! about, and those of listeners.

use std::net::IpAddr;

use prost_reflect::DynamicMessage;

use super::read::{Part, all_encoded_texts, enum_number, has, inner, inner_along, messages};
use super::read::{report_at, text};
use super::rejected::Rejected;
use crate::validate::walk::Walk;

/// `SocketAddress.address`.
pub(super) const ADDRESS: u32 = 2;
/// `Cluster.DiscoveryType.STATIC`, which is also that of a cluster without one.
const STATIC: i32 = 0;

const FOR_STATIC: &str = "write one, or set the type of the cluster to STRICT_DNS or LOGICAL_DNS";
const FOR_EDS: &str = "write one, because the endpoints of EDS are not resolved by DNS";
const FOR_LISTENER: &str = "write one, such as 0.0.0.0";

/// Reports the endpoints of a static cluster that have DNS names.
pub(super) fn check_cluster(walk: &mut Walk, cluster: &DynamicMessage) {
    let is_static = !has(cluster, "cluster_type") && enum_number(cluster, "type") == STATIC;
    if !is_static {
        return;
    }
    if let Some(assignment) = inner(cluster, "load_assignment") {
        let place = [Part::Field("load_assignment")];
        check_endpoints(walk, cluster, &place, assignment, FOR_STATIC);
    }
}

/// Reports the endpoints of EDS that have DNS names. An assignment inside a
/// cluster is the cluster's to check.
pub(super) fn check_assignment(walk: &mut Walk, assignment: &DynamicMessage) {
    if walk.is_at_root() {
        check_endpoints(walk, assignment, &[], assignment, FOR_EDS);
    }
}

/// Reports the addresses of a listener that are DNS names.
pub(super) fn check_listener(walk: &mut Walk, listener: &DynamicMessage) {
    if let Some(found) = find_name(listener) {
        let place = ["address", "socket_address", "address"].map(Part::Field);
        let remedy = FOR_LISTENER;
        report_at(walk, listener, &place, Rejected::NoIp { found, remedy });
    }
}

/// Reports the endpoints of an assignment that have DNS names. The assignment
/// is at `assignment_place` in the message where the walk is.
fn check_endpoints(
    walk: &mut Walk,
    message: &DynamicMessage,
    assignment_place: &[Part],
    assignment: &DynamicMessage,
    remedy: &'static str,
) {
    for (locality_index, locality) in messages(assignment, "endpoints").into_iter().enumerate() {
        let lb_endpoints = messages(locality, "lb_endpoints").into_iter();
        for (index, lb_endpoint) in lb_endpoints.enumerate() {
            let Some(host_name) = inner(lb_endpoint, "endpoint").and_then(find_name) else {
                continue;
            };

            let mut place = assignment_place.to_vec();
            place.extend([Part::Field("endpoints"), Part::Index(locality_index)]);
            place.extend([Part::Field("lb_endpoints"), Part::Index(index)]);
            let fields = ["endpoint", "address", "socket_address", "address"];
            place.extend(fields.map(Part::Field));
            let rejected = Rejected::NoIp {
                found: host_name,
                remedy,
            };
            report_at(walk, message, &place, rejected);
        }
    }
}

/// Returns the address of a message that has one, if it is no IP address and no
/// resolver is named for it.
fn find_name(message: &DynamicMessage) -> Option<String> {
    let address = inner_along(message, &["address", "socket_address"])?;
    let found = text(address, "address");
    let is_name = text(address, "resolver_name").is_empty() && !may_be_ip(found);
    is_name.then(|| found.to_owned())
}

/// Returns whether the address in an encoded socket address may be an IP
/// address.
pub(super) fn is_plain(address: &[u8]) -> bool {
    all_encoded_texts(address, ADDRESS, may_be_ip)
}

/// Returns whether a text is an IP address, or has a zone, which only the
/// client can judge. An empty one breaks the rules of its field.
pub(super) fn may_be_ip(text: &str) -> bool {
    text.is_empty() || text.contains('%') || text.parse::<IpAddr>().is_ok()
}
