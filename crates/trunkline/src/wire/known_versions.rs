//! Lists of initial versions that were read before, recognised by their bytes
//! (S46).
//!
//! A fleet that lost its server reconnects at once, and each client names every
//! resource that it holds: the same thousands of names, in any order. The first
//! list is read. Any other list is recognised by a sum of the hashes of its
//! entries, which does not depend on their order, and shares the one that was
//! read.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline_core::message::InitialVersions;
use trunkline_proto::discovery::split_initial_versions;
use twox_hash::XxHash3_128;

/// The maximum of remembered lists: a fleet has one or two.
const MAX_LISTS: usize = 4;

/// The maximum of names in all remembered lists together.
const MAX_NAMES: usize = 200_000;

/// Requests shorter than this are read as they are.
const MIN_BYTES: usize = 4096;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct KnownVersions {
    /// Random, so that no client can make a list with the fingerprint of
    /// another.
    seed: u64,
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    /// The least recently used one first.
    entries: Vec<(Fingerprint, InitialVersions)>,
    /// Whether any was used since [`KnownVersions::drop_unused`].
    is_used: bool,
}

impl Lists {
    /// Returns the number of names in all remembered lists together.
    fn count_names(&self) -> usize {
        self.entries
            .iter()
            .map(|(fingerprint, _)| fingerprint.count)
            .sum()
    }
}

/// The fingerprint of a list, whatever the order of its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// The sum of the hashes of all entries.
    sum: u128,
    count: usize,
}

/// A delta request whose initial versions were not read.
pub(crate) struct Unread {
    /// The request without them.
    pub(crate) request: Vec<u8>,
    pub(crate) fingerprint: Fingerprint,
}

impl Default for KnownVersions {
    fn default() -> Self {
        Self {
            seed: RandomState::new().hash_one(()),
            lists: Mutex::default(),
        }
    }
}

impl KnownVersions {
    /// Splits the initial versions off an encoded delta request, and makes
    /// their fingerprint without decoding them. Returns `None` if the request
    /// is short, has no initial versions, or is no message.
    pub(crate) fn split_off(&self, request: &[u8]) -> Option<Unread> {
        if request.len() < MIN_BYTES {
            return None;
        }
        let mut fingerprint = Fingerprint::default();
        let request_without_versions = split_initial_versions(request, |entry| {
            let hash = XxHash3_128::oneshot_with_seed(self.seed, entry);
            fingerprint.sum = fingerprint.sum.wrapping_add(hash);
            fingerprint.count += 1;
        })?;
        (fingerprint.count > 0).then_some(Unread {
            request: request_without_versions,
            fingerprint,
        })
    }

    /// Returns the remembered list of this fingerprint, and marks it as the
    /// most recently used one.
    pub(crate) fn find(&self, fingerprint: Fingerprint) -> Option<InitialVersions> {
        let mut lists = self.lock();
        let mut entries = lists.entries.iter();
        let index = entries.position(|(other, _)| *other == fingerprint)?;
        lists.is_used = true;
        lists.entries[index..].rotate_left(1);
        lists.entries.last().map(|(_, versions)| versions.clone())
    }

    /// Remembers a list by its fingerprint, in place of the least recently used
    /// ones. A list of more than [`MAX_NAMES`] is not remembered. Neither is
    /// one that has a name twice: which version counts depends on the order of
    /// the entries, which the fingerprint leaves out.
    pub(crate) fn remember(&self, fingerprint: Fingerprint, versions: &InitialVersions) {
        let has_name_twice = versions.len() != fingerprint.count;
        if has_name_twice || fingerprint.count > MAX_NAMES {
            return;
        }

        let mut lists = self.lock();
        lists.is_used = true;
        while lists.entries.len() == MAX_LISTS
            || lists.count_names() + fingerprint.count > MAX_NAMES
        {
            lists.entries.remove(0);
        }
        lists.entries.push((fingerprint, versions.clone()));
    }

    /// Forgets all lists if none was used since this was last called.
    pub(crate) fn drop_unused(&self) {
        let mut lists = self.lock();
        if !std::mem::take(&mut lists.is_used) {
            lists.entries = Vec::new();
        }
    }

    /// Locks the lists. Ignores poison: a list is never half changed.
    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use trunkline_proto::discovery::DeltaDiscoveryRequest;

    fn request(names: impl Iterator<Item = usize>) -> Vec<u8> {
        let version = |n: usize| (format!("name-{n}").as_str(), "1").into();
        let message = DeltaDiscoveryRequest {
            type_url: "t".into(),
            initial_resource_versions: names.map(version).collect(),
            response_nonce: "7".into(),
            ..DeltaDiscoveryRequest::default()
        };
        message.encode_to_vec()
    }

    fn versions(count: usize) -> InitialVersions {
        let names = (0..count).map(|n| (format!("name-{n}").as_str().into(), "1".into()));
        names.collect()
    }

    #[test]
    fn entries_are_known_again_in_any_order() {
        let known = KnownVersions::default();
        let forwards = known.split_off(&request(0..1000)).unwrap();
        let backwards = known.split_off(&request((0..1000).rev())).unwrap();
        assert_eq!(forwards.fingerprint, backwards.fingerprint);
        assert_eq!(forwards.request, request(0..0));
        assert!(known.find(forwards.fingerprint).is_none());
        known.remember(forwards.fingerprint, &versions(1000));
        assert_eq!(known.find(backwards.fingerprint), Some(versions(1000)));
        let other = known.split_off(&request(1..1000)).unwrap();
        assert!(known.find(other.fingerprint).is_none());
        assert!(known.split_off(&request(0..10)).is_none(), "it is small");
    }

    #[test]
    fn few_are_remembered_and_only_while_they_are_of_use() {
        let known = KnownVersions::default();
        let fingerprint = |sum: u128, count: usize| Fingerprint { sum, count };
        known.remember(fingerprint(9, 3), &versions(2));
        assert!(
            known.find(fingerprint(9, 3)).is_none(),
            "a name is there twice"
        );
        for sum in 0..MAX_LISTS as u128 {
            known.remember(fingerprint(sum, 2), &versions(2));
        }
        assert!(known.find(fingerprint(0, 2)).is_some());
        known.remember(fingerprint(9, 2), &versions(2));
        assert!(known.find(fingerprint(0, 2)).is_some(), "it was used");
        assert!(
            known.find(fingerprint(1, 2)).is_none(),
            "the oldest of the others"
        );
        known.drop_unused();
        assert!(known.find(fingerprint(9, 2)).is_some());
        known.drop_unused();
        known.drop_unused();
        assert!(known.find(fingerprint(9, 2)).is_none());
    }
}
