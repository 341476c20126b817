//! Endpoints of a cluster (C56, A27).

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use super::{address, metadata};
use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::acceptance::problem::Problem;
use crate::acceptance::report::IgnoreReason;
use crate::envoy::envoy::config::core::v3::{HealthStatus, Locality};
use crate::envoy::envoy::config::endpoint::v3::cluster_load_assignment::Policy;
use crate::envoy::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use crate::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use crate::envoy::envoy::r#type::v3::fractional_percent::DenominatorType;

/// Checks the endpoints of a cluster. An assignment without endpoints is valid
/// (C56).
pub(in crate::acceptance) fn check_endpoints(
    findings: &mut Findings<'_>,
    load_assignment: &ClusterLoadAssignment,
) {
    let mut assignment = Assignment::default();
    for (index, locality) in load_assignment.endpoints.iter().enumerate() {
        assignment.add_locality(index, locality, findings);
    }
    assignment.check_priorities(findings);
    if let Some(policy) = &load_assignment.policy {
        check_drops(policy, findings);
    }
}

/// Checks an endpoint that is a resource of its own (LEDS).
pub(in crate::acceptance) fn check_alone(findings: &mut Findings<'_>, endpoint: &LbEndpoint) {
    let mut assignment = Assignment::default();
    assignment.add_endpoint((0, 0), endpoint, &Place::ROOT, findings);
}

/// The localities and addresses so far.
#[derive(Default)]
struct Assignment<'a> {
    priorities: BTreeMap<u32, Priority<'a>>,
    /// The index of the locality and of the endpoint that has an address.
    addresses: HashMap<SocketAddr, (usize, usize)>,
}

/// The localities of one priority so far.
#[derive(Default)]
struct Priority<'a> {
    weight: u64,
    /// The index of each locality.
    localities: HashMap<LocalityKey<'a>, usize>,
}

/// Region, zone and sub-zone.
type LocalityKey<'a> = (&'a str, &'a str, &'a str);

const MAX_WEIGHT: u64 = u32::MAX as u64;

impl<'a> Assignment<'a> {
    /// Checks a locality and records it. A locality without a weight is ignored
    /// with all its endpoints (C56).
    fn add_locality(
        &mut self,
        index: usize,
        locality: &'a LocalityLbEndpoints,
        findings: &mut Findings<'_>,
    ) {
        let root = Place::ROOT;
        let place = root.item("endpoints", index);
        let weight = locality
            .load_balancing_weight
            .as_ref()
            .map_or(0, |weight| weight.value);
        if weight == 0 {
            return findings.ignore(&place, IgnoreReason::NoWeight);
        }

        let priority = self.priorities.entry(locality.priority).or_default();
        let weight_before = priority.weight;
        priority.weight += u64::from(weight);

        // Rejected only once, for the locality that makes the sum too large.
        if weight_before <= MAX_WEIGHT && priority.weight > MAX_WEIGHT {
            let problem = Problem::LargeWeights(priority.weight);
            findings.reject(&place.field("load_balancing_weight"), problem);
        }

        match &locality.locality {
            None => findings.reject(&place.field("locality"), Problem::Missing),
            Some(name) => priority.add(index, name, &place, findings),
        }
        self.add_endpoints(index, locality, &place, findings);
        metadata::check_metadata(locality.metadata.as_ref(), &place, findings);
    }

    /// Checks the endpoints of a locality, and the sum of their weights.
    fn add_endpoints(
        &mut self,
        index: usize,
        locality: &LocalityLbEndpoints,
        place: &Place<'_>,
        findings: &mut Findings<'_>,
    ) {
        let mut weight_sum = 0_u64;
        for (endpoint_index, endpoint) in locality.lb_endpoints.iter().enumerate() {
            let place = place.item("lb_endpoints", endpoint_index);
            let weight = endpoint.load_balancing_weight.as_ref();
            weight_sum += weight.map_or(1, |weight| u64::from(weight.value));
            self.add_endpoint((index, endpoint_index), endpoint, &place, findings);
        }

        if weight_sum > MAX_WEIGHT {
            findings.reject(
                &place.field("lb_endpoints"),
                Problem::LargeWeights(weight_sum),
            );
        }
    }

