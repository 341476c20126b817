//! Circuit breakers: how much of something may be under way at once (61).
//!
//! One set is for each cluster and priority, and all workers share it. Two
//! workers that ask at the same moment may both be let in, so a limit can be
//! exceeded by a few, as in Envoy.

use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, circuit_breakers::Thresholds};

use crate::findings::Findings;
use crate::route::Priority;

/// The limits of one priority.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    connections: u64,
    pending: u64,
    requests: u64,
    retries: Retries,
}

/// How many retries may be under way.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Retries {
    Fixed(u64),
    /// A part of all requests, and a number that is always allowed.
    Budget {
        percent: f64,
        least: u64,
    },
}

impl Default for Limits {
    /// Returns the limits that Envoy has by default.
    fn default() -> Self {
        Self {
            connections: 1024,
            pending: 1024,
            requests: 1024,
            retries: Retries::Fixed(3),
        }
    }
}

impl Limits {
    /// Reads the limits of a cluster for a priority: the first thresholds of it, or
    /// Envoy's defaults.
    pub fn compile(cluster: &Cluster, priority: Priority) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let breakers = cluster.circuit_breakers.as_ref();
        let thresholds = breakers.map_or(&[][..], |breakers| &breakers.thresholds);
        let expected = i32::from(priority == Priority::High);
        let position = thresholds
            .iter()
            .position(|threshold| threshold.priority == expected);
        let Some(index) = position else {
            return Ok(Self::default());
        };
        let place = Place::ROOT.field("circuit_breakers");
        let limits = Self::read(
            &thresholds[index],
            &place.item("thresholds", index),
            &mut findings,
        );
        findings.finish(limits)
    }

    /// Reads thresholds. A limit that is not said is Envoy's default.
    fn read(message: &Thresholds, place: &Place<'_>, findings: &mut Findings) -> Self {
        let limit_or = |limit: Option<u32>, default: u64| limit.map_or(default, u64::from);
        let default = Self::default();
        let pools = message
            .max_connection_pools
            .is_some_and(|max| max.value != u32::MAX);
        findings.unsupported(&place.field("max_connection_pools"), pools);
        let retries = match &message.retry_budget {
            Some(budget) => Retries::Budget {
                percent: budget.budget_percent.map_or(20.0, |percent| percent.value),
                least: limit_or(budget.min_retry_concurrency.map(|least| least.value), 3),
            },
            None => Retries::Fixed(limit_or(message.max_retries.map(|max| max.value), 3)),
        };

        if let Retries::Budget { percent, .. } = retries
            && !(0.0..=100.0).contains(&percent)
        {
            let problem = Problem::Other(format!("{percent} is no percentage"));
            findings.add(&place.field("retry_budget"), problem);
        }

        Self {
            connections: limit_or(
                message.max_connections.map(|max| max.value),
                default.connections,
            ),
            pending: limit_or(
                message.max_pending_requests.map(|max| max.value),
                default.pending,
            ),
            requests: limit_or(message.max_requests.map(|max| max.value), default.requests),
            retries,
        }
    }
}

/// What is under way in a cluster, for one priority.
#[derive(Debug, Default)]
pub struct Breakers {
    limits: Limits,
    connections: AtomicU64,
    pending: AtomicU64,
    requests: AtomicU64,
    retries: AtomicU64,
}

impl Breakers {
    /// Makes breakers with nothing under way.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Counts a connection to an endpoint that has `host_connections`, unless
    /// there are too many. An endpoint without any always gets one. Returns
    /// whether the connection was counted, and may be made.
    #[must_use]
    pub fn try_connection(&self, host_connections: u64) -> bool {
        let is_first = host_connections == 0;
        let limit = match is_first {
            true => u64::MAX,
            false => self.limits.connections,
        };
        enter(&self.connections, limit)
    }

    /// Counts a request that waits for a connection, unless too many do. A
    /// request for which a connection has to be made waits too, so a limit of 0
    /// refuses it.
    #[must_use]
    pub fn try_pending(&self) -> bool {
        enter(&self.pending, self.limits.pending)
    }

    /// Counts a request that has a connection, unless there are too many.
    #[must_use]
    pub fn try_request(&self) -> bool {
        enter(&self.requests, self.limits.requests)
    }

    /// Counts a retry, unless there are too many. A budget allows a part of the
    /// requests that are under way or wait.
    #[must_use]
    pub fn try_retry(&self) -> bool {
        let limit = match self.limits.retries {
            Retries::Fixed(limit) => limit,
            Retries::Budget { percent, least } => {
                let active = self.requests.load(Ordering::Relaxed);
                let active = active + self.pending.load(Ordering::Relaxed);
                #[expect(clippy::cast_precision_loss, reason = "requests under way")]
                let part = percent / 100.0 * active as f64;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a floor"
                )]
                let part = part as u64;
                part.max(least)
            }
        };
        enter(&self.retries, limit)
    }

    /// Counts the end of a connection that [`try_connection`](Self::try_connection)
    /// let in.
    pub fn end_connection(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the end of a wait that [`try_pending`](Self::try_pending) let in.
    pub fn end_pending(&self) {
        self.pending.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the end of a request that [`try_request`](Self::try_request) let in.
    pub fn end_request(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the end of a retry that [`try_retry`](Self::try_retry) let in.
    pub fn end_retry(&self) {
        self.retries.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds one to a count that is below its limit. Returns whether it was.
fn enter(count: &AtomicU64, limit: u64) -> bool {
    let is_free = count.load(Ordering::Relaxed) < limit;
    if is_free {
        count.fetch_add(1, Ordering::Relaxed);
    }
    is_free
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breakers(connections: u64, pending: u64, requests: u64) -> Breakers {
        Breakers::new(Limits {
            connections,
            pending,
            requests,
            ..Limits::default()
        })
    }

    #[test]
    fn d61_limits_refuse_what_is_too_much() {
        let none_pending = breakers(1024, 0, 1024);
        assert!(!none_pending.try_pending(), "even the first request queues");
        let no_connection = breakers(0, 1024, 1024);
        assert!(
            no_connection.try_connection(0),
            "an endpoint gets one always"
        );
        assert!(!no_connection.try_connection(1));
        let one_request = breakers(1024, 1024, 1);
        assert!(one_request.try_request());
        assert!(!one_request.try_request(), "while the first is under way");
        one_request.end_request();
        assert!(one_request.try_request());
    }

    #[test]
    fn d43_a_budget_is_a_part_of_what_is_under_way() {
        let breakers = Breakers::new(Limits {
            retries: Retries::Budget {
                percent: 20.0,
                least: 3,
            },
            ..Limits::default()
        });
        let allowed = |breakers: &Breakers| (0..100).take_while(|_| breakers.try_retry()).count();
        assert_eq!(allowed(&breakers), 3);
        (0..50).for_each(|_| assert!(breakers.try_request()));
        assert_eq!(allowed(&breakers), 7, "20 % of 50 are 10");
    }
}
