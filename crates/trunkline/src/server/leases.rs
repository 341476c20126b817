//! The table of leases: which origins have one, and when it ends.
//!
//! ```text
//!            grant                   deadline                removed
//!   (none) ────────▶ Active ────────────────────▶ Expiring ─────────▶ (none)
//!                      ▲ │ renew                    ▲   │ held
//!                      │ └──▶ Active       proposed │   ▼
//!                      └─────────────────── renew ──┴─ Held
//! ```
//!
//! Whoever grants or ends a lease has locked the contents of all origins, so a
//! write and its lease are one step. A renewal locks the table alone: it does
//! not wait for a large change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::lease::{LeaseState, LeaseStatus, LeaseTtl, Lifetime};
use super::store::LeaseChange;
use crate::checked::{Fault, Finding};

/// The maximum of leases.
pub(super) const MOST_LEASES: usize = 10_000;
/// The clock is looked at so many times in the shortest lease, to notice that
/// the server was stopped: twice as often as writers should renew.
const LOOKS: u32 = 6;
/// The longest time between two looks at the clock.
const LONGEST_STEP: Duration = Duration::from_secs(10);
/// A removal that is held is proposed again after this time, if contents have
/// changed: it visits all resources of the origin.
const PROPOSED_AGAIN: Duration = Duration::from_secs(10);

/// Of fewer leases all may end at once.
const FEWEST: usize = 10;
/// A writer renews so many times while its lease lasts. With one left, it is
/// late.
const RENEWALS: u32 = 3;

/// The leases of a server.
#[derive(Debug, Default)]
pub(super) struct Leases {
    table: Mutex<Table>,
    /// Tells the task that it may have to look earlier.
    pub(super) changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Table {
    by_origin: BTreeMap<Arc<str>, Lease>,
    /// The task of all leases; `None` as long as there are none.
    task: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Lease {
    ttl: LeaseTtl,
    state: State,
}

#[derive(Debug)]
enum State {
    Active {
        deadline: Instant,
    },
    Expiring,
    Held {
        finding: Finding,
        /// The revision at which it was proposed; `None` once it is confirmed,
        /// or if hooks refused it.
        revision: Option<u64>,
        /// It is not proposed again before.
        next_proposal: Instant,
    },
}

impl Lease {
    /// Starts the time of the lease from the beginning.
    fn restart(&mut self, now: Instant) {
        let deadline = now + self.ttl.get();
        self.state = State::Active { deadline };
    }

    /// Returns whether it has not ended.
    fn is_active(&self) -> bool {
        matches!(self.state, State::Active { .. })
    }

    /// Returns whether it has not ended, and its writer should have renewed it
    /// by now: only the time of one renewal is left.
    fn is_late(&self, now: Instant) -> bool {
        let last_third = self.ttl.get() / RENEWALS;
        matches!(self.state, State::Active { deadline } if deadline <= now + last_third)
    }

    /// Returns whether the removal of its resources is to be proposed, with the
    /// contents at the revision `current`. A removal that is held is due again
    /// only after a while, and after a change.
    fn is_due(&self, now: Instant, current: u64) -> bool {
        match &self.state {
            State::Active { deadline } => *deadline <= now,
            State::Expiring => false,
            State::Held {
                revision,
                next_proposal,
                ..
            } => *next_proposal <= now && *revision != Some(current),
        }
    }
}

/// Most writers of ten or more are late, and one has been so for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    /// The number of leases that are late.
    pub(super) late: usize,
    /// The number of all leases that have not ended.
    pub(super) leases: usize,
}

impl Table {
    /// Returns the silence of writers, if there is one. So many writers do not
    /// die at once: the way to the server is cut, and no lease ends meanwhile.
    fn silence(&self, now: Instant) -> Option<Silence> {
        let active = || self.by_origin.values().filter(|lease| lease.is_active());
        let ends =
            |lease: &Lease| matches!(lease.state, State::Active { deadline } if deadline <= now);
        if !active().any(ends) {
            return None;
        }
        let leases = active().count();
        let late = active().filter(|lease| lease.is_late(now)).count();
        (leases >= FEWEST && late * 2 > leases).then_some(Silence { late, leases })
    }
}

/// When the task looks at the clock next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) time: Instant,
    /// A look that is later than this is that of a server that was stopped.
    pub(super) latest: Instant,
}

impl Leases {
    /// Returns why an origin cannot have a lease; `None` if it can.
    pub(super) fn refuse(&self, origin: &str) -> Option<Fault> {
        let table = self.lock();
        let is_full = table.by_origin.len() >= MOST_LEASES;
        if is_full && !table.by_origin.contains_key(origin) {
            return Some(Fault::TooManyLeases { max: MOST_LEASES });
        }
        let has_runtime = Handle::try_current().is_ok();
        (!has_runtime).then_some(Fault::NoRuntime)
    }

    /// Returns what a change does to the lease of its origin: nothing, if the
    /// lease is as the change wants it.
    pub(super) fn difference(&self, origin: &str, lifetime: Lifetime) -> LeaseChange {
        let table = self.lock();
        let ttl = table.by_origin.get(origin).map(|lease| lease.ttl);
        match lifetime {
            Lifetime::Permanent if ttl.is_some() => LeaseChange::Ends,
            Lifetime::Leased(new_ttl) if ttl != Some(new_ttl) => LeaseChange::Starts(new_ttl),
            _ => LeaseChange::Kept,
        }
    }

