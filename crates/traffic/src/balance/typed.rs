//! Policies that are given as typed extensions (`load_balancing_policy`).

use prost::Message;
use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::cluster::v3::LoadBalancingPolicy;
use trunkline_proto::envoy::envoy::extensions::load_balancing_policies::common::v3::{
    ConsistentHashingLbConfig, LocalityLbConfig, SlowStartConfig,
    locality_lb_config::LocalityConfigSpecifier,
};
use trunkline_proto::envoy::envoy::extensions::load_balancing_policies::least_request::v3::{
    LeastRequest, least_request::SelectionMethod,
};
use trunkline_proto::envoy::envoy::extensions::load_balancing_policies::maglev::v3::Maglev;
use trunkline_proto::envoy::envoy::extensions::load_balancing_policies::random::v3::Random;
use trunkline_proto::envoy::envoy::extensions::load_balancing_policies::ring_hash::v3::{
    RingHash, ring_hash::HashFunction,
};
use trunkline_proto::envoy::envoy::extensions::load_balancing_policies::round_robin::v3::RoundRobin;
use trunkline_proto::envoy::envoy::extensions::load_balancing_policies::wrr_locality::v3::WrrLocality;

use super::maglev::TABLE_SIZE;
use super::policy::{
    Kind, LocalityMode, Policy, SlowStart, ZoneAware, duration, maglev_kind, ring_kind,
};
use super::ring::{RingConfig, RingFunction};
use crate::findings::Findings;

const PACKAGE: &str = "envoy.extensions.load_balancing_policies.";

/// Applies the first policy of a list that is known to `policy`. If none is,
/// that is a finding.
pub(super) fn apply(
    list: &LoadBalancingPolicy,
    policy: &mut Policy,
    place: &Place<'_>,
    findings: &mut Findings,
) {
    for (index, entry) in list.policies.iter().enumerate() {
        let extension = entry.typed_extension_config.as_ref();
        let Some(any) = extension.and_then(|extension| extension.typed_config.as_ref()) else {
            continue;
        };
        let Some((_, name)) = any.type_url.split_once(PACKAGE) else {
            continue;
        };

        let place = place.item("policies", index);
        match apply_named(name, &any.value, policy, &place, findings) {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                findings.add(&place, Problem::Other(error.to_string()));
                return;
            }
        }
    }
    findings.add(place, Problem::NoPolicy);
}

/// Applies one policy, by its name in [`PACKAGE`], to `policy`. Returns `false`
/// if the name is not known.
///
/// # Errors
/// The body is not a message of the policy.
fn apply_named(
    name: &str,
    body: &[u8],
    policy: &mut Policy,
    place: &Place<'_>,
    findings: &mut Findings,
) -> Result<bool, prost::DecodeError> {
    match name {
        "round_robin.v3.RoundRobin" => {
            let config = RoundRobin::decode(body)?;
            policy.kind = Kind::RoundRobin;
            policy.slow_start = config.slow_start_config.as_ref().and_then(slow_start);
            apply_localities(config.locality_lb_config.as_ref(), policy);
        }
        "least_request.v3.LeastRequest" => {
            let config = LeastRequest::decode(body)?;
            policy.kind = least_request_kind(&config);
            policy.slow_start = config.slow_start_config.as_ref().and_then(slow_start);
            apply_localities(config.locality_lb_config.as_ref(), policy);
        }
        "random.v3.Random" => {
            let config = Random::decode(body)?;
            policy.kind = Kind::Random;
            apply_localities(config.locality_lb_config.as_ref(), policy);
        }

        "ring_hash.v3.RingHash" => {
            let config = RingHash::decode(body)?;
            policy.kind = ring_kind(ring_config(&config), place, findings);
            let hashing = config.consistent_hashing_lb_config.as_ref();
            apply_hashing(hashing, policy, place, findings);
            weigh(config.locality_weighted_lb_config.is_some(), policy);
        }
        "maglev.v3.Maglev" => {
            let config = Maglev::decode(body)?;
            let size = config.table_size.map_or(TABLE_SIZE, |size| size.value);
            policy.kind = maglev_kind(size, place, findings);
            let hashing = config.consistent_hashing_lb_config.as_ref();
            apply_hashing(hashing, policy, place, findings);
            weigh(config.locality_weighted_lb_config.is_some(), policy);
        }

        "wrr_locality.v3.WrrLocality" => {
            let config = WrrLocality::decode(body)?;
            let place = place.field("endpoint_picking_policy");
            match &config.endpoint_picking_policy {
                Some(list) => apply(list, policy, &place, findings),
                None => findings.add(&place, Problem::Missing),
            }
            policy.localities = LocalityMode::Weighted;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns the choice among endpoints by least requests.
fn least_request_kind(config: &LeastRequest) -> Kind {
    let bias = config.active_request_bias.as_ref();
    Kind::LeastRequest {
        choices: config.choice_count.map_or(2, |count| count.value),
        bias: bias.map_or(1.0, |bias| bias.default_value),
        scans_all: config.selection_method() == SelectionMethod::FullScan,
    }
}

/// Returns the size of a ring and how it is made.
fn ring_config(config: &RingHash) -> RingConfig {
    let default = RingConfig::default();
    let (min, max) = (config.minimum_ring_size, config.maximum_ring_size);
    RingConfig {
        min: min.map_or(default.min, |size| size.value),
        max: max.map_or(default.max, |size| size.value),
        function: match config.hash_function() {
            HashFunction::MurmurHash2 => RingFunction::Murmur2,
            _ => default.function,
        },
    }
}

/// Has localities chosen by weight, if `is_weighted`.
fn weigh(is_weighted: bool, policy: &mut Policy) {
    if is_weighted {
        policy.localities = LocalityMode::Weighted;
    }
}

/// Takes over how endpoints are hashed.
fn apply_hashing(
    config: Option<&ConsistentHashingLbConfig>,
    policy: &mut Policy,
    place: &Place<'_>,
    findings: &mut Findings,
) {
    let Some(config) = config else { return };
    policy.uses_hostname = config.use_hostname_for_hashing;
    let place = place.field("consistent_hashing_lb_config");
    let factor = config.hash_balance_factor.is_some();
    findings.unsupported(&place.field("hash_balance_factor"), factor);
    findings.unsupported(&place.field("hash_policy"), !config.hash_policy.is_empty());
}

/// Takes over how localities are told apart, if it is said.
fn apply_localities(config: Option<&LocalityLbConfig>, policy: &mut Policy) {
    let specifier = config.and_then(|config| config.locality_config_specifier.as_ref());
    match specifier {
        Some(LocalityConfigSpecifier::LocalityWeightedLbConfig(_)) => {
            policy.localities = LocalityMode::Weighted;
        }
        Some(LocalityConfigSpecifier::ZoneAwareLbConfig(zone)) => {
            policy.localities = LocalityMode::ZoneAware(ZoneAware {
                enabled: zone.routing_enabled.map_or(100.0, |percent| percent.value),
                min_cluster_size: zone.min_cluster_size.map_or(6, |size| size.value),
                fails_on_panic: zone.fail_traffic_on_panic,
            });
        }
        None => {}
    }
}

/// Reads the settings of the slow start; `None` without a window.
fn slow_start(message: &SlowStartConfig) -> Option<SlowStart> {
    let window = duration(message.slow_start_window.as_ref()?);
    let aggression = message.aggression.as_ref().map_or(1.0, |a| a.default_value);
    let least = message
        .min_weight_percent
        .map_or(10.0, |percent| percent.value);
    Some(SlowStart::new(window, aggression, least))
}
