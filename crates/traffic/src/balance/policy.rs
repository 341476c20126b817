//! The load balancing policy of a cluster, as it is configured (62).

use std::time::Duration;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::cluster::v3::cluster::{
    CommonLbConfig, LbConfig, LbPolicy, SlowStartConfig, common_lb_config::LocalityConfigSpecifier,
    ring_hash_lb_config::HashFunction,
};
use trunkline_proto::envoy::google::protobuf::Duration as DurationMessage;

use super::maglev::TABLE_SIZE;
use super::ring::{RingConfig, RingFunction};
use super::subset::SubsetConfig;
use super::typed;
use crate::findings::Findings;

/// How endpoints of a cluster are chosen.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(super) kind: Kind,
    pub(super) slow_start: Option<SlowStart>,
    pub(super) localities: LocalityMode,
    /// In per cent; 0 turns panic off.
    pub(super) panic_threshold: f64,
    pub(super) uses_hostname: bool,
    pub(super) subsets: Option<SubsetConfig>,
}

/// The choice among endpoints that are equal in all else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    RoundRobin,
    LeastRequest {
        choices: u32,
        bias: f64,
        scans_all: bool,
    },
    Random,
    RingHash(RingConfig),
    Maglev(u64),
}

/// How localities are told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LocalityMode {
    ZoneAware(ZoneAware),
    Weighted,
}

/// Settings of zone aware routing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ZoneAware {
    /// In per cent of requests.
    pub(super) enabled: f64,
    pub(super) min_cluster_size: u64,
    pub(super) fails_on_panic: bool,
}

impl Default for ZoneAware {
    /// Returns the settings that Envoy has by default.
    fn default() -> Self {
        Self {
            enabled: 100.0,
            min_cluster_size: 6,
            fails_on_panic: false,
        }
    }
}

/// A new endpoint gets less at first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SlowStart {
    window: Duration,
    aggression: f64,
    least: f64,
}

impl SlowStart {
    /// Makes the slow start of an endpoint over a time `window`.
    /// `least_percent` is the part of its weight that it has in any case.
    pub(super) fn new(window: Duration, aggression: f64, least_percent: f64) -> Self {
        Self {
            window,
            aggression,
            least: least_percent / 100.0,
        }
    }

    /// Returns the part of its weight that an endpoint of an age has, from 0 to 1.
    pub(super) fn factor(&self, age: Duration) -> f64 {
        if age >= self.window {
            return 1.0;
        }
        let age = age.max(Duration::from_millis(1));
        let passed = age.as_secs_f64() / self.window.as_secs_f64();
        passed.powf(1.0 / self.aggression).max(self.least)
    }

    /// Returns whether an endpoint of an age has its whole weight.
    pub(super) fn is_over(&self, age: Duration) -> bool {
        age >= self.window
    }
}

impl Policy {
    /// Compiles the policy of a cluster. A field that cannot be compiled is a
    /// finding.
    pub fn compile(message: &Cluster) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let place = Place::ROOT;
        let common = message.common_lb_config.clone().unwrap_or_default();
        let mut policy = Self {
            kind: Kind::RoundRobin,
            slow_start: None,
            localities: localities(&common),
            panic_threshold: common
                .healthy_panic_threshold
                .map_or(50.0, |percent| percent.value.round()),
            uses_hostname: false,
            subsets: message.lb_subset_config.as_ref().and_then(|config| {
                SubsetConfig::compile(config, &place.field("lb_subset_config"), &mut findings)
            }),
        };

        if let Some(consistent) = &common.consistent_hashing_lb_config {
            policy.uses_hostname = consistent.use_hostname_for_hashing;
            let place = place.field("common_lb_config");
            let place = place.field("consistent_hashing_lb_config");
            let factor = consistent.hash_balance_factor.is_some();
            findings.unsupported(&place.field("hash_balance_factor"), factor);
        }

        match &message.load_balancing_policy {
            Some(list) => {
                let place = place.field("load_balancing_policy");
                typed::apply(list, &mut policy, &place, &mut findings);
            }
            None => policy.read_kind(message, &place, &mut findings),
        }
        findings.finish(policy)
    }

    /// Returns whether endpoints are chosen by a hash.
    #[must_use]
    pub fn uses_hash(&self) -> bool {
        matches!(self.kind, Kind::RingHash(_) | Kind::Maglev(_))
    }

    /// Reads `lb_policy` and the settings that belong to it. Settings of another
    /// policy are ignored.
    fn read_kind(&mut self, message: &Cluster, place: &Place<'_>, findings: &mut Findings) {
        let config = message.lb_config.as_ref();
        self.kind = match (message.lb_policy(), config) {
            (LbPolicy::RoundRobin, config) => {
                if let Some(LbConfig::RoundRobinLbConfig(config)) = config {
                    self.slow_start = config.slow_start_config.as_ref().and_then(slow_start);
                }
                Kind::RoundRobin
            }
            (LbPolicy::LeastRequest, Some(LbConfig::LeastRequestLbConfig(config))) => {
                self.slow_start = config.slow_start_config.as_ref().and_then(slow_start);
                let bias = config.active_request_bias.as_ref();
                Kind::LeastRequest {
                    choices: config.choice_count.map_or(2, |count| count.value),
                    bias: bias.map_or(1.0, |bias| bias.default_value),
                    scans_all: false,
                }
            }
            (LbPolicy::LeastRequest, _) => Kind::LeastRequest {
                choices: 2,
                bias: 1.0,
                scans_all: false,
            },
            (LbPolicy::Random, _) => Kind::Random,

            (LbPolicy::RingHash, config) => {
                let ring = read_ring(config);
                ring_kind(ring, &place.field("ring_hash_lb_config"), findings)
            }
            (LbPolicy::Maglev, config) => {
                let size = match config {
                    Some(LbConfig::MaglevLbConfig(config)) => config.table_size,
                    _ => None,
                };
                let size = size.map_or(TABLE_SIZE, |size| size.value);
                maglev_kind(size, &place.field("maglev_lb_config"), findings)
            }
            (LbPolicy::ClusterProvided | LbPolicy::LoadBalancingPolicyConfig, _) => {
                findings.add(&place.field("lb_policy"), Problem::Unsupported);
                Kind::RoundRobin
            }
        };
    }
}

