//! Sets of parameter keys: the keys that decide which variant a client gets.

use std::sync::Arc;

/// A sorted set of keys; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keys(Arc<[Box<str>]>);

impl Keys {
    /// Makes a set of these keys.
    pub fn new<K: Into<Box<str>>>(keys: impl IntoIterator<Item = K>) -> Self {
        let mut keys: Vec<Box<str>> = keys.into_iter().map(Into::into).collect();
        keys.sort_unstable();
        keys.dedup();
        Self(keys.into())
    }

    /// Returns the keys of both sets.
    #[must_use]
    pub(crate) fn union(&self, other: &Self) -> Self {
        // Variants of one resource mostly have the same keys.
        if self == other || other.is_empty() {
            return self.clone();
        }
        Self::new(self.0.iter().chain(other.0.iter()).cloned())
    }

    /// Returns whether `key` is in the set.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.0
            .binary_search_by(|member| (**member).cmp(key))
            .is_ok()
    }

    /// Returns the keys in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        self.0.iter().map(|key| &**key)
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key at an index in the order, which the set has.
    pub(super) fn get(&self, index: u32) -> &str {
        &self.0[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_sorted_and_unique() {
        let keys = Keys::new(["b", "a", "b"]);
        assert_eq!(keys.iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((keys.len(), keys.is_empty()), (2, false));
        assert!(keys.contains("a") && !keys.contains("c"));
        assert_eq!(keys.get(1), "b");
        assert_eq!(
            (Keys::default().len(), Keys::default().is_empty()),
            (0, true)
        );
    }

    #[test]
    fn union_has_the_keys_of_both() {
        let (ab, bc) = (Keys::new(["a", "b"]), Keys::new(["b", "c"]));
        assert_eq!(ab.union(&bc), Keys::new(["a", "b", "c"]));
        assert_eq!(ab.union(&ab), ab);
        assert_eq!(ab.union(&Keys::default()), ab);
        assert_eq!(Keys::default().union(&ab), ab);
    }

    #[test]
    fn nothing_is_copied_where_nothing_is_added() {
        let keys = Keys::new(["a"]);
        assert!(Arc::ptr_eq(&keys.union(&Keys::default()).0, &keys.0));
        assert!(Arc::ptr_eq(&keys.union(&Keys::new(["a"])).0, &keys.0));
    }
}