    /// Gives an origin a lease, in place of the one that it has. With the first
    /// lease, `start` starts the task of all leases.
    pub(super) fn grant(
        &self,
        origin: &str,
        ttl: LeaseTtl,
        start: impl FnOnce() -> Option<JoinHandle<()>>,
    ) {
        let mut table = self.lock();
        let state = State::Expiring;
        let mut lease = Lease { ttl, state };
        lease.restart(Instant::now());
        table.by_origin.insert(origin.into(), lease);
        if table.task.as_ref().is_none_or(JoinHandle::is_finished) {
            table.task = start();
        }
        self.changed.notify_one();
    }

    /// Renews a lease. Returns whether there is one that has not ended, or
    /// whose removal is held.
    pub(super) fn renew(&self, origin: &str) -> bool {
        let mut table = self.lock();
        match table.by_origin.get_mut(origin) {
            None => false,
            Some(lease) if matches!(lease.state, State::Expiring) => false,
            Some(lease) => {
                lease.restart(Instant::now());
                true
            }
        }
    }

    /// Forgets a lease. Returns whether there was one.
    pub(super) fn forget(&self, origin: &str) -> bool {
        self.lock().by_origin.remove(origin).is_some()
    }

    /// Ends a lease, whatever its state. Returns whether there is one.
    pub(super) fn end(&self, origin: &str) -> bool {
        let mut table = self.lock();
        let lease = table.by_origin.get_mut(origin);
        lease.map(|lease| lease.state = State::Expiring).is_some()
    }

    /// Ends a lease that is still due with the contents at a revision. The
    /// outer `None` means that it was renewed meanwhile; the inner value is the
    /// reason for which its removal was held, if it was.
    pub(super) fn end_due(&self, origin: &str, revision: u64) -> Option<Option<Finding>> {
        let now = Instant::now();
        let mut table = self.lock();
        let is_silent = table.silence(now).is_some();
        let lease = table.by_origin.get_mut(origin)?;
        if !lease.is_due(now, revision) || (is_silent && lease.is_active()) {
            return None;
        }
        match std::mem::replace(&mut lease.state, State::Expiring) {
            State::Held { finding, .. } => Some(Some(finding)),
            _ => Some(None),
        }
    }

    /// Notes that the removal of an origin's resources is held for this reason,
    /// with the contents at a revision.
    pub(super) fn hold(&self, origin: &str, finding: Finding, revision: u64) {
        // A veto may end though contents do not change.
        let revision = Some(revision).filter(|_| !finding.fault.is_veto());
        if let Some(lease) = self.lock().by_origin.get_mut(origin) {
            lease.state = State::Held {
                finding,
                revision,
                next_proposal: Instant::now() + PROPOSED_AGAIN,
            };
        }
    }

    /// Lets the removal that is held with this hash be proposed at once.
    pub(super) fn confirm(&self, hash: &str) {
        let mut table = self.lock();
        for lease in table.by_origin.values_mut() {
            if let State::Held {
                finding,
                revision,
                next_proposal,
            } = &mut lease.state
                && finding.fault.held_hash() == Some(hash)
            {
                (*revision, *next_proposal) = (None, Instant::now());
            }
        }
        self.changed.notify_one();
    }

    /// Starts the time of all leases that have not ended from the beginning.
    /// Returns their number.
    pub(super) fn restart(&self, now: Instant) -> usize {
        let mut table = self.lock();
        let leases = table.by_origin.values_mut();
        let active = leases.filter(|lease| lease.is_active());
        active.map(|lease| lease.restart(now)).count()
    }

    /// Returns when the task has to look next. `None` if there are no leases:
    /// then the task ends, and the next lease starts another.
    pub(super) fn next_look(&self, now: Instant, revision: u64) -> Option<Look> {
        let mut table = self.lock();
        let Some(shortest) = table.by_origin.values().map(|lease| lease.ttl).min() else {
            table.task = None;
            return None;
        };
        let step = (shortest.get() / LOOKS).min(LONGEST_STEP);
        let is_silent = table.silence(now).is_some();

        let due_times = table
            .by_origin
            .values()
            .filter_map(|lease| match lease.state {
                State::Active { .. } if is_silent => None,
                State::Active { deadline } => Some(deadline),
                _ => lease.is_due(now, revision).then_some(now),
            });
        let time = due_times.fold(now + step, Instant::min);
        let latest = time + step;
        Some(Look { time, latest })
    }

    /// Returns the silence of writers, if there is one.
    pub(super) fn silence(&self, now: Instant) -> Option<Silence> {
        self.lock().silence(now)
    }

    /// Returns the origins whose leases are due. While most writers are silent,
    /// no lease ends; removals that were held are proposed all the same.
    pub(super) fn due(&self, now: Instant, revision: u64) -> Vec<Arc<str>> {
        let table = self.lock();
        let is_silent = table.silence(now).is_some();
        let leases = table.by_origin.iter();
        let due_leases = leases
            .filter(|(_, lease)| lease.is_due(now, revision) && !(is_silent && lease.is_active()));
        due_leases.map(|(origin, _)| Arc::clone(origin)).collect()
    }

    /// Returns all leases, by origin.
    pub(super) fn list(&self) -> Vec<LeaseStatus> {
        let now = Instant::now();
        let table = self.lock();
        let leases = table.by_origin.iter().map(|(origin, lease)| LeaseStatus {
            origin: Arc::clone(origin),
            ttl: lease.ttl,
            state: match &lease.state {
                State::Active { deadline } => LeaseState::Active {
                    remaining: deadline.saturating_duration_since(now),
                },
                State::Expiring => LeaseState::Expiring,
                State::Held { finding, .. } => LeaseState::Held {
                    finding: finding.clone(),
                },
            },
        });
        leases.collect()
    }

    /// Locks the leases. Ignores poison: a lease is never half changed.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
