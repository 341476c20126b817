//! Settings of adaptive concurrency.

use std::time::Duration;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::extensions::filters::http::adaptive_concurrency::v3::{
    AdaptiveConcurrency, adaptive_concurrency::ConcurrencyControllerConfig,
    gradient_controller_config::MinimumRttCalculationParams,
};
use trunkline_proto::envoy::envoy::r#type::v3::Percent;

use crate::balance::duration;
use crate::findings::Findings;

/// How the limit is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConcurrencyConfig {
    /// Whether there is a limit at all.
    pub(super) is_enabled: bool,
    pub(super) status: u16,
    /// The part of requests whose latency counts, between 0 and 1.
    pub(super) percentile: f64,
    pub(super) max: u32,
    /// The least that the limit falls to.
    pub(super) min: u32,
    /// The time of a window of samples.
    pub(super) window: Duration,
    pub(super) least_latency: LeastLatency,
    /// By how much the least latency counts for more, as a part of it.
    pub(super) buffer: f64,
}

/// How the least latency is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LeastLatency {
    /// The settings have it.
    Fixed(Duration),
    /// It is measured, again and again.
    Measured {
        interval: Duration,
        /// As a part of the interval.
        jitter: f64,
        requests: u64,
        /// The limit meanwhile.
        concurrency: u32,
    },
}

impl ConcurrencyConfig {
    /// Compiles the settings of the filter. A field that cannot be compiled is
    /// a finding.
    pub fn compile(message: &AdaptiveConcurrency) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let place = Place::ROOT.field("gradient_controller_config");
        let Some(ConcurrencyControllerConfig::GradientControllerConfig(gradient)) =
            &message.concurrency_controller_config
        else {
            findings.add(&place, Problem::Missing);
            return Err(findings);
        };

        let limits = gradient.concurrency_limit_params.unwrap_or_default();
        let measurement = gradient.min_rtt_calc_params.unwrap_or_default();
        let window = limits.concurrency_update_interval.as_ref().map(duration);
        if window.is_none_or(|window| window.is_zero()) {
            let place = place.field("concurrency_limit_params");
            findings.add(
                &place.field("concurrency_update_interval"),
                Problem::Missing,
            );
        }

        let concurrency = measurement.min_concurrency.map_or(3, |min| min.value);
        let enabled = message.enabled.as_ref();
        let enabled = enabled.and_then(|flag| flag.default_value);
        let status = message.concurrency_limit_exceeded_status.as_ref();
        let status = status.and_then(|status| u16::try_from(status.code).ok());

        let config = Self {
            is_enabled: enabled.is_none_or(|enabled| enabled.value),
            status: status.filter(|status| *status >= 400).unwrap_or(503),
            percentile: part(gradient.sample_aggregate_percentile.as_ref(), 50.0),
            max: limits.max_concurrency_limit.map_or(1000, |max| max.value),
            min: limits
                .min_concurrency_limit
                .map_or(concurrency, |min| min.value),
            window: window.unwrap_or_default(),
            least_latency: read_least_latency(
                &measurement,
                concurrency,
                &place.field("min_rtt_calc_params"),
                &mut findings,
            ),
            buffer: part(measurement.buffer.as_ref(), 25.0),
        };

        if config.min > config.max {
            let problem = format!("{} is below the least limit {}", config.max, config.min);
            let place = place.field("concurrency_limit_params");
            findings.add(
                &place.field("max_concurrency_limit"),
                Problem::Other(problem),
            );
        }
        findings.finish(config)
    }

    /// Returns the status of a request that is not let in.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }
}

/// Converts a percentage into a part of one.
fn part(percent: Option<&Percent>, default: f64) -> f64 {
    percent.map_or(default, |percent| percent.value) / 100.0
}

/// Reads the source of the least latency. An interval to measure it in takes
/// precedence over a fixed value.
fn read_least_latency(
    message: &MinimumRttCalculationParams,
    concurrency: u32,
    place: &Place<'_>,
    findings: &mut Findings,
) -> LeastLatency {
    let interval = message.interval.as_ref().map(duration);
    let interval = interval.filter(|interval| !interval.is_zero());
    let fixed = message.fixed_value.as_ref().map(duration);
    match (interval, fixed) {
        (Some(interval), _) => LeastLatency::Measured {
            interval,
            jitter: part(message.jitter.as_ref(), 15.0),
            requests: message
                .request_count
                .map_or(50, |count| u64::from(count.value)),
            concurrency,
        },
        (None, Some(fixed)) => LeastLatency::Fixed(fixed),
        (None, None) => {
            findings.add(&place.field("interval"), Problem::Missing);
            LeastLatency::Fixed(Duration::ZERO)
        }
    }
}
