//! A hash table that grows a little with each insertion, and never as a whole.
//!
//! An ordinary table of a million names that grows hashes all of them again
//! while everybody waits (S85). This one consists of many small tables, and
//! gets one more whenever they are full on average: half of one table moves to
//! the new one, each table in its turn ("linear hashing").

use hashbrown::HashTable;
use hashbrown::hash_table::OccupiedEntry;

/// Values in each table on average. A table that waits for its turn has twice
/// as many, which just fits into the size that the allocator of tables chooses.
const FILL: usize = 440;

/// A hash table of many small tables.
#[derive(Debug)]
pub(super) struct Shards<T> {
    tables: Vec<HashTable<T>>,
    len: usize,
}

impl<T> Default for Shards<T> {
    /// Makes one empty table; there is always one to split.
    fn default() -> Self {
        Self {
            tables: vec![HashTable::new()],
            len: 0,
        }
    }
}

impl<T> Shards<T> {
    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the first value with this hash for which `is_match` holds.
    pub(super) fn find(&self, hash: u64, is_match: impl FnMut(&T) -> bool) -> Option<&T> {
        self.tables[self.shard(hash)].find(hash, is_match)
    }

    /// Returns the first value with this hash for which `is_match` holds, to be
    /// changed.
    pub(super) fn find_mut(
        &mut self,
        hash: u64,
        is_match: impl FnMut(&T) -> bool,
    ) -> Option<&mut T> {
        let shard = self.shard(hash);
        self.tables[shard].find_mut(hash, is_match)
    }

    /// Returns all values with this hash, and maybe others.
    pub(super) fn iter_hash(&self, hash: u64) -> impl Iterator<Item = &T> {
        self.tables[self.shard(hash)].iter_hash(hash)
    }

    /// Adds a value, beside others that have its hash. `rehash` returns the
    /// hash of a value that has to move.
    pub(super) fn insert(&mut self, hash: u64, value: T, rehash: impl Fn(&T) -> u64) {
        if self.len >= FILL * self.tables.len() {
            self.split(&rehash);
        }

        self.len += 1;
        let shard = self.shard(hash);
        self.tables[shard].insert_unique(hash, value, rehash);
    }

    /// Removes the first value with this hash for which `is_match` holds;
    /// `None` if there is none.
    pub(super) fn remove(&mut self, hash: u64, is_match: impl FnMut(&T) -> bool) -> Option<T> {
        let shard = self.shard(hash);
        let entry = self.tables[shard].find_entry(hash, is_match).ok();
        let (value, _) = entry.map(OccupiedEntry::remove)?;
        self.len -= 1;
        Some(value)
    }

    /// Merges the last table with the one that it was split from, if few values
    /// are left on average. The caller does this after each removal, so that a
    /// client that leaves with a million names gives their memory back bit by
    /// bit.
    pub(super) fn shrink(&mut self, rehash: impl Fn(&T) -> u64) {
        if self.tables.len() == 1 || self.len >= FILL / 4 * self.tables.len() {
            return;
        }
        let Some(last_table) = self.tables.pop() else {
            return;
        };

        let target = source_table(self.tables.len());
        for value in last_table {
            self.tables[target].insert_unique(rehash(&value), value, &rehash);
        }
        if self.tables.len() < self.tables.capacity() / 4 {
            self.tables.shrink_to_fit();
        }
    }

    /// Adds a table, and moves half of the table whose turn it is to it: the
    /// values whose hash has the next bit set.
    fn split(&mut self, rehash: &impl Fn(&T) -> u64) {
        let new_table = self.tables.len();
        self.tables.push(HashTable::new());
        let old_table = source_table(new_table);
        let has_next_bit = |value: &mut T| shard_of(rehash(value), new_table + 1) == new_table;
        let moved_values: Vec<T> = self.tables[old_table].extract_if(has_next_bit).collect();

        self.tables[old_table].shrink_to_fit(rehash);
        self.tables[new_table].reserve(moved_values.len(), rehash);
        for value in moved_values {
            self.tables[new_table].insert_unique(rehash(&value), value, rehash);
        }
    }

    /// Returns the index of the table in which values with this hash are.
    fn shard(&self, hash: u64) -> usize {
        shard_of(hash, self.tables.len())
    }
}

/// Returns the index of the table from which a table is split off: the index of
/// the new table without its highest bit.
fn source_table(table: usize) -> usize {
    table - (table + 1).next_power_of_two() / 2
}

/// Returns the index of the table of a hash among this number of tables. The
/// lowest and the highest bits of the hash are not used: the tables themselves
/// use them.
fn shard_of(hash: u64, tables: usize) -> usize {
    let mask = tables.next_power_of_two() - 1;
    let shard = (hash >> 20) as usize & mask;
    match shard < tables {
        true => shard,
        // The table that is split when the table of this hash is added.
        false => shard & (mask >> 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: &u32) -> u64 {
        u64::from(*number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn everything_is_found_however_many_there_are() {
        let mut shards = Shards::default();
        const COUNT: u32 = 20_000;
        for number in 0..COUNT {
            shards.insert(hash(&number), number, hash);
            let earlier = number / 2;
            assert_eq!(
                shards.find(hash(&earlier), |n| *n == earlier),
                Some(&earlier)
            );
        }
        assert_eq!(shards.len(), COUNT as usize);
        for number in 0..COUNT {
            let found = shards.iter_hash(hash(&number));
            assert_eq!(found.filter(|n| **n == number).count(), 1);
        }
        for number in (0..COUNT).step_by(2) {
            assert_eq!(shards.remove(hash(&number), |n| *n == number), Some(number));
            assert_eq!(shards.remove(hash(&number), |n| *n == number), None);
        }
        assert_eq!(shards.len(), COUNT as usize / 2);
        let left = (0..COUNT).filter(|n| shards.find(hash(n), |o| o == n).is_some());
        assert!(left.eq((1..COUNT).step_by(2)));
    }

    #[test]
    fn tables_go_with_the_values_and_the_others_are_found() {
        let mut shards = Shards::default();
        const COUNT: u32 = 20_000;
        for number in 0..COUNT {
            shards.insert(hash(&number), number, hash);
        }
        let most = shards.tables.len();
        for number in 0..COUNT - 100 {
            shards.remove(hash(&number), |n| *n == number);
            shards.shrink(hash);
            if number % 1000 == 0 {
                let last = COUNT - 1;
                assert_eq!(shards.find(hash(&last), |n| *n == last), Some(&last));
            }
        }
        let left = (0..COUNT).filter(|n| shards.find(hash(n), |o| o == n).is_some());
        assert!(left.eq(COUNT - 100..COUNT));
        assert_eq!((shards.len(), shards.tables.len()), (100, 1), "{most}");
    }

    #[test]
    fn s85_no_table_is_large() {
        let mut shards = Shards::default();
        for number in 0..300_000 {
            shards.insert(hash(&number), number, hash);
        }
        let largest = shards.tables.iter().map(HashTable::len).max();
        assert!(
            largest.is_some_and(|largest| largest < 3 * FILL),
            "{largest:?}"
        );
        // There are no more tables than needed.
        assert_eq!(shards.tables.len(), 300_000_usize.div_ceil(FILL));
    }
}
