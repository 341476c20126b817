//! Outlier detection: endpoints that fail too often are out for a while (73).
//!
//! Responses come in one by one, and time in steps of the interval. What comes
//! out is who is ejected and who is back; the caller tells the endpoints
//! ([`HostCounters::set_ejected`](crate::balance::HostCounters::set_ejected)).

use std::collections::BTreeMap;
use std::time::Duration;

use super::outlier_config::{OutlierConfig, Percent};

/// The endpoints of a cluster, as their responses were.
#[derive(Debug)]
pub struct Outliers {
    config: OutlierConfig,
    hosts: BTreeMap<String, Monitor>,
    next: Duration,
}

/// What is known of one endpoint.
#[derive(Debug, Default)]
struct Monitor {
    /// Errors in a row.
    errors: u32,
    /// Gateway errors in a row.
    gateway_errors: u32,
    /// Responses in this interval.
    successes: u64,
    failures: u64,
    /// When it was ejected; `None` if it is not out.
    ejected_at: Option<Duration>,
    /// How often it was ejected, less the intervals without failures since.
    ejections: u32,
}

/// A change of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ejection {
    /// It is out.
    Out(String),
    /// It is back.
    Back(String),
}

impl Outliers {
    /// Makes a detector of endpoints, by address.
    #[must_use]
    pub fn new(
        config: OutlierConfig,
        hosts: impl IntoIterator<Item = String>,
        now: Duration,
    ) -> Self {
        Self {
            hosts: hosts
                .into_iter()
                .map(|host| (host, Monitor::default()))
                .collect(),
            next: now + config.interval,
            config,
        }
    }

    /// Adds an endpoint, by address. One that is known keeps what is known of it.
    pub fn add(&mut self, host: impl Into<String>) {
        self.hosts.entry(host.into()).or_default();
    }

    /// Removes an endpoint, and forgets what was known of it.
    pub fn remove(&mut self, host: &str) {
        self.hosts.remove(host);
    }

    /// Counts a response of an endpoint, or an error of this side by the status
    /// that stands for it (503, or 504 for a timeout). Returns the ejection of the
    /// endpoint if it had too many errors in a row.
    pub fn handle_status(
        &mut self,
        host: &str,
        status: u16,
        now: Duration,
        random: u64,
    ) -> Option<Ejection> {
        let config = self.config;
        let monitor = self.hosts.get_mut(host)?;
        if !(500..600).contains(&status) {
            monitor.successes += 1;
            monitor.errors = 0;
            monitor.gateway_errors = 0;
            return None;
        }

        monitor.failures += 1;
        monitor.errors += 1;
        monitor.gateway_errors = match (502..=504).contains(&status) {
            true => monitor.gateway_errors + 1,
            false => 0,
        };

        let mut enforcement = None;
        if monitor.errors == config.consecutive_5xx.0 {
            monitor.errors = 0;
            enforcement = Some(config.consecutive_5xx.1);
        }

        if monitor.gateway_errors == config.consecutive_gateway.0 {
            monitor.gateway_errors = 0;
            enforcement = enforcement.max(Some(config.consecutive_gateway.1));
        }
        enforcement.and_then(|enforcing| self.eject(host, enforcing, now, random))
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Duration {
        self.next
    }

    /// Ends an interval, if it is over: brings back endpoints that were out long
    /// enough, ejects those with too many failures, and counts anew.
    pub fn handle_timeout(
        &mut self,
        now: Duration,
        random: &mut dyn FnMut() -> u64,
    ) -> Vec<Ejection> {
        if now < self.next {
            return Vec::new();
        }

        self.next = now + self.config.interval;
        let mut changes = Vec::new();
        for (host, monitor) in &mut self.hosts {
            let is_over = monitor.ejected_at.is_some_and(|ejected_at| {
                now >= ejected_at + (self.config.base * monitor.ejections).min(self.config.max)
            });
            if is_over {
                monitor.ejected_at = None;
                monitor.errors = 0;
                monitor.gateway_errors = 0;
                changes.push(Ejection::Back(host.clone()));
            } else if monitor.ejected_at.is_none() && monitor.ejections > 0 && monitor.failures == 0
            {
                // An interval without failures is forgiven once.
                monitor.ejections -= 1;
            }
        }

        for (host, enforcing) in self.find_by_rate() {
            changes.extend(self.eject(&host, enforcing, now, random()));
        }

        for monitor in self.hosts.values_mut() {
            monitor.successes = 0;
            monitor.failures = 0;
        }
        changes
    }

    /// Returns the endpoints whose success rate or failures in this interval
    /// are beyond limits, with the percentage of cases in which that ejects
    /// them.
    fn find_by_rate(&self) -> Vec<(String, Percent)> {
        let rates = |least: u64| -> Vec<(&String, f64)> {
            let hosts = self.hosts.iter();
            let measured = hosts.filter(|(_, monitor)| monitor.total() >= least.max(1));
            measured
                .map(|(host, monitor)| (host, monitor.rate()))
                .collect()
        };

        let mut outliers = Vec::new();
        let success = &self.config.success_rate;
        let measured = rates(success.min_requests);
        if measured.len() >= success.min_hosts.max(1) {
            let limit = lowest_rate(&measured, success.deviations);
            let outlying_hosts = measured.iter().filter(|(_, rate)| *rate < limit);
            outliers.extend(outlying_hosts.map(|(host, _)| ((*host).clone(), success.enforcing)));
        }

        let failures = &self.config.failures;
        let measured = rates(failures.min_requests);
        if measured.len() >= failures.min_hosts.max(1) {
            let limit = f64::from(failures.threshold.0);
            let failing_hosts = measured.iter().filter(|(_, rate)| 100.0 - rate >= limit);
            outliers.extend(failing_hosts.map(|(host, _)| ((*host).clone(), failures.enforcing)));
        }
        outliers
    }

    /// Ejects an endpoint. Returns `None` if too many are ejected, this one is
    /// already, or the random number spares it.
    fn eject(
        &mut self,
        host: &str,
        enforcing: Percent,
        now: Duration,
        random: u64,
    ) -> Option<Ejection> {
        let monitors = self.hosts.values();
        let ejected_count = monitors
            .filter(|monitor| monitor.ejected_at.is_some())
            .count();
        let is_allowed = (ejected_count + 1) * 100
            <= self.config.max_ejection.0 as usize * self.hosts.len()
            || (self.config.always_one && ejected_count == 0);
        let monitor = self.hosts.get_mut(host)?;
        if !is_allowed || monitor.ejected_at.is_some() || !enforcing.includes(random) {
            return None;
        }

        monitor.ejected_at = Some(now);
        monitor.ejections += 1;
        Some(Ejection::Out(host.to_owned()))
    }
}

impl Monitor {
    /// Returns the number of responses in this interval.
    fn total(&self) -> u64 {
        self.successes + self.failures
    }

