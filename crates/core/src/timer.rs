//! Deadlines by key.
//!
//! There is no clock here: the owner reads [`Timers::next`], waits by its own
//! means, and calls [`Timers::expire`].

use std::collections::{BTreeMap, BTreeSet};

use crate::Moment;

/// The earliest of the deadlines that are added and are after a moment. It is
/// computed with every message of a stream, so it keeps no list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarliestDeadline {
    start: Moment,
    earliest: Option<Moment>,
}

impl EarliestDeadline {
    /// Makes an earliest deadline without deadlines. Only deadlines that are
    /// later than this moment count.
    pub(crate) fn later_than(start: Moment) -> Self {
        Self {
            start,
            earliest: None,
        }
    }

    /// Adds a deadline, if there is one.
    pub(crate) fn add(&mut self, deadline: impl Into<Option<Moment>>) {
        let deadline = deadline.into().filter(|deadline| *deadline > self.start);
        if let Some(deadline) = deadline
            && self.earliest.is_none_or(|earliest| deadline < earliest)
        {
            self.earliest = Some(deadline);
        }
    }

    /// Returns the earliest deadline; `None` if none counts.
    pub(crate) fn get(self) -> Option<Moment> {
        self.earliest
    }
}

/// Deadlines by key, at most one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timers<K> {
    deadlines: BTreeMap<K, Moment>,
    /// The same pairs, sorted by deadline.
    order: BTreeSet<(Moment, K)>,
}

impl<K> Default for Timers<K> {
    /// Makes timers without deadlines.
    fn default() -> Self {
        Self {
            deadlines: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone> Timers<K> {
    /// Sets the deadline of a key, replacing an earlier one.
    pub(crate) fn set(&mut self, key: K, deadline: Moment) {
        self.cancel(&key);
        self.order.insert((deadline, key.clone()));
        self.deadlines.insert(key, deadline);
    }

    /// Returns the deadline of a key; `None` if it has none.
    #[must_use]
    pub(crate) fn get(&self, key: &K) -> Option<Moment> {
        self.deadlines.get(key).copied()
    }

    /// Removes a deadline. Returns whether there was one.
    pub(crate) fn cancel(&mut self, key: &K) -> bool {
        let Some(deadline) = self.deadlines.remove(key) else {
            return false;
        };
        self.order.remove(&(deadline, key.clone()))
    }

    /// Removes all deadlines but those whose key `keep` returns true for.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.deadlines.retain(|key, _| keep(key));
        let deadlines = &self.deadlines;
        self.order.retain(|(_, key)| deadlines.contains_key(key));
    }

    /// Returns the earliest deadline; `None` if there is none.
    #[must_use]
    pub(crate) fn next(&self) -> Option<Moment> {
        self.order.first().map(|(deadline, _)| *deadline)
    }

    /// Removes the deadlines that have passed, one that is `now` included.
    /// Returns their keys by deadline, then by key.
    pub(crate) fn expire(&mut self, now: Moment) -> Vec<K> {
        let mut expired_keys = Vec::new();
        while let Some((deadline, key)) = self.order.pop_first() {
            if deadline > now {
                // It was the first that is not due, and stays.
                self.order.insert((deadline, key));
                break;
            }
            self.deadlines.remove(&key);
            expired_keys.push(key);
        }
        expired_keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    fn timers(all: &[(&'static str, u64)]) -> Timers<&'static str> {
        let mut timers = Timers::default();
        for (key, millis) in all {
            timers.set(*key, at(*millis));
        }
        timers
    }

    #[test]
    fn what_is_due_comes_by_deadline_then_by_key() {
        let mut timers = timers(&[("c", 5), ("b", 7), ("a", 7), ("d", 8)]);
        assert_eq!(timers.next(), Some(at(5)));
        assert_eq!(timers.expire(at(4)), [""; 0]);
        assert_eq!(timers.expire(at(7)), ["c", "a", "b"]);
        assert_eq!(timers.next(), Some(at(8)));
        assert_eq!(timers.expire(at(100)), ["d"]);
        assert_eq!(timers, Timers::default());
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_key_has_its_last_deadline_only() {
        let mut timers = timers(&[("a", 5), ("a", 9)]);
        assert_eq!(timers.next(), Some(at(9)));
        assert_eq!(timers.expire(at(6)), [""; 0]);
        assert_eq!(timers.expire(at(9)), ["a"]);
    }

    #[test]
    fn a_deadline_can_be_taken_away() {
        let mut timers = timers(&[("a", 5), ("b", 6)]);
        assert!(timers.cancel(&"a"));
        assert!(!timers.cancel(&"a"));
        assert_eq!(timers.expire(at(9)), ["b"]);
    }

    #[test]
    fn deadlines_can_be_kept_by_key() {
        let mut left = timers(&[("a", 5), ("b", 6), ("c", 7)]);
        left.retain(|key| *key == "b");
        assert_eq!(left, timers(&[("b", 6)]));
    }
}
