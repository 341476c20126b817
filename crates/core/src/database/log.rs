//! The newest item of each name, in the order in which they changed.

use std::ops::Range;

use hashbrown::HashMap;

use super::EntryId;
use super::view::Position;

/// The log of a view. An item stays in place when a newer one of the same name
/// is added; stale items are swept out a few with each push, so that nobody
/// waits for all of them (S85).
///
/// ```text
///   kept, in order │ swept out │ not visited yet, in order
///                  └──── gap ──┘
/// ```
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// Ascending.
    positions: Vec<Position>,
    /// The names that changed, at the same indexes.
    entries: Vec<EntryId>,
    /// The index of each name's newest item; all other items are stale.
    newest: HashMap<EntryId, u32>,
    /// The swept range, during a sweep; empty otherwise.
    gap: Range<usize>,
    /// Whether a sweep has begun and not visited all items.
    is_sweeping: bool,
}

/// Items that a sweep visits with each push: enough to end before many more
/// items become stale.
const SWEEP_STEP: usize = 8;

/// Stale items that a small log may have.
const STALE_ALLOWED: usize = 64;

/// Up to this size, a sweep is done at once.
const SWEEP_AT_ONCE: usize = 1024;

impl Log {
    /// Returns the number of items, stale ones included.
    pub(super) fn items(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the log lists this name.
    pub(super) fn contains(&self, entry: EntryId) -> bool {
        self.newest.contains_key(&entry)
    }

    /// Returns the position of a name's newest item.
    pub(super) fn position(&self, entry: EntryId) -> Option<Position> {
        let index = *self.newest.get(&entry)?;
        Some(self.positions[index as usize])
    }

    /// Adds a change of a name, at a position after all others.
    pub(super) fn push(&mut self, position: Position, entry: EntryId) {
        // Memory runs out long before the numbers do.
        self.newest.insert(entry, self.entries.len() as u32);
        self.positions.push(position);
        self.entries.push(entry);
        self.sweep();
    }

    /// Removes a name from the log. Its item is stale from now on, and stays
    /// until it is swept out.
    pub(super) fn forget(&mut self, entry: EntryId) {
        self.newest.remove(&entry);
    }

    /// Drops stale items: begins when they are a third of all items, and goes
    /// on a few items at each call until all were visited. A short log is swept
    /// in one call.
    fn sweep(&mut self) {
        let max_items = self.newest.len() * 3 / 2 + STALE_ALLOWED;
        if !self.is_sweeping && self.entries.len() <= max_items {
            return;
        }
        self.is_sweeping = true;

        let is_short = self.entries.len() <= SWEEP_AT_ONCE;
        let visit_count = if is_short { SWEEP_AT_ONCE } else { SWEEP_STEP };
        let unvisited_count = self.entries.len() - self.gap.end;
        for _ in 0..visit_count.min(unvisited_count) {
            self.sweep_item();
        }

        if self.gap.end == self.entries.len() {
            self.entries.truncate(self.gap.start);
            self.positions.truncate(self.gap.start);
            self.gap = 0..0;
            self.is_sweeping = false;
        }
    }

    /// Visits the item at the end of the gap, which becomes a part of it. An
    /// item that is not stale is moved to the start of the gap.
    fn sweep_item(&mut self) {
        let index = self.gap.end;
        let entry = self.entries[index];
        if let Some(newest) = self.newest.get_mut(&entry)
            && *newest as usize == index
        {
            let target = self.gap.start;
            *newest = target as u32;
            self.entries[target] = entry;
            self.positions[target] = self.positions[index];
            self.gap.start += 1;
        }
        self.gap.end += 1;
    }

    /// Returns the names whose newest item is after `position`, with its
    /// position, in order.
    pub(super) fn entries_since(
        &self,
        position: Position,
    ) -> impl Iterator<Item = (Position, EntryId)> + '_ {
        let visited_range = 0..self.gap.start;
        let unvisited_range = self.gap.end..self.entries.len();
        let ranges = [visited_range, unvisited_range].map(|part| self.items_after(position, part));
        let indexes = ranges.into_iter().flatten();
        let newest_indexes = indexes.filter(|index| self.is_newest(*index));
        newest_indexes.map(|index| (self.positions[index], self.entries[index]))
    }