    /// Returns the success rate in per cent. The caller has checked that there were
    /// requests.
    #[expect(clippy::cast_precision_loss, reason = "requests of an interval")]
    fn rate(&self) -> f64 {
        100.0 * self.successes as f64 / self.total() as f64
    }
}

/// Returns the lowest success rate that is no outlier: the mean less so many
/// standard deviations.
#[expect(clippy::cast_precision_loss, reason = "a number of endpoints")]
fn lowest_rate(rates: &[(&String, f64)], deviations: f64) -> f64 {
    let count = rates.len() as f64;
    let mean = rates.iter().map(|(_, rate)| rate).sum::<f64>() / count;
    let variance = rates
        .iter()
        .map(|(_, rate)| (rate - mean).powi(2))
        .sum::<f64>()
        / count;
    mean - deviations * variance.sqrt()
}

#[cfg(test)]
mod tests {
    use trunkline_proto::envoy::envoy::config::cluster::v3::OutlierDetection;
    use trunkline_proto::envoy::google::protobuf::UInt32Value;

    use super::*;

    fn outliers(count: usize, max_percent: u32) -> Outliers {
        let config = OutlierConfig::compile(&OutlierDetection {
            consecutive_5xx: Some(UInt32Value { value: 3 }),
            max_ejection_percent: Some(UInt32Value { value: max_percent }),
            ..OutlierDetection::default()
        });
        let config = config.expect("settings");
        let hosts = (0..count).map(|index| format!("h{index}"));
        Outliers::new(config, hosts, Duration::ZERO)
    }

    fn fail(outliers: &mut Outliers, host: &str, times: u32, now: u64) -> Option<Ejection> {
        let mut last = None;
        for _ in 0..times {
            last = outliers.handle_status(host, 503, Duration::from_secs(now), 0);
        }
        last
    }

    #[test]
    fn d73_the_third_error_in_a_row_ejects() {
        let mut outliers = outliers(2, 100);
        assert_eq!(fail(&mut outliers, "h0", 2, 0), None);
        outliers.handle_status("h0", 200, Duration::ZERO, 0);
        assert_eq!(fail(&mut outliers, "h0", 2, 0), None);
        assert_eq!(
            fail(&mut outliers, "h0", 1, 0),
            Some(Ejection::Out("h0".to_owned()))
        );
    }

    #[test]
    fn d73_a_tenth_of_three_is_nobody() {
        let mut outliers = outliers(3, 10);
        assert_eq!(fail(&mut outliers, "h0", 9, 0), None);
    }

    #[test]
    fn d73_an_endpoint_is_back_after_its_time_at_the_end_of_an_interval() {
        let mut outliers = outliers(2, 100);
        fail(&mut outliers, "h0", 3, 1);
        let at = |outliers: &mut Outliers, seconds| {
            outliers.handle_timeout(Duration::from_secs(seconds), &mut || 0)
        };
        let back = [Ejection::Back("h0".to_owned())];
        for seconds in [10, 20, 30] {
            assert_eq!(at(&mut outliers, seconds), [], "{seconds}");
        }
        assert_eq!(at(&mut outliers, 40), back, "ejected at 1 for 30 seconds");
        fail(&mut outliers, "h0", 3, 41);
        for seconds in [50, 60, 70, 80, 90, 100] {
            assert_eq!(at(&mut outliers, seconds), [], "{seconds}");
        }
        assert_eq!(
            at(&mut outliers, 110),
            back,
            "twice as long the second time"
        );
    }

    #[test]
    fn d73_a_success_rate_far_below_others_ejects() {
        let mut outliers = outliers(10, 10);
        for host in 0..10 {
            for request in 0..100 {
                // In pairs, so that no three errors follow each other.
                let status = if host == 4 && request % 3 > 0 {
                    503
                } else {
                    200
                };
                outliers.handle_status(&format!("h{host}"), status, Duration::ZERO, 0);
            }
        }
        let changes = outliers.handle_timeout(Duration::from_secs(10), &mut || 0);
        assert_eq!(changes, [Ejection::Out("h4".to_owned())]);
    }
}
