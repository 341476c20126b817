//! Earliest deadline first: weighted choice in turn (facts 4.2).
//!
//! An entry is due one part of its weight after it was last chosen; of entries
//! that are due together, the one that was put in first is taken.
//!
//! Deadlines stand in a tournament: the leaves are the entries, and each node
//! above has the earlier one of the two below it. A pick changes one leaf, so it
//! plays one match on each level, without a branch that depends on the outcome.

/// A queue of entries by deadline.
#[derive(Debug, Clone, Default)]
pub(super) struct Edf {
    now: f64,
    order: u64,
    /// By entry, up to a power of two.
    dues: Vec<Due>,
    /// Winners: that of all at 1, below a node `n` are `2n` and `2n + 1`, and the
    /// second half are the entries themselves.
    winners: Vec<u32>,
}

/// When an entry is due. Deadlines are positive, so that their bits have the
/// order of their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    deadline: u64,
    order: u64,
}

/// An entry that is not in the queue, which loses against any: its deadline is
/// behind that of a weight of zero, which is infinite.
const ABSENT: Due = Due {
    deadline: i64::MAX.cast_unsigned(),
    order: u64::MAX,
};

const WEIGHT_SLACK: f64 = 1e-13;

impl Edf {
    /// Makes a queue of entries with these weights, as it is after `picks`
    /// picks. So that workers do not all begin with the same entry, each begins
    /// at another number.
    #[expect(clippy::cast_precision_loss, reason = "picks and entries are small")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a floor"
    )]
    pub(super) fn new(entries: usize, picks: u32, weight: impl Fn(usize) -> f64) -> Self {
        let total: f64 = (0..entries).map(&weight).sum();
        let mut edf = Self::default();
        edf.grow(entries);
        let mut round = 0;
        for entry in 0..entries {
            let weight = weight(entry);
            // Whole rounds are skipped; a little more than the weight keeps an
            // exact share from being rounded down.
            let share = f64::from(picks) * (weight + WEIGHT_SLACK) / total;
            let picked_count = share.floor() as u64;
            round += picked_count;
            if picked_count > 0 {
                edf.now = edf.now.max(picked_count as f64 / weight);
            }
            edf.push(entry, (picked_count + 1) as f64 / weight);
        }

        for _ in round..u64::from(picks) {
            edf.pick(&weight);
        }
        edf
    }

    /// Takes the entry that is due, and puts it in again by its weight. Returns
    /// `None` if the queue is empty.
    pub(super) fn pick(&mut self, weight: impl Fn(usize) -> f64) -> Option<usize> {
        self.pick_living(|entry| Some(weight(entry)))
    }

    /// Takes the entry that is due and still has a weight. Entries that have
    /// none any more leave the queue when they are due.
    pub(super) fn pick_living(&mut self, weight: impl Fn(usize) -> Option<f64>) -> Option<usize> {
        loop {
            let entry = *self.winners.get(1)? as usize;
            let due = self.dues[entry];
            if due == ABSENT {
                return None;
            }
            let Some(weight) = weight(entry) else {
                self.play(entry, ABSENT);
                continue;
            };
            self.now = f64::from_bits(due.deadline);
            self.push(entry, self.now + 1.0 / weight);
            return Some(entry);
        }
    }

    /// Adds an entry, which is due one part of its weight from now.
    pub(super) fn add(&mut self, entry: usize, weight: f64) {
        self.grow(entry + 1);
        self.push(entry, self.now + 1.0 / weight);
    }

    /// Puts an entry in, to be due at `deadline`.
    fn push(&mut self, entry: usize, deadline: f64) {
        let due = Due {
            deadline: deadline.to_bits(),
            order: self.order,
        };
        self.order += 1;
        self.play(entry, due);
    }

    /// Makes room for `entries` entries in all. Those that are in the queue stay.
    #[expect(clippy::cast_possible_truncation, reason = "entries are endpoints")]
    fn grow(&mut self, entries: usize) {
        if entries <= self.dues.len() {
            return;
        }
        let leaves = entries.next_power_of_two();
        let old_dues = std::mem::replace(&mut self.dues, vec![ABSENT; leaves]);
        let own_nodes = 0..leaves as u32;
        self.winners = own_nodes.clone().chain(own_nodes).collect();
        for node in (1..leaves).rev() {
            self.winners[node] = self.winners[2 * node];
        }
        for (entry, due) in old_dues.into_iter().enumerate() {
            self.play(entry, due);
        }
    }

    /// Puts an entry in its place, and plays its matches.
    #[expect(clippy::cast_possible_truncation, reason = "entries are endpoints")]
    fn play(&mut self, entry: usize, due: Due) {
        self.dues[entry] = due;
        let (mut winner, mut due) = (entry as u32, due);
        let mut node = self.dues.len() + entry;
        while node > 1 {
            let other = self.winners[node ^ 1];
            let other_due = self.dues[other as usize];
            // All bits are set if the other one is earlier.
            let mask = other_due.mask_if_earlier(due);
            #[expect(clippy::cast_possible_truncation, reason = "half of the bits")]
            let entry_mask = mask as u32;
            winner ^= (winner ^ other) & entry_mask;
            due.deadline ^= (due.deadline ^ other_due.deadline) & mask;
            due.order ^= (due.order ^ other_due.order) & mask;
            node /= 2;
            self.winners[node] = winner;
        }
    }
}

