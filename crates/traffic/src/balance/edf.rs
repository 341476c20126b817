//! Earliest deadline first: weighted choice in turn (facts 4.2).
//!
//! An entry is due one part of its weight after it was last chosen; of entries
//! that are due together, the one that was put in first is taken.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A queue of entries by deadline.
#[derive(Debug, Clone, Default)]
pub(super) struct Edf {
    now: f64,
    order: u64,
    queue: BinaryHeap<Reverse<Due>>,
}

#[derive(Debug, Clone, Copy)]
struct Due {
    deadline: f64,
    order: u64,
    entry: usize,
}

impl Edf {
    /// Makes a queue as it is after a number of picks. So that workers do not
    /// all begin with the same entry, each begins at another number.
    #[expect(clippy::cast_precision_loss, reason = "picks and entries are small")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a floor"
    )]
    pub(super) fn new(entries: usize, picks: u32, weight: impl Fn(usize) -> f64) -> Self {
        let total: f64 = (0..entries).map(&weight).sum();
        let mut edf = Self::default();
        let mut round = 0;
        for entry in 0..entries {
            let weight = weight(entry);
            // Whole rounds are skipped; a little more than the weight keeps an
            // exact share from being rounded down.
            let share = f64::from(picks) * (weight + WEIGHT_SLACK) / total;
            let picked = share.floor() as u64;
            round += picked;
            if picked > 0 {
                edf.now = edf.now.max(picked as f64 / weight);
            }
            edf.push(entry, (picked + 1) as f64 / weight);
        }
        for _ in round..u64::from(picks) {
            edf.pick(&weight);
        }
        edf
    }

    /// Takes the entry that is due, and puts it in again by its weight.
    pub(super) fn pick(&mut self, weight: impl Fn(usize) -> f64) -> Option<usize> {
        let mut next_entry = self.queue.peek_mut()?;
        let entry = next_entry.0.entry;
        self.now = next_entry.0.deadline;
        next_entry.0 = Due {
            deadline: self.now + 1.0 / weight(entry),
            order: self.order,
            entry,
        };
        self.order += 1;
        Some(entry)
    }

    /// Takes the entry that is due and still has a weight. Entries that have
    /// none any more leave the queue when they are due.
    pub(super) fn pick_living(&mut self, weight: impl Fn(usize) -> Option<f64>) -> Option<usize> {
        loop {
            let entry = self.queue.peek()?.0.entry;
            if let Some(weight) = weight(entry) {
                return self.pick(|_| weight);
            }
            self.queue.pop();
        }
    }

    /// Adds an entry, which is due one part of its weight from now.
    pub(super) fn add(&mut self, entry: usize, weight: f64) {
        self.push(entry, self.now + 1.0 / weight);
    }

    fn push(&mut self, entry: usize, deadline: f64) {
        let order = self.order;
        self.queue.push(Reverse(Due {
            deadline,
            order,
            entry,
        }));
        self.order += 1;
    }
}

const WEIGHT_SLACK: f64 = 1e-13;

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_deadline = self.deadline.total_cmp(&other.deadline);
        by_deadline.then(self.order.cmp(&other.order))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn d62_the_order_of_weighted_endpoints_is_that_of_envoy() {
        let file = include_str!("../../tests/data/hash.json");
        let file: Value = serde_json::from_str(file).expect("the file is JSON");
        for case in file["edf"].as_array().expect("cases") {
            let weights = case[0].as_array().expect("weights");
            let weight = |index: usize| weights[index].as_f64().expect("a weight");
            let mut edf = Edf::new(weights.len(), 0, weight);
            for expected in case[1].as_array().expect("an order") {
                let entry = edf.pick(weight).map(|entry| entry as u64);
                assert_eq!(entry, expected.as_u64(), "{case}");
            }
        }
    }

    #[test]
    fn picks_that_are_skipped_are_as_if_they_were_made() {
        let weight = |index: usize| [1.0, 2.0, 5.0][index];
        for picks in 0..40 {
            let mut counts = [0_u32; 3];
            let mut edf = Edf::new(3, picks, weight);
            for _ in 0..80 {
                counts[edf.pick(weight).expect("an entry")] += 1;
            }
            // Deadlines that fall together are apart by rounding.
            let exact = counts.iter().zip([10, 20, 50]);
            let is_near = |(count, exact): (&u32, u32)| count.abs_diff(exact) <= 1;
            assert!({ exact }.all(is_near), "{counts:?} after {picks}");
        }
    }
}
