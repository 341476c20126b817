//! Dynamic parameters: what a client says about itself when it subscribes.

use std::fmt;
use std::sync::{Arc, LazyLock};

use super::text::word;
use super::{Keys, ParamsError};

/// The bytes that a pair takes in addition to its texts: the places of these,
/// and the rounding of an allocation.
const PAIR_BYTES: usize = 64;

/// Keys with values, sorted by key; cheap to clone.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Params(Arc<[(Box<str>, Box<str>)]>);

impl Params {
    /// Pairs in one set.
    pub const MAX_KEYS: usize = 64;
    /// Bytes of all keys and values in one set.
    pub const MAX_BYTES: usize = 8192;

    /// Makes a set of these pairs. The last of two pairs with one key counts,
    /// as in a protobuf map. No more pairs are read than the limits allow.
    ///
    /// # Errors
    ///
    /// When there are more than [`Self::MAX_KEYS`] pairs or
    /// [`Self::MAX_BYTES`].
    pub fn new<K, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Result<Self, ParamsError>
    where
        K: Into<Box<str>>,
        V: Into<Box<str>>,
    {
        let mut set: Vec<(Box<str>, Box<str>)> = Vec::new();
        let mut bytes = 0;
        for (key, value) in pairs {
            if set.len() == Self::MAX_KEYS {
                let limit = Self::MAX_KEYS;
                return Err(ParamsError::TooManyKeys { limit });
            }
            let (key, value) = (key.into(), value.into());
            bytes += key.len() + value.len();
            if bytes > Self::MAX_BYTES {
                let limit = Self::MAX_BYTES;
                return Err(ParamsError::TooManyBytes { limit });
            }
            set.push((key, value));
        }

        // The sort keeps the order of equal keys; the last of them is swapped
        // into the place of the first.
        set.sort_by(|(left_key, _), (right_key, _)| left_key.cmp(right_key));
        set.dedup_by(|later, earlier| {
            let is_same_key = later.0 == earlier.0;
            if is_same_key {
                std::mem::swap(later, earlier);
            }
            is_same_key
        });
        Ok(Self(set.into()))
    }

    /// Returns the empty set, as a reference that lives for ever.
    pub(crate) fn none() -> &'static Self {
        static NONE: LazyLock<Params> = LazyLock::new(Params::default);
        &NONE
    }

    /// Takes pairs that are known to be sorted, unique and within the limits.
    pub(super) fn from_sorted(pairs: Vec<(Box<str>, Box<str>)>) -> Self {
        Self(pairs.into())
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let index = self
            .0
            .binary_search_by(|(pair_key, _)| (**pair_key).cmp(key))
            .ok()?;
        Some(&self.0[index].1)
    }

    /// Returns the pairs in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + '_ {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns whether there are no parameters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns roughly the bytes of memory that the set takes.
    pub(super) fn bytes(&self) -> usize {
        let pair_bytes = |(key, value): (&str, &str)| PAIR_BYTES + key.len() + value.len();
        self.iter().map(pair_bytes).sum()
    }

    /// Returns the parameters that have one of these keys. Nothing is copied if
    /// all of them do.
    #[must_use]
    pub fn project(&self, keys: &Keys) -> Self {
        let has_key = |(key, _): &&(Box<str>, Box<str>)| keys.contains(key);
        if self.0.iter().all(|pair| has_key(&pair)) {
            return self.clone();
        }
        Self(self.0.iter().filter(has_key).cloned().collect())
    }
}

/// `env=prod,version=v1`; odd words are quoted.
impl fmt::Display for Params {
    /// Writes the pairs in the order of their keys, separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (key, value)) in self.iter().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", word(key), word(value))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Params {
        Params::new(pairs.iter().copied()).unwrap()
    }

    #[test]
    fn sorted_unique_the_last_counts() {
        let set = params(&[("b", "2"), ("a", "0"), ("a", "1")]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
        assert_eq!(set.get("a"), Some("1"));
        assert_eq!(set.get("c"), None);
        assert!(!set.is_empty() && Params::default().is_empty());
    }

    #[test]
    fn no_more_is_read_than_allowed() {
        let pairs = |count: usize| (0..count).map(|nth| (nth.to_string(), "v"));
        let most = Params::new(pairs(Params::MAX_KEYS));
        assert_eq!(most.unwrap().iter().len(), Params::MAX_KEYS);
        let limit = Params::MAX_KEYS;
        let many = Params::new(std::iter::repeat(("k", "v")));
        assert_eq!(many, Err(ParamsError::TooManyKeys { limit }));

        let bytes = |count: usize| Params::new([("k", "v".repeat(count - 1))]);
        assert!(bytes(Params::MAX_BYTES).is_ok());
        let limit = Params::MAX_BYTES;
        let too_many = Err(ParamsError::TooManyBytes { limit });
        assert_eq!(bytes(Params::MAX_BYTES + 1), too_many);
        let spread = Params::new((0..9).map(|nth| (nth.to_string(), "v".repeat(1000))));
        assert_eq!(spread, too_many);
    }

    #[test]
    fn projection_keeps_the_keys_that_matter() {
        let set = params(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let some = set.project(&Keys::new(["a", "c", "d"]));
        assert_eq!(some, params(&[("a", "1"), ("c", "3")]));
        let all = set.project(&Keys::new(["a", "b", "c", "d"]));
        assert!(Arc::ptr_eq(&all.0, &set.0));
        assert_eq!(set.project(&Keys::default()), Params::default());
    }

    #[test]
    fn reads_well() {
        let set = params(&[("version", "v1"), ("env", "a b")]);
        assert_eq!(set.to_string(), r#"env="a b",version=v1"#);
        assert_eq!(format!("{set:?}"), r#"{env="a b",version=v1}"#);
    }
}