impl Due {
    /// Returns a number that orders by the deadline, and then by the order.
    /// Deadlines have no sign.
    fn key(self) -> i128 {
        (i128::from(self.deadline) << 64) + i128::from(self.order)
    }

    /// Returns a number with all bits set if this one comes before the other, and
    /// else zero. A comparison would become a branch, which is missed every
    /// second time.
    #[expect(clippy::cast_sign_loss, reason = "all bits are the sign")]
    fn mask_if_earlier(self, other: Self) -> u64 {
        ((self.key() - other.key()) >> 127) as u64
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

    /// The rule in its plainest form: all deadlines are looked at.
    #[derive(Default)]
    struct Plain {
        now: f64,
        order: u64,
        dues: Vec<(f64, u64, usize)>,
    }

    impl Plain {
        fn put(&mut self, entry: usize, weight: f64) {
            self.dues.push((self.now + 1.0 / weight, self.order, entry));
            self.order += 1;
        }

        fn pick(&mut self, weight: impl Fn(usize) -> Option<f64>) -> Option<usize> {
            loop {
                let dues = self.dues.iter().enumerate();
                let (place, _) =
                    dues.min_by(|(_, left), (_, right)| left.partial_cmp(right).expect("numbers"))?;
                let (deadline, _, entry) = self.dues.swap_remove(place);
                if let Some(weight) = weight(entry) {
                    self.now = deadline;
                    self.put(entry, weight);
                    return Some(entry);
                }
            }
        }
    }

    #[test]
    fn a_tournament_picks_what_a_look_at_all_deadlines_picks() {
        let weight = |entry: usize| 1.0 + (entry * 7 % 5) as f64;
        let (mut edf, mut plain) = (Edf::default(), Plain::default());
        assert_eq!(edf.pick(weight), None);
        for round in 0..70 {
            edf.add(round, weight(round));
            plain.put(round, weight(round));
            // Every third entry has no weight from the round after the next on.
            let living = |entry: usize| {
                let is_gone = entry.is_multiple_of(3) && entry + 1 < round;
                (!is_gone).then(|| weight(entry))
            };
            for _ in 0..9 {
                assert_eq!(edf.pick_living(living), plain.pick(living), "round {round}");
            }
        }
        // Nobody is left, and one comes again.
        assert_eq!(edf.pick_living(|_| None), None);
        edf.add(3, 1.0);
        assert_eq!(edf.pick(weight), Some(3));
    }
}
