//! What an attack gets: the doors of the server, how large it shall be, and when
//! it is over. What it gives back: what the attackers were told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::door::Door;
use crate::error::Result;

/// How large an attack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// As large as one machine can make it.
    Full,
    /// As small as it still is that attack.
    Quick,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) xds: Door,
    pub(crate) admin: Door,
    pub(crate) scale: Scale,
    pub(crate) until: Instant,
    /// How much of the attack the server took.
    taken: Arc<AtomicU64>,
}

impl Field {
    pub(crate) fn new(xds: Door, admin: Door, scale: Scale, until: Instant) -> Self {
        Self {
            xds,
            admin,
            scale,
            until,
            taken: Arc::default(),
        }
    }

    /// Notes what the server took: messages, names, connections, requests.
    pub(crate) fn note_taken(&self, count: usize) {
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// How much the server took so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// A number by the scale.
    pub(crate) fn pick(&self, full: usize, quick: usize) -> usize {
        match self.scale {
            Scale::Full => full,
            Scale::Quick => quick,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Waits until the attack is over.
    pub(crate) async fn hold(&self) {
        tokio::time::sleep_until(self.until.into()).await;
    }

    /// Waits a while, or until the attack is over.
    pub(crate) async fn pause(&self, time: Duration) {
        let until = self.until.min(Instant::now() + time);
        tokio::time::sleep_until(until.into()).await;
    }

    /// Lets so many attackers act at once until the attack is over. An attacker
    /// that the server turned away counts as refused; those that are not done
    /// at the end are cut off.
    pub(crate) async fn crowd<F, M>(&self, count: usize, attacker: F) -> Findings
    where
        F: Fn(usize, Self) -> M,
        M: Future<Output = Result<()>> + Send + 'static,
    {
        let mut attackers = JoinSet::new();
        for index in 0..count {
            attackers.spawn(attacker(index, self.clone()));
        }
        let mut findings = Findings::default();
        let over = self.hold();
        tokio::pin!(over);
        loop {
            tokio::select! {
                ended = attackers.join_next() => match ended {
                    Some(Ok(outcome)) => findings.add(outcome),
                    Some(Err(_)) => {}
                    None => return findings,
                },
                () = &mut over => break,
            }
        }
        // Those that are done at the very end still count.
        while let Some(Ok(outcome)) = attackers.try_join_next() {
            findings.add(outcome);
        }
        findings
    }
}

/// What attackers were told.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// How often it turned an attacker away.
    pub(crate) refused: u64,
    /// One of its reasons.
    pub(crate) reason: Option<String>,
    /// What the server should have done and did not.
    pub(crate) faults: Vec<String>,
}

impl Findings {
    /// Adds the outcome of one attacker.
    pub(crate) fn add(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.refused += 1;
            self.reason.get_or_insert_with(|| error.to_string());
        }
    }

    /// Adds a fault unless something holds.
    pub(crate) fn expect(&mut self, holds: bool, fault: impl Into<String>) {
        if !holds {
            self.faults.push(fault.into());
        }
    }
}
