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

/// The roll-out of one update after another; see the module's documentation.
/// `K` names a canary.
#[derive(Clone, Debug)]
pub struct Rollout<K> {
    /// The time that an update soaks.
    soak: Duration,
    /// The revision that everyone may have.
    promoted: u64,
    /// The revision that canaries get.
    newest: u64,
    stage: Stage<K>,
    /// The canaries that are connected, with the revision that each ACKed last.
    canaries: BTreeMap<K, Option<u64>>,
}

/// The progress of the newest revision.
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
    /// Makes a roll-out that begins with a revision that everyone has.
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

    /// Returns the revision that sinks other than canaries have.
    #[must_use]
    pub fn promoted(&self) -> u64 {
        self.promoted
    }

    /// Returns the progress of the newest revision.
    #[must_use]
    pub fn stage(&self) -> &Stage<K> {
        &self.stage
    }

    /// Begins to roll out a newer revision, which canaries have to take. The
    /// revision before it, if it was not promoted, never will be. An older
    /// revision changes nothing.
    pub fn propose(&mut self, revision: u64) {
        if revision > self.newest {
            self.newest = revision;
            self.stage = Stage::OnCanaries;
        }
    }

    /// Adds a canary that has connected, and holds nothing yet. One that is
    /// there already keeps its state.
    pub fn handle_connected(&mut self, canary: K) {
        self.canaries.entry(canary).or_default();
        // The new canary has to take the revision, too.
        if matches!(self.stage, Stage::Soaking(_)) {
            self.stage = Stage::OnCanaries;
        }
    }

    /// Removes a canary that has left. The others decide; if it was the last,
    /// nothing is promoted until one returns.
    pub fn handle_disconnected(&mut self, canary: &K, now: Moment) {
        self.canaries.remove(canary);
        self.soak_if_taken(now);
    }

    /// Records that a canary ACKed a revision. One that is not connected is
    /// ignored.
    pub fn handle_ack(&mut self, canary: &K, revision: u64, now: Moment) {
        if let Some(acked_revision) = self.canaries.get_mut(canary) {
            *acked_revision = Some(revision);
            self.soak_if_taken(now);
        }
    }

    /// Stops the roll-out if a canary NACKed the newest revision and that was
    /// not promoted. Any other NACK is ignored.
    pub fn handle_nack(&mut self, canary: &K, revision: u64, reason: &str) {
        let may_stop = matches!(self.stage, Stage::OnCanaries | Stage::Soaking(_));
        if may_stop && revision == self.newest && self.canaries.contains_key(canary) {
            self.stage = Stage::Stopped {
                canary: canary.clone(),
                reason: reason.to_owned(),
            };
        }
    }

    /// Returns the moment at which [`Self::poll_promoted`] has to be asked
    /// again; `None` if nothing but a canary is awaited.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        match self.stage {
            Stage::Soaking(end) => Some(end),
            _ => None,
        }
    }

    /// Promotes the newest revision if its soak time is over, and returns it.
    /// `None` if nothing is promoted now.
    pub fn poll_promoted(&mut self, now: Moment) -> Option<u64> {
        match self.stage {
            Stage::Soaking(end) if end <= now => {
                self.promoted = self.newest;
                self.stage = Stage::Promoted;
                Some(self.promoted)
            }
            _ => None,
        }
    }

    /// Starts the soak time if there are canaries and all of them have ACKed
    /// the newest revision.
    fn soak_if_taken(&mut self, now: Moment) {
        let newest = Some(self.newest);
        let have_all_acked = self.canaries.values().all(|acked| *acked == newest);
        let is_taken = !self.canaries.is_empty() && have_all_acked;
        if is_taken && self.stage == Stage::OnCanaries {
            self.stage = Stage::Soaking(now + self.soak);
        }
    }
}
