//! The children of a part: a list that never changes, of which another version
//! shares all but what differs.
//!
//! ```text
//!            root             replacing one child copies its leaf and the
//!        ┌────┼────┐          branches above it, 32 entries each; every other
//!      leaf leaf  leaf        leaf is shared with the list before
//! ```

use std::sync::Arc;

use super::key::Key;
use super::part::Part;
use crate::name::Name;

/// The most entries of a leaf or a branch.
const WIDTH: usize = 32;

/// The children of a part, in the order of their keys, each once.
#[derive(Debug)]
pub struct Children<S, V> {
    top: Level<S, V>,
    len: usize,
    /// The number of levels of branches above the leaves.
    height: u32,
}

/// A leaf, or a branch with everything below it.
#[derive(Debug)]
enum Level<S, V> {
    Leaf(Arc<[Arc<Part<S, V>>]>),
    Branch(Arc<[Level<S, V>]>),
}

impl<S, V> Clone for Level<S, V> {
    /// Shares the entries. `S` and `V` need not be `Clone`, which a derived
    /// implementation would ask for.
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(parts) => Self::Leaf(Arc::clone(parts)),
            Self::Branch(levels) => Self::Branch(Arc::clone(levels)),
        }
    }
}

impl<S, V> Clone for Children<S, V> {
    /// Shares the list, whatever its length is.
    fn clone(&self) -> Self {
        Self {
            top: self.top.clone(),
            ..*self
        }
    }
}

impl<S, V> Default for Children<S, V> {
    /// Makes an empty list: a leaf without entries.
    fn default() -> Self {
        Self {
            top: Level::Leaf(Arc::from([])),
            len: 0,
            height: 0,
        }
    }
}

impl<S, V> Children<S, V> {
    /// Returns the number of children.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no children.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the child at an index; `None` beyond the end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<Part<S, V>>> {
        let mut level = &self.top;
        let mut height = self.height;
        loop {
            match level {
                Level::Leaf(parts) => return parts.get(index % WIDTH).filter(|_| index < self.len),
                Level::Branch(levels) => {
                    let entry = index / WIDTH.pow(height) % WIDTH;
                    level = levels.get(entry)?;
                    height -= 1;
                }
            }
        }
    }

    /// Returns the children in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Part<S, V>>> {
        (0..self.len).filter_map(|index| self.get(index))
    }

    /// Returns the children of a type, in the order of their names.
    pub fn of_type(&self, type_url: &str) -> impl Iterator<Item = &Arc<Part<S, V>>> {
        let start = self.partition_point(|key| key.type_url.as_str() < type_url);
        let later_parts = (start..self.len).filter_map(|index| self.get(index));
        later_parts.take_while(move |part| part.key.type_url.as_str() == type_url)
    }

    /// Returns the first child of this type and name.
    #[must_use]
    pub fn find(&self, type_url: &str, name: &Name) -> Option<&Arc<Part<S, V>>> {
        let index =
            self.partition_point(|key| (key.type_url.as_str(), &key.name) < (type_url, name));
        let part = self.get(index)?;
        (part.key.type_url.as_str() == type_url && part.key.name == *name).then_some(part)
    }

    /// Returns the number of children before the first one for which
    /// `is_before` is false.
    fn partition_point(&self, is_before: impl Fn(&Key<S>) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|part| is_before(&part.key)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl<S: Ord, V> Children<S, V> {
    /// Makes a list of parts, which it sorts by their keys.
    pub(super) fn new(mut parts: Vec<Arc<Part<S, V>>>) -> Self {
        parts.sort_by(|left, right| left.key.cmp(&right.key));
        let len = parts.len();
        let mut levels: Vec<_> = parts
            .chunks(WIDTH)
            .map(|parts| Level::Leaf(parts.into()))
            .collect();

        let mut height = 0;
        while levels.len() > 1 {
            levels = levels
                .chunks(WIDTH)
                .map(|levels| Level::Branch(levels.into()))
                .collect();
            height += 1;
        }
        let top = levels.pop();
        top.map_or_else(Self::default, |top| Self { top, len, height })
    }

    /// Returns whether there is a child of this key.
    #[must_use]
    pub fn contains(&self, key: &Key<S>) -> bool {
        let index = self.partition_point(|other_key| other_key < key);
        self.get(index).is_some_and(|part| *part.key == *key)
    }

    /// Returns the list with a part in place of the one with the same key, and
    /// the number of entries that were copied. A key that is not in the list
    /// changes nothing.
    pub(super) fn replace(&self, part: Arc<Part<S, V>>) -> (Self, usize) {
        let index = self.partition_point(|key| *key < *part.key);
        let replaced_part = self.get(index);
        if replaced_part.is_none_or(|replaced| replaced.key != part.key) {
            return (self.clone(), 0);
        }

        let mut copied_count = 0;
        let top = self
            .top
            .replace(index, self.height, part, &mut copied_count);
        (Self { top, ..*self }, copied_count)
    }
}

impl<S, V> Level<S, V> {
    /// Copies the level with a part in place of the one at an index, and adds
    /// the number of copied entries to `copied_count`. Recurses once for each
    /// level.
    fn replace(
        &self,
        index: usize,
        height: u32,
        part: Arc<Part<S, V>>,
        copied_count: &mut usize,
    ) -> Self {
        match self {
            Self::Leaf(parts) => {
                let mut parts: Vec<_> = parts.to_vec();
                *copied_count += parts.len();
                parts[index % WIDTH] = part;
                Self::Leaf(parts.into())
            }
            Self::Branch(levels) => {
                let mut levels: Vec<_> = levels.to_vec();
                *copied_count += levels.len();
                let entry = index / WIDTH.pow(height) % WIDTH;
                levels[entry] = levels[entry].replace(index, height - 1, part, copied_count);
                Self::Branch(levels.into())
            }
        }
    }
}
