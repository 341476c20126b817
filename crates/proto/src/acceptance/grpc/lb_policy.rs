//! The load balancing policy of a cluster (C57, A42, A48, A52).

use super::{check_duration, decode_body, decode_extension};
use crate::acceptance::extensions::{
    CLIENT_SIDE_WRR, LEAST_REQUEST, MAGLEV, RANDOM, RING_HASH, ROUND_ROBIN, WRR_LOCALITY,
};
use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::acceptance::problem::Problem;
use crate::acceptance::report::IgnoreReason;
use crate::envoy::envoy::config::cluster::v3::cluster::ring_hash_lb_config as old_ring_hash;
use crate::envoy::envoy::config::cluster::v3::cluster::{LbConfig, LbPolicy};
use crate::envoy::envoy::config::cluster::v3::{Cluster, LoadBalancingPolicy};
use crate::envoy::envoy::extensions::load_balancing_policies::client_side_weighted_round_robin::v3::ClientSideWeightedRoundRobin;
use crate::envoy::envoy::extensions::load_balancing_policies::least_request::v3::LeastRequest;
use crate::envoy::envoy::extensions::load_balancing_policies::ring_hash::v3::RingHash;
use crate::envoy::envoy::extensions::load_balancing_policies::ring_hash::v3::ring_hash::HashFunction;
use crate::envoy::envoy::extensions::load_balancing_policies::wrr_locality::v3::WrrLocality;
use crate::envoy::google::protobuf::{UInt32Value, UInt64Value};

/// The levels of policies inside each other (A52).
const MAX_LEVELS: usize = 16;
/// The entries of a ring (A42).
const MAX_RING: u64 = 8 * 1024 * 1024;
/// The size of a ring that says nothing of its minimum.
const DEFAULT_MIN_RING: u64 = 1024;
/// The endpoints that are compared for each request (A48).
const MIN_CHOICES: u32 = 2;

/// Checks the policy of a cluster: `load_balancing_policy`, and without it
/// `lb_policy` (A52).
pub(super) fn check_policy_fields(cluster: &Cluster, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    match &cluster.load_balancing_policy {
        Some(list) => check_list(list, &root.field("load_balancing_policy"), 1, findings),
        None => check_enum(cluster, findings),
    }
}

/// Checks the policy that the enum `lb_policy` names, and its own
/// configuration. The configuration of a policy that is not supported is not
/// checked.
fn check_enum(cluster: &Cluster, findings: &mut Findings<'_>) {
    const SUPPORTED: &str = "a load balancing policy that is supported";
    let root = Place::ROOT;
    let policy = LbPolicy::try_from(cluster.lb_policy);
    let message = match policy {
        Ok(LbPolicy::RoundRobin) => Some(ROUND_ROBIN),
        Ok(LbPolicy::LeastRequest) => Some(LEAST_REQUEST),
        Ok(LbPolicy::RingHash) => Some(RING_HASH),
        Ok(LbPolicy::Random) => Some(RANDOM),
        Ok(LbPolicy::Maglev) => Some(MAGLEV),
        Ok(LbPolicy::ClusterProvided | LbPolicy::LoadBalancingPolicyConfig) | Err(_) => None,
    };

    let supported = &findings.policy().lb_policies;
    if !message.is_some_and(|message| supported.contains(message)) {
        let policy_name = match policy {
            Ok(policy) => policy.as_str_name().to_owned(),
            Err(_) => cluster.lb_policy.to_string(),
        };
        let problem = Problem::value(policy_name, SUPPORTED);
        return findings.reject(&root.field("lb_policy"), problem);
    }

    check_enum_config(policy.ok(), cluster, findings);
}

/// Checks the configuration beside the enum `lb_policy`. Envoy and gRPC ignore
/// that of another policy.
fn check_enum_config(policy: Option<LbPolicy>, cluster: &Cluster, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    match (policy, &cluster.lb_config) {
        (Some(LbPolicy::RingHash), Some(LbConfig::RingHashLbConfig(config))) => {
            let place = root.field("ring_hash_lb_config");
            let hash = old_ring_hash::HashFunction::try_from(config.hash_function);
            if hash != Ok(old_ring_hash::HashFunction::XxHash) {
                let hash_name = hash.map_or("unknown", |hash| hash.as_str_name());
                let problem = Problem::value(hash_name, "XX_HASH");
                findings.reject(&place.field("hash_function"), problem);
            }

            let sizes = (&config.minimum_ring_size, &config.maximum_ring_size);
            check_ring(sizes, &place, findings);
        }
        (Some(LbPolicy::LeastRequest), Some(LbConfig::LeastRequestLbConfig(config))) => {
            let place = root.field("least_request_lb_config");
            check_choices(config.choice_count.as_ref(), &place, findings);
        }
        _ => {}
    }
}