/// Reads the settings of a ring. Those of another policy are ignored.
fn read_ring(config: Option<&LbConfig>) -> RingConfig {
    let mut ring = RingConfig::default();
    if let Some(LbConfig::RingHashLbConfig(config)) = config {
        ring.min = config.minimum_ring_size.map_or(ring.min, |size| size.value);
        ring.max = config.maximum_ring_size.map_or(ring.max, |size| size.value);
        if config.hash_function() == HashFunction::MurmurHash2 {
            ring.function = RingFunction::Murmur2;
        }
    }
    ring
}

/// The most entries of a ring, as in Envoy.
const LARGEST_RING: u64 = 8 << 20;

/// Returns ring hash. A ring that cannot be made is a finding.
pub(super) fn ring_kind(ring: RingConfig, place: &Place<'_>, findings: &mut Findings) -> Kind {
    if ring.min > ring.max {
        let problem = format!("the minimum {} is above the maximum {}", ring.min, ring.max);
        findings.add(&place.field("minimum_ring_size"), Problem::Other(problem));
    }
    if ring.max > LARGEST_RING {
        let problem = format!("{} is more than {LARGEST_RING}", ring.max);
        findings.add(&place.field("maximum_ring_size"), Problem::Other(problem));
    }
    Kind::RingHash(ring)
}

/// Returns maglev. A size of the table that is no prime up to 5000011 is a
/// finding.
pub(super) fn maglev_kind(size: u64, place: &Place<'_>, findings: &mut Findings) -> Kind {
    let is_prime = size > 2 && (2..=size.isqrt()).all(|divisor| !size.is_multiple_of(divisor));
    if is_prime && size <= 5_000_011 {
        return Kind::Maglev(size);
    }
    let problem = format!("{size} is no prime of at most 5000011");
    findings.add(&place.field("table_size"), Problem::Other(problem));
    Kind::Maglev(TABLE_SIZE)
}

/// Returns how localities are told apart; by zone aware routing if nothing is
/// said.
fn localities(common: &CommonLbConfig) -> LocalityMode {
    match &common.locality_config_specifier {
        Some(LocalityConfigSpecifier::LocalityWeightedLbConfig(_)) => LocalityMode::Weighted,
        Some(LocalityConfigSpecifier::ZoneAwareLbConfig(zone)) => {
            LocalityMode::ZoneAware(ZoneAware {
                enabled: zone.routing_enabled.map_or(100.0, |percent| percent.value),
                min_cluster_size: zone.min_cluster_size.map_or(6, |size| size.value),
                fails_on_panic: zone.fail_traffic_on_panic,
            })
        }
        None => LocalityMode::ZoneAware(ZoneAware::default()),
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

/// The longest duration of protobuf, 10 000 years.
const LONGEST: Duration = Duration::from_secs(315_576_000_000);

/// Converts a duration. A negative part counts as zero, and a duration that is longer than any may
/// be is the longest, so that sums and products of a few have room.
pub(crate) fn duration(message: &DurationMessage) -> Duration {
    let seconds = u64::try_from(message.seconds).unwrap_or(0);
    let nanos = u32::try_from(message.nanos).unwrap_or(0);
    Duration::new(seconds, nanos).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_between_none_and_ten_thousand_years() {
        for (seconds, nanos, expected) in [
            (1, 5, Duration::new(1, 5)),
            (-1, 0, Duration::ZERO),
            (1, -5, Duration::from_secs(1)),
            (
                315_575_999_999,
                999_999_999,
                LONGEST - Duration::from_nanos(1),
            ),
            (315_576_000_000, 1, LONGEST),
            (i64::MAX, i32::MAX, LONGEST),
        ] {
            let message = DurationMessage { seconds, nanos };
            assert_eq!(duration(&message), expected, "{seconds} {nanos}");
        }
    }

    #[test]
    fn d62_a_new_endpoint_gets_less_at_first() {
        let slow = SlowStart::new(Duration::from_secs(10), 2.0, 10.0);
        // age in milliseconds, factor in per cent
        for (age, percent) in [
            (0, 10),
            (100, 10),
            (2_500, 50),
            (10_000, 100),
            (60_000, 100),
        ] {
            let factor = slow.factor(Duration::from_millis(age)) * 100.0;
            assert!(
                (factor - f64::from(percent)).abs() < 0.01,
                "{age}: {factor}"
            );
        }
    }
}
