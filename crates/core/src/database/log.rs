//! The newest item of each name, in the order in which they changed.

use hashbrown::HashMap;

use super::EntryId;
use super::view::Seq;

/// Items stay where they are when a newer one of the same name comes, and are
/// swept out together.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// Ascending.
    positions: Vec<Seq>,
    /// At the same index, which name changed there.
    entries: Vec<EntryId>,
    /// The index of each name's newest item; all other items are stale.
    newest: HashMap<EntryId, u32>,
}

impl Log {
    /// How many items are kept, stale ones included.
    pub(super) fn items(&self) -> usize {
        self.entries.len()
    }

    /// Whether it speaks of this name.
    pub(super) fn knows(&self, entry: EntryId) -> bool {
        self.newest.contains_key(&entry)
    }

    /// Where a name changed last.
    pub(super) fn position(&self, entry: EntryId) -> Option<Seq> {
        let index = *self.newest.get(&entry)?;
        Some(self.positions[index as usize])
    }

    /// A name changed, later than all before.
    pub(super) fn push(&mut self, position: Seq, entry: EntryId) {
        // Memory ends long before the numbers do.
        self.newest.insert(entry, self.entries.len() as u32);
        self.positions.push(position);
        self.entries.push(entry);
        self.sweep();
    }

    /// Drops the last word on a name.
    pub(super) fn forget(&mut self, entry: EntryId) {
        self.newest.remove(&entry);
    }

    /// Drops stale items once they are a third: amortised O(1) for each push.
    fn sweep(&mut self) {
        if self.entries.len() <= self.newest.len() * 3 / 2 + 64 {
            return;
        }
        let mut kept = 0;
        for index in 0..self.entries.len() {
            let entry = self.entries[index];
            if let Some(newest) = self.newest.get_mut(&entry)
                && *newest as usize == index
            {
                *newest = kept as u32;
                self.entries[kept] = entry;
                self.positions[kept] = self.positions[index];
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.positions.truncate(kept);
    }

    /// The names that changed last behind `position`, in order.
    pub(super) fn since(&self, position: Seq) -> impl Iterator<Item = (Seq, EntryId)> + '_ {
        let start = self.positions.partition_point(|seq| *seq <= position);
        (start..self.entries.len())
            .map(|index| (index, self.entries[index]))
            .filter(|(index, entry)| self.newest.get(entry) == Some(&(*index as u32)))
            .map(|(index, entry)| (self.positions[index], entry))
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
        assert!(log.items() <= 75);
        let all: Vec<_> = log.since(0).map(|(position, _)| position).collect();
        assert_eq!(all, (9_994..=10_000).collect::<Vec<_>>());
        let newest = EntryId(10_000 % 7);
        assert_eq!(log.since(9_999).collect::<Vec<_>>(), [(10_000, newest)]);
        assert_eq!(log.position(newest), Some(10_000));
        assert_eq!(log.since(10_000).count(), 0);
    }

    #[test]
    fn what_is_forgotten_is_not_spoken_of() {
        let mut log = Log::default();
        log.push(3, EntryId(1));
        log.push(5, EntryId(2));
        log.forget(EntryId(1));
        assert!(!log.knows(EntryId(1)) && log.knows(EntryId(2)));
        assert_eq!(log.position(EntryId(1)), None);
        assert_eq!(log.since(0).collect::<Vec<_>>(), [(5, EntryId(2))]);
        for position in 6..200 {
            log.push(position, EntryId(3));
            log.forget(EntryId(3));
        }
        assert_eq!(log.since(0).collect::<Vec<_>>(), [(5, EntryId(2))]);
        assert!(log.items() <= 70);
    }
}
