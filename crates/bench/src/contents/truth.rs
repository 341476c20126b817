//! The revisions that were put, and when: the measure of what clients see.
//!
//! Every change of a resource has a revision of its own, counted over all
//! resources, so a revision that a client sees tells which change it is and
//! when that was made. A removal is a change as well; a client that is told of
//! one sees the newest that there was.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

use super::{Kind, Place, Recipe};

/// The revision of everything that was there before the first change.
const FIRST: u32 = 1;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) recipe: Recipe,
    /// Resources of each type.
    pub(crate) count: usize,
    start: Instant,
    /// The newest revision of each variant, by type; zero is not there.
    newest: Vec<Vec<AtomicU32>>,
    /// Clients that hold each variant.
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
    /// It removed the resource.
    removed: AtomicBool,
    /// Clients that have yet to see it.
    waiting: AtomicI64,
}

impl Truth {
    /// Makes a truth of resources that are not there yet, with room for so many
    /// changes.
    pub(crate) fn new(recipe: Recipe, count: usize, changes: usize) -> Self {
        let places = || {
            let rows = Kind::ALL.iter().map(|kind| {
                let len = match recipe.kinds.contains(kind) {
                    true => count * recipe.variants.count(),
                    false => 0,
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

    /// Returns the nanoseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns when the clock started.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Returns the places of every variant of every resource of a type.
    pub(crate) fn places(&self, kind: Kind) -> impl Iterator<Item = Place> + use<> {
        let variants = self.recipe.variants.count();
        (0..self.count * variants).map(move |at| Place {
            kind,
            index: at / variants,
            variant: at % variants,
        })
    }

    /// Returns what is counted of a place in a table; `None` if it is of a type
    /// that there is not.
    fn cell<'a>(&self, rows: &'a [Vec<AtomicU32>], place: Place) -> Option<&'a AtomicU32> {
        let at = place.index * self.recipe.variants.count() + place.variant;
        rows[place.kind.place()].get(at)
    }

    /// Notes that a resource is there before the first change.
    pub(crate) fn note_loaded(&self, place: Place) {
        if let Some(newest) = self.cell(&self.newest, place) {
            newest.store(FIRST, Ordering::Release);
        }
    }

    /// Notes that a resource is about to be changed, and returns the revision
    /// that it gets; `None` if there is no room for the change.
    pub(crate) fn begin_change(&self, place: Place) -> Option<u32> {
        self.begin_revision(place, false)
    }

    /// Notes that a resource is about to be removed, and returns the revision
    /// of that; `None` if there is no room for it.
    pub(crate) fn begin_removal(&self, place: Place) -> Option<u32> {
        self.begin_revision(place, true)
    }

    /// Gives a change its revision, before it is made. All clients that hold
    /// the resource now have yet to see it.
    fn begin_revision(&self, place: Place, removed: bool) -> Option<u32> {
        let newest = self.cell(&self.newest, place)?;
        let revision = self.last.fetch_add(1, Ordering::AcqRel) + 1;
        let change = self.changes.get(revision as usize)?;
        let holders = self.holders(place);
        change
            .waiting
            .fetch_add(i64::from(holders), Ordering::AcqRel);
        change.made.store(self.now(), Ordering::Release);
        change.removed.store(removed, Ordering::Release);
        change
            .before
            .store(newest.load(Ordering::Acquire), Ordering::Release);
        newest.store(revision, Ordering::Release);
        Some(revision)
    }

    /// Returns the newest revision of a resource; `None` if the tool never put
    /// it.
    pub(crate) fn newest(&self, place: Place) -> Option<u32> {
        let newest = self.cell(&self.newest, place)?;
        Some(newest.load(Ordering::Acquire)).filter(|revision| *revision > 0)
    }

    /// Returns whether the newest change of a resource removed it.
    pub(crate) fn is_gone(&self, place: Place) -> bool {
        let newest = self.newest(place);
        newest.is_some_and(|newest| self.removal_since(place, newest - 1) == Some(newest))
    }

    /// Returns the newest revision after `old` that removed a resource; `None`
    /// if there is none.
    pub(crate) fn removal_since(&self, place: Place, old: u32) -> Option<u32> {
        let mut revision = self.newest(place)?;
        while revision > old.max(FIRST) {
            let change = self.changes.get(revision as usize)?;
            if change.removed.load(Ordering::Acquire) {
                return Some(revision);
            }
            revision = change.before.load(Ordering::Acquire);
        }
        None
    }

    /// Returns the newest revision of all.
    pub(crate) fn last_revision(&self) -> u32 {
        self.last.load(Ordering::Acquire)
    }

    /// Counts one more client that holds a resource.
    pub(crate) fn add_holder(&self, place: Place) {
        if let Some(holders) = self.cell(&self.holders, place) {
            holders.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Returns how many clients hold a resource.
    pub(crate) fn holders(&self, place: Place) -> u32 {
        let holders = self.cell(&self.holders, place);
        holders.map_or(0, |holders| holders.load(Ordering::Acquire))
    }

    /// Notes that a client which held the revision `old` sees `new`. Calls
    /// `each` with the nanoseconds that each change in between took to get to
    /// the client, the newest first.
    pub(crate) fn note_seen(&self, old: u32, new: u32, mut each: impl FnMut(u64)) {
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

    /// Returns how many clients have yet to see a change.
    pub(crate) fn waiting_clients(&self, revision: u32) -> u64 {
        let change = self.changes.get(revision as usize);
        let waiting = change.map_or(0, |change| change.waiting.load(Ordering::Acquire));
        u64::try_from(waiting).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::Variants;

    fn truth(variants: usize, changes: usize) -> Truth {
        let recipe = Recipe {
            kinds: vec![Kind::Clusters],
            prefix: "b".into(),
            variants: Variants::new(variants, variants).unwrap(),
            ..Recipe::default()
        };
        Truth::new(recipe, 2, changes)
    }

    #[test]
    fn every_variant_has_a_place_of_its_own() {
        let truth = truth(3, 1);
        let all: Vec<Place> = truth.places(Kind::Clusters).collect();
        assert_eq!(all.len(), 6);
        all.iter().for_each(|place| truth.note_loaded(*place));
        truth.add_holder(all[4]);
        assert_eq!(truth.begin_change(all[4]), Some(2));
        let newest: Vec<_> = all.iter().map(|p| truth.newest(*p).unwrap()).collect();
        assert_eq!(newest, [1, 1, 1, 1, 2, 1]);
        assert_eq!((truth.holders(all[4]), truth.holders(all[3])), (1, 0));
    }

    #[test]
    fn a_removal_is_a_change_that_is_found_again() {
        let place = Place::only(Kind::Clusters, 1);
        let truth = truth(1, 3);
        truth.note_loaded(place);
        assert!(!truth.is_gone(place));
        assert_eq!(truth.removal_since(place, 1), None);
        assert_eq!(truth.begin_removal(place), Some(2));
        assert!(truth.is_gone(place));
        assert_eq!(truth.begin_change(place), Some(3));
        assert!(!truth.is_gone(place));
        assert_eq!(truth.removal_since(place, 1), Some(2));
        assert_eq!(truth.removal_since(place, 2), None);
    }

    #[test]
    fn a_change_arrives_when_its_holders_saw_it_or_a_newer_one() {
        let place = Place::only(Kind::Clusters, 0);
        let truth = truth(1, 2);
        truth.note_loaded(place);
        assert_eq!(truth.newest(Place::only(Kind::Clusters, 1)), None);
        assert_eq!(truth.newest(Place::only(Kind::Endpoints, 0)), None);
        truth.add_holder(place);
        truth.add_holder(place);
        let first = truth.begin_change(place).unwrap();
        let second = truth.begin_change(place).unwrap();
        assert_eq!((first, second), (2, 3));
        assert_eq!(truth.begin_change(place), None);
        let mut count = 0;
        truth.note_seen(FIRST, first, |_| count += 1);
        assert_eq!(
            (
                count,
                truth.waiting_clients(first),
                truth.waiting_clients(second)
            ),
            (1, 1, 2)
        );
        // The other one skips a revision.
        truth.note_seen(FIRST, second, |_| count += 1);
        assert_eq!(
            (
                count,
                truth.waiting_clients(first),
                truth.waiting_clients(second)
            ),
            (3, 0, 1)
        );
    }
}
