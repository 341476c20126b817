//! The resources that a reconnecting client says it holds.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::name::Name;
use crate::resource::Version;

/// The `initial_resource_versions` of a delta request: names, and the version
/// that the client holds of each (S45). Clones share one list, and so can the
/// clients of a fleet that hold the same.
#[derive(Clone, Debug, Default)]
pub struct InitialVersions(Option<Arc<List>>);

/// Names and versions, with an index by name.
#[derive(Debug)]
struct List {
    /// In the order of the request; a name is there once.
    versions: Vec<(Name, Version)>,
    /// Indexes of `versions`.
    indexes_by_name: HashTable<u32>,
    hasher: DefaultHashBuilder,
    longest_name: usize,
    /// Of all names and versions.
    text_bytes: usize,
}

impl InitialVersions {
    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Returns whether the client names no resource.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns names and versions, in the order of the request.
    pub fn iter(&self) -> std::slice::Iter<'_, (Name, Version)> {
        self.as_slice().iter()
    }

    /// Returns the version that the client holds of a name; `None` if it named
    /// none.
    #[must_use]
    pub fn get(&self, name: &Name) -> Option<&Version> {
        let list = self.0.as_ref()?;
        let index = list.find(name)?;
        Some(&list.versions[index as usize].1)
    }

    /// Returns the length of the longest name in bytes.
    #[must_use]
    pub fn longest_name(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.longest_name)
    }

    /// Returns the number of bytes of all names and versions, which are counted
    /// as the list is made.
    pub(crate) fn text_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.text_bytes)
    }

    /// Returns whether both share one list in memory, and so are equal without
    /// a comparison. Empty ones share nothing.
    pub(crate) fn is_shared_with(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own_list), Some(other_list)) => Arc::ptr_eq(own_list, other_list),
            _ => false,
        }
    }

    /// Returns names and versions, in the order of the request.
    pub(crate) fn as_slice(&self) -> &[(Name, Version)] {
        self.0.as_ref().map_or(&[], |list| &list.versions)
    }
}

impl List {
    /// Returns the index of a name among the versions.
    fn find(&self, name: &Name) -> Option<u32> {
        let is_name = |index: &u32| self.versions[*index as usize].0 == *name;
        let index = self
            .indexes_by_name
            .find(self.hasher.hash_one(name), is_name);
        index.copied()
    }

    /// Adds a name and its version. A name that is there gets the later
    /// version, as a key of any Protobuf map does.
    fn insert(&mut self, name: Name, version: Version) {
        self.text_bytes += version.as_str().len();
        if let Some(index) = self.find(&name) {
            let replaced_version = std::mem::replace(&mut self.versions[index as usize].1, version);
            self.text_bytes -= replaced_version.as_str().len();
            return;
        }

        self.text_bytes += name.as_str().len();
        self.longest_name = self.longest_name.max(name.as_str().len());
        let Self {
            versions, hasher, ..
        } = self;
        versions.push((name, version));
        // Requests have limits far below what the number can count.
        let index = (versions.len() - 1) as u32;

        // The index by name keeps numbers alone, and asks for the hash of one
        // that it moves.
        let rehash = |index: &u32| hasher.hash_one(&versions[*index as usize].0);
        self.indexes_by_name
            .insert_unique(rehash(&index), index, rehash);
    }
}

impl FromIterator<(Name, Version)> for InitialVersions {
    /// Makes a list and its index by name. Of a name that comes twice, the last
    /// version counts. An empty list, as most requests have, takes no memory.
    fn from_iter<I: IntoIterator<Item = (Name, Version)>>(versions: I) -> Self {
        let mut versions = versions.into_iter().peekable();
        if versions.peek().is_none() {
            return Self(None);
        }

        let (room, _) = versions.size_hint();
        let mut list = List {
            versions: Vec::with_capacity(room),
            indexes_by_name: HashTable::with_capacity(room),
            hasher: DefaultHashBuilder::default(),
            longest_name: 0,
            text_bytes: 0,
        };
        for (name, version) in versions {
            list.insert(name, version);
        }
        Self(Some(Arc::new(list)))
    }
}

impl From<Vec<(Name, Version)>> for InitialVersions {
    fn from(versions: Vec<(Name, Version)>) -> Self {
        versions.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a InitialVersions {
    type Item = &'a (Name, Version);
    type IntoIter = std::slice::Iter<'a, (Name, Version)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for InitialVersions {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for InitialVersions {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_last_of_its_versions() {
        let named = |all: &[(&str, &str)]| -> InitialVersions {
            let all = all.iter().map(|(name, v)| ((*name).into(), (*v).into()));
            all.collect()
        };
        let versions = named(&[("a", "1"), ("bcd", "1"), ("a", "20")]);
        assert_eq!(versions.text_bytes(), "abcd120".len());
        let versions = named(&[("a", "1"), ("bcd", "1"), ("a", "2")]);
        assert_eq!(versions.get(&"a".into()), Some(&"2".into()));
        assert_eq!(versions.get(&"bcd".into()), Some(&"1".into()));
        assert_eq!(versions.get(&"c".into()), None);
        assert_eq!((versions.len(), versions.longest_name()), (2, 3));
        assert_eq!(versions, named(&[("a", "2"), ("bcd", "1")]));
        assert!(versions.is_shared_with(&versions.clone()));
        assert!(!versions.is_shared_with(&named(&[("a", "2"), ("bcd", "1")])));
        assert!(named(&[]).is_empty() && InitialVersions::default().is_empty());
    }
}
