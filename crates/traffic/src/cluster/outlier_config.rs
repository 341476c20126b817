//! Settings of outlier detection (73).

use std::time::Duration;

use trunkline_proto::acceptance::Place;
use trunkline_proto::envoy::envoy::config::cluster::v3::OutlierDetection;

use crate::balance::duration;
use crate::findings::Findings;

/// A part of a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(pub u32);

impl Percent {
    /// Returns whether a random number falls into it.
    #[must_use]
    pub fn includes(self, random: u64) -> bool {
        random % 100 < u64::from(self.0)
    }
}

/// When endpoints are ejected, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlierConfig {
    /// Errors in a row, and how often they lead to ejection.
    pub consecutive_5xx: (u32, Percent),
    /// Gateway errors in a row, and how often they lead to ejection.
    pub consecutive_gateway: (u32, Percent),
    /// The time between two looks at all endpoints.
    pub interval: Duration,
    /// The time that an endpoint is out, for each time that it was ejected.
    pub base: Duration,
    /// The most of it.
    pub max: Duration,
    /// The most endpoints that may be out.
    pub max_ejection: Percent,
    /// Whether one may be out in any case.
    pub always_one: bool,
    /// Ejection by success rate.
    pub success_rate: SuccessRate,
    /// Ejection by a part of failures.
    pub failures: FailurePercentage,
}

/// Endpoints whose success rate is far below that of others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuccessRate {
    /// How often it leads to ejection.
    pub enforcing: Percent,
    /// The least endpoints with requests enough.
    pub min_hosts: usize,
    /// The least requests in an interval.
    pub min_requests: u64,
    /// How many standard deviations are far.
    pub deviations: f64,
}

/// Endpoints of whose requests too many fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailurePercentage {
    /// How often it leads to ejection.
    pub enforcing: Percent,
    /// The least endpoints with requests enough.
    pub min_hosts: usize,
    /// The least requests in an interval.
    pub min_requests: u64,
    /// How many are too many.
    pub threshold: Percent,
}

impl OutlierConfig {
    /// Reads the settings of a cluster. What cannot be done is a finding.
    pub fn compile(message: &OutlierDetection) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let jitter = message.max_ejection_time_jitter.is_some();
        let degraded = message
            .detect_degraded_hosts
            .is_some_and(|is_on| is_on.value);
        let unsupported = [
            (
                "split_external_local_origin_errors",
                message.split_external_local_origin_errors,
            ),
            ("max_ejection_time_jitter", jitter),
            ("monitors", !message.monitors.is_empty()),
            ("detect_degraded_hosts", degraded),
        ];

        for (field, is_set) in unsupported {
            findings.unsupported(&Place::ROOT.field(field), is_set);
        }
        findings.finish(Self::read(message))
    }

    /// Reads the settings. A field that is not set has Envoy's default.
    fn read(message: &OutlierDetection) -> Self {
        let base = message.base_ejection_time.as_ref();
        let base = base.map_or(Duration::from_secs(30), duration);
        let max = message.max_ejection_time.as_ref();
        Self {
            consecutive_5xx: (
                message.consecutive_5xx.map_or(5, |count| count.value),
                Percent(message.enforcing_consecutive_5xx.map_or(100, |p| p.value)),
            ),
            consecutive_gateway: (
                message
                    .consecutive_gateway_failure
                    .map_or(5, |count| count.value),
                Percent(
                    message
                        .enforcing_consecutive_gateway_failure
                        .map_or(0, |p| p.value),
                ),
            ),
            interval: message
                .interval
                .as_ref()
                .map_or(Duration::from_secs(10), duration),
            base,
            max: max.map_or(Duration::from_secs(300).max(base), duration),
            max_ejection: Percent(message.max_ejection_percent.map_or(10, |p| p.value)),
            always_one: message.always_eject_one_host.is_some_and(|one| one.value),
            success_rate: SuccessRate::read(message),
            failures: FailurePercentage::read(message),
        }
    }
}

impl SuccessRate {
    /// Reads the settings of ejection by success rate.
    fn read(message: &OutlierDetection) -> Self {
        Self {
            enforcing: Percent(message.enforcing_success_rate.map_or(100, |p| p.value)),
            min_hosts: message
                .success_rate_minimum_hosts
                .map_or(5, |n| n.value as usize),
            min_requests: message
                .success_rate_request_volume
                .map_or(100, |n| n.value.into()),
            deviations: message
                .success_rate_stdev_factor
                .map_or(1.9, |f| f64::from(f.value) / 1000.0),
        }
    }
}

impl FailurePercentage {
    /// Reads the settings of ejection by a part of failures.
    fn read(message: &OutlierDetection) -> Self {
        Self {
            enforcing: Percent(message.enforcing_failure_percentage.map_or(0, |p| p.value)),
            min_hosts: message
                .failure_percentage_minimum_hosts
                .map_or(5, |n| n.value as usize),
            min_requests: message
                .failure_percentage_request_volume
                .map_or(50, |n| n.value.into()),
            threshold: Percent(message.failure_percentage_threshold.map_or(85, |p| p.value)),
        }
    }
}
