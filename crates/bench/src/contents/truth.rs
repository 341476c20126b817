//! What was put, and when: the measure of what clients see.
//!
//! Every change of a resource has a revision of its own, counted over all
//! resources, so a revision that a client sees tells which change it is and
//! when that was made.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

use super::{Kind, Recipe};

/// The revision of everything that was there before the first change.
const FIRST: u32 = 1;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) recipe: Recipe,
    /// Resources of each type.
    pub(crate) count: usize,
    start: Instant,
    /// The newest revision of each, by type and place; zero is not there.
    newest: Vec<Vec<AtomicU32>>,
    /// Clients that hold each.
    holders: Vec<Vec<AtomicU32>>,
    changes: Vec<Change>,
    last: AtomicU32,
    /// Told when a change has arrived everywhere.
    pub(crate) arrived: Notify,
}

#[derive(Debug, Default)]
struct Change {
    /// When, in nanoseconds from the start.
    made: AtomicU64,
    /// The revision of the same resource before.
    before: AtomicU32,
    /// Clients that have yet to see it.
    waiting: AtomicI64,
}

impl Truth {
    /// Room for so many changes; they are made later.
    pub(crate) fn new(recipe: Recipe, count: usize, changes: usize) -> Self {
        let places = || {
            let rows = Kind::ALL.iter().map(|kind| {
                let len = if recipe.kinds.contains(kind) {
                    count
                } else {
                    0
                };
                (0..len).map(|_| AtomicU32::new(0)).collect()
            });
            rows.collect()
        };
        Self {
            newest: places(),
            holders: places(),
            changes: (0..changes + 2).map(|_| Change::default()).collect(),
            last: AtomicU32::new(FIRST),
            arrived: Notify::new(),
            start: Instant::now(),
            recipe,
            count,
        }
    }

    /// Nanoseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// A resource is there from the beginning.
    pub(crate) fn begin(&self, kind: Kind, index: usize) {
        self.newest[kind.place()][index].store(FIRST, Ordering::Release);
    }

    /// The revision of a change that is about to be made; none if there is no
    /// room for it.
    pub(crate) fn change(&self, kind: Kind, index: usize) -> Option<u32> {
        let revision = self.last.fetch_add(1, Ordering::AcqRel) + 1;
        let change = self.changes.get(revision as usize)?;
        let newest = &self.newest[kind.place()][index];
        let holders = self.holders[kind.place()][index].load(Ordering::Acquire);
        change
            .waiting
            .fetch_add(i64::from(holders), Ordering::AcqRel);
        change.made.store(self.now(), Ordering::Release);
        change
            .before
            .store(newest.load(Ordering::Acquire), Ordering::Release);
        newest.store(revision, Ordering::Release);
        Some(revision)
    }

    /// The newest revision of a resource; none if the tool never put it.
    pub(crate) fn newest(&self, kind: Kind, index: usize) -> Option<u32> {
        let newest = self.newest[kind.place()].get(index)?;
        Some(newest.load(Ordering::Acquire)).filter(|revision| *revision > 0)
    }

    /// The newest revision of all.
    pub(crate) fn last(&self) -> u32 {
        self.last.load(Ordering::Acquire)
    }

    /// A client holds a resource from now on.
    pub(crate) fn held(&self, kind: Kind, index: usize) {
        if let Some(holders) = self.holders[kind.place()].get(index) {
            holders.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// How many clients hold a resource.
    pub(crate) fn holders(&self, kind: Kind, index: usize) -> u32 {
        self.holders[kind.place()][index].load(Ordering::Acquire)
    }

    /// A client that held `old` sees `new`: how long each change in between
    /// took to get to it, the newest first.
    pub(crate) fn seen(&self, old: u32, new: u32, mut each: impl FnMut(u64)) {
        let now = self.now();
        let mut revision = new;
        while revision > old.max(FIRST) {
            let Some(change) = self.changes.get(revision as usize) else {
                return;
            };
            each(now.saturating_sub(change.made.load(Ordering::Acquire)));
            if change.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.arrived.notify_waiters();
            }
            revision = change.before.load(Ordering::Acquire);
        }
    }

    /// How many clients have yet to see a change.
    pub(crate) fn waiting(&self, revision: u32) -> u64 {
        let change = self.changes.get(revision as usize);
        let waiting = change.map_or(0, |change| change.waiting.load(Ordering::Acquire));
        u64::try_from(waiting).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_arrives_when_its_holders_saw_it_or_a_newer_one() {
        let recipe = Recipe {
            kinds: vec![Kind::Clusters],
            prefix: "b".into(),
            size: 0,
        };
        let truth = Truth::new(recipe, 2, 2);
        truth.begin(Kind::Clusters, 0);
        assert_eq!(truth.newest(Kind::Clusters, 1), None);
        assert_eq!(truth.newest(Kind::Endpoints, 0), None);
        truth.held(Kind::Clusters, 0);
        truth.held(Kind::Clusters, 0);
        let first = truth.change(Kind::Clusters, 0).unwrap();
        let second = truth.change(Kind::Clusters, 0).unwrap();
        assert_eq!((first, second), (2, 3));
        assert_eq!(truth.change(Kind::Clusters, 0), None);
        let mut count = 0;
        truth.seen(FIRST, first, |_| count += 1);
        assert_eq!(
            (count, truth.waiting(first), truth.waiting(second)),
            (1, 1, 2)
        );
        // The other one skips a revision.
        truth.seen(FIRST, second, |_| count += 1);
        assert_eq!(
            (count, truth.waiting(first), truth.waiting(second)),
            (3, 0, 1)
        );
    }
}
