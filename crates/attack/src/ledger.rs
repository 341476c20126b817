//! What was applied and when, what the victim has seen, and how late.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::contents::CLUSTERS;
use crate::error::Error;

/// The longest latency that is told from others, in microseconds.
const SLOWEST: u64 = 120_000_000;

/// Shared by the driver, which applies, and the victim, which sees.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// When each change that the victim has not seen was sent to the server.
    sent: HashMap<u64, Instant>,
    /// The newest revision of each cluster that the server accepted.
    applied: [u64; CLUSTERS],
    /// The newest revision of each cluster that the victim has.
    seen: [u64; CLUSTERS],
    /// Microseconds from a change being sent until the victim had it.
    latencies: Option<Histogram<u64>>,
    faults: Faults,
    /// Why the last change that failed did.
    reason: Option<String>,
}

/// What may not happen to the victim or the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Clusters that the victim was told to remove.
    pub(crate) removed: u64,
    /// Times that the victim's stream ended.
    pub(crate) ended: u64,
    /// Clusters that went back to an earlier revision.
    pub(crate) reverted: u64,
    /// Changes that the server refused.
    pub(crate) refused: u64,
    /// Changes that the server did not answer: it was late, or its connection
    /// broke.
    pub(crate) unanswered: u64,
    /// Changes that were not made because that of the same cluster before was
    /// not answered.
    pub(crate) skipped: u64,
}

impl Faults {
    /// The faults since an earlier look.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            removed: self.removed - earlier.removed,
            ended: self.ended - earlier.ended,
            reverted: self.reverted - earlier.reverted,
            refused: self.refused - earlier.refused,
            unanswered: self.unanswered - earlier.unanswered,
            skipped: self.skipped - earlier.skipped,
        }
    }
}

impl Ledger {
    /// Notes a change before it is sent.
    pub(crate) fn send(&self, revision: u64) {
        self.lock().sent.insert(revision, Instant::now());
    }

    /// Notes that the server has accepted a change.
    pub(crate) fn accept(&self, index: usize, revision: u64) {
        let mut entries = self.lock();
        let applied = &mut entries.applied[index];
        *applied = revision.max(*applied);
    }

    /// Notes a change that the server did not accept.
    pub(crate) fn fail(&self, error: &Error) {
        let mut entries = self.lock();
        match error {
            Error::Refused(_) => entries.faults.refused += 1,
            _ => entries.faults.unanswered += 1,
        }
        entries.reason = Some(error.to_string());
    }

    /// Takes the reason for which the last change that failed did.
    pub(crate) fn take_reason(&self) -> Option<String> {
        self.lock().reason.take()
    }

    /// Notes a cluster that the victim received.
    pub(crate) fn see(&self, index: usize, revision: u64) {
        let mut entries = self.lock();
        let seen = &mut entries.seen[index];
        if revision < *seen {
            entries.faults.reverted += 1;
            return;
        }
        *seen = revision;
        let Some(sent) = entries.sent.remove(&revision) else {
            return;
        };
        let micros = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
        if let Some(latencies) = &mut entries.latencies {
            latencies.saturating_record(micros);
        }
    }

    /// Notes a fault.
    pub(crate) fn blame(&self, fault: impl FnOnce(&mut Faults)) {
        fault(&mut self.lock().faults);
    }

    pub(crate) fn faults(&self) -> Faults {
        self.lock().faults
    }

    /// Begins a phase: its latencies are counted anew.
    pub(crate) fn begin(&self) {
        self.lock().latencies = Histogram::new_with_max(SLOWEST, 3).ok();
    }

    /// Latencies of the phase that ends: p50 and p99 in milliseconds.
    pub(crate) fn end(&self) -> (f64, f64) {
        let latencies = self.lock().latencies.take();
        let quantile = |q: f64| {
            let micros = latencies.as_ref().map_or(0, |all| all.value_at_quantile(q));
            micros as f64 / 1000.0
        };
        (quantile(0.5), quantile(0.99))
    }

    /// Whether the victim has seen a change.
    pub(crate) fn has_seen_any(&self) -> bool {
        self.lock().seen.iter().any(|seen| *seen > 0)
    }

    /// How many clusters the victim does not have as the server accepted them.
    pub(crate) fn behind(&self) -> usize {
        let entries = self.lock();
        let pairs = entries.applied.iter().zip(&entries.seen);
        pairs.filter(|(applied, seen)| seen < applied).count()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_was_accepted_is_behind_until_it_is_seen() {
        let ledger = Ledger::default();
        ledger.begin();
        ledger.send(7);
        ledger.accept(1, 7);
        assert_eq!(ledger.behind(), 1);
        ledger.see(1, 7);
        assert_eq!(ledger.behind(), 0);
        ledger.see(1, 3);
        assert_eq!(ledger.faults().reverted, 1);
        assert!(ledger.end().1 >= 0.0);
    }

    #[test]
    fn a_change_that_is_refused_is_told_from_one_without_an_answer() {
        let ledger = Ledger::default();
        ledger.fail(&Error::Refused("503".into()));
        ledger.fail(&Error::Late(30));
        let faults = ledger.faults();
        assert_eq!((faults.refused, faults.unanswered), (1, 1));
        assert_eq!(
            ledger.take_reason().as_deref(),
            Some("no answer within 30 s")
        );
        assert_eq!(ledger.take_reason(), None);
    }
}