    /// Returns the end of a part of the log, which is in order: the indexes of
    /// items after `position`.
    fn items_after(&self, position: Position, part: Range<usize>) -> Range<usize> {
        let positions = &self.positions[part.clone()];
        let offset = positions.partition_point(|item| *item <= position);
        part.start + offset..part.end
    }

    /// Returns whether the item at an index is the newest of its name.
    fn is_newest(&self, index: usize) -> bool {
        self.newest.get(&self.entries[index]) == Some(&(index as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_of_a_name_counts_and_the_rest_goes() {
        let mut log = Log::default();
        for position in 1..=10_000 {
            log.push(position, EntryId(position as u32 % 7));
        }
        assert!((7..=75).contains(&log.items()));
        let all: Vec<_> = log.entries_since(0).map(|(position, _)| position).collect();
        assert_eq!(all, (9_994..=10_000).collect::<Vec<_>>());
        let newest = EntryId(10_000 % 7);
        assert_eq!(
            log.entries_since(9_999).collect::<Vec<_>>(),
            [(10_000, newest)]
        );
        assert_eq!(log.position(newest), Some(10_000));
        assert_eq!(log.entries_since(10_000).count(), 0);
    }

    #[test]
    fn s85_a_long_log_is_swept_a_little_at_a_time() {
        const NAMES: u32 = 10_000;
        let mut log = Log::default();
        let mut position = 0;
        for round in 0..6 {
            for nth in 0..NAMES {
                position += 1;
                // Each round in another order.
                let entry = EntryId((nth * (2 * round + 1) * 7) % NAMES);
                log.push(position, entry);
                assert_eq!(log.position(entry), Some(position));
                if nth % 1000 == 0 && round > 0 {
                    let all: Vec<_> = log.entries_since(0).collect();
                    assert_eq!(all.len(), log.newest.len());
                    assert!(all.is_sorted_by_key(|(position, _)| *position));
                    let half = position - u64::from(NAMES / 2);
                    let later = all.iter().filter(|(position, _)| *position > half);
                    assert!(log.entries_since(half).eq(later.copied()));
                }
            }
            assert!(log.items() <= 2 * NAMES as usize);
        }
    }

    #[test]
    fn what_is_forgotten_is_not_spoken_of() {
        let mut log = Log::default();
        log.push(3, EntryId(1));
        log.push(5, EntryId(2));
        log.forget(EntryId(1));
        assert!(!log.contains(EntryId(1)) && log.contains(EntryId(2)));
        assert_eq!(log.position(EntryId(1)), None);
        assert_eq!(log.entries_since(0).collect::<Vec<_>>(), [(5, EntryId(2))]);
        for position in 6..200 {
            log.push(position, EntryId(3));
            log.forget(EntryId(3));
        }
        assert_eq!(log.entries_since(0).collect::<Vec<_>>(), [(5, EntryId(2))]);
        assert!(log.items() <= 70);
    }

    /// Pushes each name once, and then the first names again until the log is
    /// swept. Returns how many items the log had at most, and how many pushes
    /// later it was swept.
    fn swept_after(names: u32) -> (usize, usize) {
        let mut log = Log::default();
        let again = (0..names).chain(0..names);
        let (mut most, mut since_most) = (0, 0);
        for (entry, position) in (0..names).chain(again).zip(1..) {
            log.push(position, EntryId(entry));
            if log.items() < most {
                break;
            }
            let may_be_stale = log.newest.len() / 2 + STALE_ALLOWED;
            match log.items() - log.newest.len() <= may_be_stale {
                true => since_most = 0,
                false => since_most += 1,
            }
            most = log.items();
        }
        (most, since_most)
    }

    #[test]
    fn a_log_is_swept_when_a_third_of_it_is_stale() {
        // A short log at once, and a long one a few items at a time.
        assert_eq!(swept_after(600), (964, 0));
        let (most, steps) = swept_after(10_000);
        assert!(steps >= 15_000 / SWEEP_STEP, "{steps}");
        assert!((15_064..18_000).contains(&most), "{most}");
    }
}
