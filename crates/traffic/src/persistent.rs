//! A map from texts that is cheap to copy and to change afterwards.
//!
//! It is a hash trie of 32-way branches. A copy shares all branches; a change
//! copies the few on the way to one entry, and none if they are not shared. So
//! one host is added to a table of any size at the cost of one host, while
//! readers keep the table that they have.

use std::sync::Arc;

use twox_hash::XxHash3_64;

/// Bits of the hash that one level of the trie uses.
const BITS: u32 = 5;

/// Levels that one hash of 64 bits serves.
const LEVELS: u32 = 64 / BITS;

/// A persistent map.
#[derive(Debug, Clone)]
pub(crate) struct PersistentMap<V> {
    root: Arc<Branch<V>>,
    length: usize,
}

#[derive(Debug)]
struct Branch<V> {
    /// One bit for each slot that exists.
    bitmap: u32,
    slots: Vec<Slot<V>>,
}

#[derive(Debug)]
enum Slot<V> {
    Entry(Arc<Entry<V>>),
    Branch(Arc<Branch<V>>),
}

#[derive(Debug)]
struct Entry<V> {
    key: Box<str>,
    value: V,
}

impl<V> Clone for Branch<V> {
    /// Copies the slots, and shares all that is below them.
    fn clone(&self) -> Self {
        Self {
            bitmap: self.bitmap,
            slots: self.slots.clone(),
        }
    }
}

impl<V> Clone for Slot<V> {
    /// Shares the entry or the branch: `V` need not be copied.
    fn clone(&self) -> Self {
        match self {
            Self::Entry(entry) => Self::Entry(Arc::clone(entry)),
            Self::Branch(branch) => Self::Branch(Arc::clone(branch)),
        }
    }
}

impl<V> Default for PersistentMap<V> {
    /// Makes an empty map.
    fn default() -> Self {
        Self {
            root: Arc::new(Branch::EMPTY),
            length: 0,
        }
    }
}

impl<V: Clone> PersistentMap<V> {
    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the value of a key, which is compared byte by byte.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&V> {
        if self.length == 0 {
            return None;
        }
        let mut branch = &self.root;
        let mut path = HashPath::new(key);
        loop {
            let bit = path.next(key);
            if branch.bitmap & bit == 0 {
                return None;
            }
            match &branch.slots[branch.index(bit)] {
                Slot::Branch(child) => branch = child,
                Slot::Entry(entry) => {
                    return (entry.key.as_bytes() == key).then_some(&entry.value);
                }
            }
        }
    }

    /// Sets an entry, and returns the value that it replaces. Copies of the map
    /// keep the old value.
    pub(crate) fn insert(&mut self, key: &str, value: V) -> Option<V> {
        let entry = Arc::new(Entry {
            key: key.into(),
            value,
        });
        let root = Arc::make_mut(&mut self.root);
        let old_value = root.insert(entry, HashPath::new(key.as_bytes()));
        self.length += usize::from(old_value.is_none());
        old_value
    }

    /// Removes an entry, and returns its value; `None` if the key is not there.
    /// Copies of the map keep the entry.
    pub(crate) fn remove(&mut self, key: &str) -> Option<V> {
        self.get(key.as_bytes())?;
        self.length -= 1;
        let path = HashPath::new(key.as_bytes());
        Arc::make_mut(&mut self.root).remove(key, path)
    }
}

impl<V: Clone> Branch<V> {
    /// Returns the index of the slot that a bit of the bitmap stands for, or would
    /// have: the number of slots before it.
    fn index(&self, bit: u32) -> usize {
        (self.bitmap & (bit - 1)).count_ones() as usize
    }

    /// Sets an entry at or below this branch, and returns the value that it
    /// replaces. `path` is that of the entry's key from here on. Two keys that share
    /// the slot get a branch of their own.
    fn insert(&mut self, entry: Arc<Entry<V>>, mut path: HashPath) -> Option<V> {
        let bit = path.next(entry.key.as_bytes());
        let index = self.index(bit);
        if self.bitmap & bit == 0 {
            self.bitmap |= bit;
            self.slots.insert(index, Slot::Entry(entry));
            return None;
        }

        match &mut self.slots[index] {
            Slot::Branch(child) => Arc::make_mut(child).insert(entry, path),
            Slot::Entry(old_entry) if old_entry.key == entry.key => {
                Some(std::mem::replace(old_entry, entry).value.clone())
            }
            Slot::Entry(old_entry) => {
                let old_entry = Arc::clone(old_entry);
                let mut child = Self::EMPTY;
                let old_path = HashPath::at_level(old_entry.key.as_bytes(), path.level);
                child.insert(old_entry, old_path);
                child.insert(entry, path);
                self.slots[index] = Slot::Branch(Arc::new(child));
                None
            }
        }
    }

