//! A roll-out: an update goes to canaries first, and to the rest after those
//! have taken it and a soak time has passed (M14).
//!
//! ```text
//!              propose                 all canaries ACKed
//!   promoted ──────────▶ on canaries ─────────────────────▶ soaking ──┐
//!      ▲                  ▲     │ NACK                         │ NACK │ soak time
//!      │                  │     ▼                              ▼      │
//!      │          propose └── stopped ◀────────────────────────┘      │
//!      └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! The machine decides about one update at a time and knows no protocol: a
//! revision is any number that grows, a canary any key. Its owner sends the
//! newest revision to canaries, and [`Rollout::promoted`] to everyone else.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::moment::Moment;

/// See the module's documentation. `K` names a canary.
#[derive(Clone, Debug)]
pub struct Rollout<K> {
    soak: Duration,
    promoted: u64,
    newest: u64,
    stage: Stage<K>,
    /// The canaries that are connected, with the revision that each ACKed last.
    canaries: BTreeMap<K, Option<u64>>,
}

/// How far the newest revision is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage<K> {
    /// Everyone may have it.
    Promoted,
    /// Canaries have it, or some do; or there is none yet.
    OnCanaries,
    /// All canaries have taken it; it is promoted at this moment unless one of
    /// them rejects it after all.
    Soaking(Moment),
    /// A canary rejected it, and why: an alarm. It is never promoted.
    Stopped {
        /// The canary.
        canary: K,
        /// Its words.
        reason: String,
    },
}

impl<K: Clone + Ord> Rollout<K> {
    /// Begins with a revision that everyone has.
    #[must_use]
    pub fn new(promoted: u64, soak: Duration) -> Self {
        Self {
            soak,
            promoted,
            newest: promoted,
            stage: Stage::Promoted,
            canaries: BTreeMap::new(),
        }
    }

    /// The revision that sinks other than canaries have.
    #[must_use]
    pub fn promoted(&self) -> u64 {
        self.promoted
    }

    /// How far the newest revision is.
    #[must_use]
    pub fn stage(&self) -> &Stage<K> {
        &self.stage
    }

    /// A newer revision. The one before it, if it was not promoted, never will
    /// be: canaries have to take this one. An older one changes nothing.
    pub fn propose(&mut self, revision: u64) {
        if revision > self.newest {
            self.newest = revision;
            self.stage = Stage::OnCanaries;
        }
    }

    /// A canary connected, and holds nothing yet.
    pub fn handle_connected(&mut self, canary: K) {
        self.canaries.entry(canary).or_default();
        // It has to take the revision too.
        if matches!(self.stage, Stage::Soaking(_)) {
            self.stage = Stage::OnCanaries;
        }
    }

    /// A canary left. The others decide; if it was the last, nothing is
    /// promoted until one returns.
    pub fn handle_disconnected(&mut self, canary: &K, now: Moment) {
        self.canaries.remove(canary);
        self.soak_if_taken(now);
    }

    /// A canary ACKed a revision.
    pub fn handle_ack(&mut self, canary: &K, revision: u64, now: Moment) {
        if let Some(acked) = self.canaries.get_mut(canary) {
            *acked = Some(revision);
            self.soak_if_taken(now);
        }
    }

    /// A canary NACKed a revision: if it is the newest and was not promoted, the
    /// roll-out stops.
    pub fn handle_nack(&mut self, canary: &K, revision: u64, reason: &str) {
        let is_open = matches!(self.stage, Stage::OnCanaries | Stage::Soaking(_));
        if is_open && revision == self.newest && self.canaries.contains_key(canary) {
            self.stage = Stage::Stopped {
                canary: canary.clone(),
                reason: reason.to_owned(),
            };
        }
    }

    /// When [`Self::poll_promoted`] has to be asked again; `None` if nothing is
    /// awaited but a canary.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        match self.stage {
            Stage::Soaking(until) => Some(until),
            _ => None,
        }
    }

    /// Returns the revision that everyone may have from now on, once.
    pub fn poll_promoted(&mut self, now: Moment) -> Option<u64> {
        match self.stage {
            Stage::Soaking(until) if until <= now => {
                self.promoted = self.newest;
                self.stage = Stage::Promoted;
                Some(self.promoted)
            }
            _ => None,
        }
    }

    fn soak_if_taken(&mut self, now: Moment) {
        let newest = Some(self.newest);
        let is_taken =
            !self.canaries.is_empty() && self.canaries.values().all(|acked| *acked == newest);
        if is_taken && self.stage == Stage::OnCanaries {
            self.stage = Stage::Soaking(now + self.soak);
        }
    }
}