/// Checks the first supported policy of a list. Policies before it are skipped,
/// and those after it are not checked (A52).
fn check_list(
    list: &LoadBalancingPolicy,
    place: &Place<'_>,
    level: usize,
    findings: &mut Findings<'_>,
) {
    if level > MAX_LEVELS {
        return findings.reject(place, Problem::TooDeep(MAX_LEVELS));
    }
    for (index, policy) in list.policies.iter().enumerate() {
        let place = place.item("policies", index);
        let place = place.field("typed_extension_config");
        let place = place.field("typed_config");
        let config = policy.typed_extension_config.as_ref();
        let Some(any) = config.and_then(|config| config.typed_config.as_ref()) else {
            findings.ignore(&place, IgnoreReason::Policy(String::new()));
            continue;
        };

        // `decode_extension` has reported a body that cannot be decoded.
        let Some(policy_config) = decode_extension(any, &place, findings) else {
            return;
        };

        if !findings.policy().lb_policies.contains(&*policy_config.name) {
            findings.ignore(&place, IgnoreReason::Policy(policy_config.shown_name()));
            continue;
        }

        // A `TypedStruct` is for a policy of the user, which has no rules here.
        if let Some(body) = policy_config.body {
            check_policy(&policy_config.name, body, &place, level, findings);
        }
        return;
    }
    findings.reject(place, Problem::NoPolicy);
}

/// Checks the configuration of a supported policy. A policy that is not listed
/// here has no rules.
fn check_policy(
    name: &str,
    body: &[u8],
    place: &Place<'_>,
    level: usize,
    findings: &mut Findings<'_>,
) {
    match name {
        RING_HASH => {
            if let Some(config) = decode_body(name, body, place, findings) {
                check_ring_hash(&config, place, findings);
            }
        }
        LEAST_REQUEST => {
            if let Some(config) = decode_body::<LeastRequest>(name, body, place, findings) {
                check_choices(config.choice_count.as_ref(), place, findings);
            }
        }

        CLIENT_SIDE_WRR => {
            if let Some(config) = decode_body(name, body, place, findings) {
                check_weighted(&config, place, findings);
            }
        }
        WRR_LOCALITY => {
            let Some(config) = decode_body::<WrrLocality>(name, body, place, findings) else {
                return;
            };
            let place = place.field("endpoint_picking_policy");
            match &config.endpoint_picking_policy {
                Some(list) => check_list(list, &place, level + 1, findings),
                None => findings.reject(&place, Problem::Missing),
            }
        }
        _ => {}
    }
}

/// Checks the hash function and the sizes of a ring (A42).
fn check_ring_hash(config: &RingHash, place: &Place<'_>, findings: &mut Findings<'_>) {
    let hash = HashFunction::try_from(config.hash_function);
    // The default is XX_HASH.
    if !matches!(hash, Ok(HashFunction::DefaultHash | HashFunction::XxHash)) {
        let hash_name = hash.map_or("unknown", |hash| hash.as_str_name());
        let problem = Problem::value(hash_name, "XX_HASH");
        findings.reject(&place.field("hash_function"), problem);
    }

    let sizes = (&config.minimum_ring_size, &config.maximum_ring_size);
    check_ring(sizes, place, findings);
}

/// Checks the sizes of a ring, a minimum and a maximum (A42).
fn check_ring(
    (min_size, max_size): (&Option<UInt64Value>, &Option<UInt64Value>),
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let min = min_size
        .as_ref()
        .map_or(DEFAULT_MIN_RING, |size| size.value);
    let max = max_size.as_ref().map_or(MAX_RING, |size| size.value);
    for (field, size) in [("minimum_ring_size", min), ("maximum_ring_size", max)] {
        if size > MAX_RING {
            findings.reject(&place.field(field), Problem::value(size, "at most 8388608"));
        }
    }
    if min > max && min <= MAX_RING {
        let problem = Problem::value(min, "at most maximum_ring_size");
        findings.reject(&place.field("minimum_ring_size"), problem);
    }
}

/// Checks the number of endpoints to compare (A48).
fn check_choices(count: Option<&UInt32Value>, place: &Place<'_>, findings: &mut Findings<'_>) {
    if let Some(count) = count.filter(|count| count.value < MIN_CHOICES) {
        let problem = Problem::value(count.value, "at least 2");
        findings.reject(&place.field("choice_count"), problem);
    }
}

/// Checks weighted round robin by the client (A58).
fn check_weighted(
    config: &ClientSideWeightedRoundRobin,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    for (field, duration) in [
        ("oob_reporting_period", &config.oob_reporting_period),
        ("blackout_period", &config.blackout_period),
        ("weight_expiration_period", &config.weight_expiration_period),
        ("weight_update_period", &config.weight_update_period),
    ] {
        check_duration(duration.as_ref(), &place.field(field), findings);
    }

    let penalty = config
        .error_utilization_penalty
        .as_ref()
        .map(|penalty| penalty.value);
    // The negated pattern rejects NaN too.
    if let Some(penalty) = penalty.filter(|penalty| !matches!(penalty, 0.0..)) {
        let problem = Problem::value(penalty, "0 or more");
        findings.reject(&place.field("error_utilization_penalty"), problem);
    }
}