    /// Removes an entry at or below this branch, and returns its value. The caller
    /// has checked that the key is there: an entry in its slot is taken for it.
    fn remove(&mut self, key: &str, mut path: HashPath) -> Option<V> {
        let bit = path.next(key.as_bytes());
        let index = self.index(bit);
        match self.slots.get_mut(index)? {
            Slot::Entry(entry) => {
                let value = entry.value.clone();
                self.slots.remove(index);
                self.bitmap &= !bit;
                Some(value)
            }
            Slot::Branch(child) => {
                let child = Arc::make_mut(child);
                let value = child.remove(key, path);
                // A branch with one entry would only lengthen the way to it.
                if let [Slot::Entry(last)] = child.slots.as_slice() {
                    self.slots[index] = Slot::Entry(Arc::clone(last));
                }
                value
            }
        }
    }
}

impl<V> Branch<V> {
    /// A branch without slots.
    const EMPTY: Self = Self {
        bitmap: 0,
        slots: Vec::new(),
    };
}

/// The way to a key: bits of its hash, and of further hashes where two keys
/// have one in common.
#[derive(Debug, Clone, Copy)]
struct HashPath {
    hash: u64,
    level: u32,
}

impl HashPath {
    /// Makes the path of a key from the root.
    fn new(key: &[u8]) -> Self {
        Self::at_level(key, 0)
    }

    /// Makes the path of a key as it is at `level`, after `level` calls of
    /// [`Self::next`]. Each hash serves [`LEVELS`] levels; the next one has the
    /// next seed.
    fn at_level(key: &[u8], level: u32) -> Self {
        let hash = XxHash3_64::oneshot_with_seed(u64::from(level / LEVELS), key);
        Self {
            hash: hash >> (BITS * (level % LEVELS)),
            level,
        }
    }

    /// Returns the bit of the slot at this level, and goes one level on. `key` is
    /// the key of the path: a further hash of it may be needed.
    fn next(&mut self, key: &[u8]) -> u32 {
        let bit = 1 << (self.hash & ((1 << BITS) - 1));
        self.hash >>= BITS;
        self.level += 1;
        if self.level.is_multiple_of(LEVELS) {
            *self = Self::at_level(key, self.level);
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_map_agrees_with_a_plain_one_and_copies_do_not_change() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut map = PersistentMap::default();
        let mut plain = HashMap::new();
        for step in 0..20_000 {
            let key = format!("host{}.example", random.u32(0..3_000));
            let before = (step % 1_000 == 0).then(|| (map.clone(), plain.clone()));
            match random.bool() {
                true => assert_eq!(map.insert(&key, step), plain.insert(key, step)),
                false => assert_eq!(map.remove(&key), plain.remove(&key)),
            }
            assert_eq!(map.len(), plain.len());
            if let Some((map, plain)) = before {
                assert!(
                    plain
                        .iter()
                        .all(|(key, value)| map.get(key.as_bytes()) == Some(value))
                );
            }
        }
        for number in 0..3_000 {
            let key = format!("host{number}.example");
            assert_eq!(map.get(key.as_bytes()), plain.get(&key));
        }
    }

    /// Another hash is made only when all bits of one are used.
    #[test]
    fn a_way_uses_twelve_groups_of_bits_of_each_hash() {
        let key = b"host.example";
        let mut path = HashPath::new(key);
        for level in 0..30 {
            let hash = XxHash3_64::oneshot_with_seed(level / 12, key);
            let expected = 1 << (hash >> (5 * (level % 12)) & 31);
            assert_eq!(
                HashPath::at_level(key, path.level).next(key),
                expected,
                "{level}"
            );
            assert_eq!(path.next(key), expected, "{level}");
        }
    }
}