    /// Checks an endpoint. Ignores one whose health status excludes it from use
    /// (C56).
    fn add_endpoint(
        &mut self,
        index_pair: (usize, usize),
        lb_endpoint: &LbEndpoint,
        place: &Place<'_>,
        findings: &mut Findings<'_>,
    ) {
        match HealthStatus::try_from(lb_endpoint.health_status) {
            Ok(HealthStatus::Unknown | HealthStatus::Healthy) => {}
            Ok(HealthStatus::Draining) => findings.ignore(place, IgnoreReason::Draining),
            Ok(unhealthy) => {
                let status = unhealthy.as_str_name().to_owned();
                return findings.ignore(place, IgnoreReason::Unhealthy(status));
            }
            Err(_) => {
                let status = lb_endpoint.health_status.to_string();
                return findings.ignore(place, IgnoreReason::Unhealthy(status));
            }
        }

        if (lb_endpoint.load_balancing_weight.as_ref()).is_some_and(|weight| weight.value == 0) {
            let place = place.field("load_balancing_weight");
            findings.reject(&place, Problem::value(0, "at least 1"));
        }

        metadata::check_metadata(lb_endpoint.metadata.as_ref(), place, findings);
        match &lb_endpoint.host_identifier {
            Some(HostIdentifier::Endpoint(endpoint)) => {
                self.add_addresses(index_pair, endpoint, &place.field("endpoint"), findings);
            }
            Some(HostIdentifier::EndpointName(_)) | None => {
                findings.reject(&place.field("endpoint"), Problem::Missing);
            }
        }
    }

    /// Checks the addresses of an endpoint, the additional ones included (A61).
    /// No other endpoint may have one of them (C56).
    fn add_addresses(
        &mut self,
        index_pair: (usize, usize),
        endpoint: &Endpoint,
        place: &Place<'_>,
        findings: &mut Findings<'_>,
    ) {
        let first_place = place.field("address");
        self.add_address(
            index_pair,
            address::check_ip(endpoint.address.as_ref(), &first_place, findings),
            &first_place,
            findings,
        );

        for (index, additional) in endpoint.additional_addresses.iter().enumerate() {
            let place = place.item("additional_addresses", index);
            let place = place.field("address");
            let address = address::check_ip(additional.address.as_ref(), &place, findings);
            self.add_address(index_pair, address, &place, findings);
        }
    }

    /// Records an address, and rejects the body if another endpoint has it.
    /// Does nothing without an address.
    fn add_address(
        &mut self,
        index_pair: (usize, usize),
        address: Option<SocketAddr>,
        place: &Place<'_>,
        findings: &mut Findings<'_>,
    ) {
        let Some(address) = address else { return };
        if let Some((locality, endpoint)) = self.addresses.insert(address, index_pair) {
            let first = format!("endpoints[{locality}].lb_endpoints[{endpoint}]");
            let what = format!("the address {address}");
            findings.reject(place, Problem::Duplicate { what, first });
        }
    }

    /// Rejects an assignment whose priorities have a gap, and names the first
    /// missing one (C56).
    fn check_priorities(&self, findings: &mut Findings<'_>) {
        let gap = (0_u32..)
            .zip(self.priorities.keys())
            .find(|(expected, priority)| expected != *priority);
        if let Some((missing, _)) = gap {
            findings.reject(
                &Place::ROOT.field("endpoints"),
                Problem::PriorityGap(missing),
            );
        }
    }
}

impl<'a> Priority<'a> {
    /// Records a locality, which a priority may have only once (C56).
    fn add(
        &mut self,
        index: usize,
        locality: &'a Locality,
        place: &Place<'_>,
        findings: &mut Findings<'_>,
    ) {
        let key = (&*locality.region, &*locality.zone, &*locality.sub_zone);
        if let Some(first) = self.localities.insert(key, index) {
            let what = "the locality, in the same priority,".to_owned();
            let first = format!("endpoints[{first}]");
            findings.reject(&place.field("locality"), Problem::Duplicate { what, first });
        }
    }
}

/// Checks the categories of dropped requests.
fn check_drops(policy: &Policy, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    let place = root.field("policy");
    for (index, drop) in policy.drop_overloads.iter().enumerate() {
        let place = place.item("drop_overloads", index);
        if drop.category.is_empty() {
            findings.reject(&place.field("category"), Problem::Missing);
        }

        let denominator = drop
            .drop_percentage
            .as_ref()
            .map(|percentage| percentage.denominator);
        match denominator {
            None => findings.reject(&place.field("drop_percentage"), Problem::Missing),
            Some(denominator) if DenominatorType::try_from(denominator).is_err() => {
                let place = place.field("drop_percentage");
                let problem = Problem::value(denominator, "one of HUNDRED, TEN_THOUSAND, MILLION");
                findings.reject(&place.field("denominator"), problem);
            }
            Some(_) => {}
        }
    }
}
