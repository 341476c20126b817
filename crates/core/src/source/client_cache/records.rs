//! The records: what is held name by name, and which names of a view have some.

use std::hash::BuildHasher;

use super::{CachedResource, Certainty, ClientCache};
use crate::database::{Database, same_resource};
use crate::name::Name;

/// Rejected versions of one variant that are remembered: a peer that rejects all
/// that it is sent does not make us hold more. With one more, only that is.
const MAX_MAYBE_TAKEN: usize = 4;

impl ClientCache {
    fn hash(&self, name: &Name) -> u64 {
        self.hasher.hash_one(name.as_str())
    }

    pub(in crate::source) fn records_of(
        &self,
        name: &Name,
    ) -> impl Iterator<Item = &CachedResource> {
        let same = self.records.iter_hash(self.hash(name));
        same.filter(move |held| held.resource.name == *name)
    }

    fn insert(&mut self, held: CachedResource) {
        self.adjust_totals(&held, true);
        let hash = self.hash(&held.resource.name);
        let hasher = &self.hasher;
        self.records.insert_unique(hash, held, |held| {
            hasher.hash_one(held.resource.name.as_str())
        });
    }

    /// Drops the records of a name that are not to be kept.
    fn drop_records(&mut self, name: &Name, mut keep: impl FnMut(&CachedResource) -> bool) {
        let hash = self.hash(name);
        loop {
            let is_gone = |held: &CachedResource| held.resource.name == *name && !keep(held);
            let Ok(found) = self.records.find_entry(hash, is_gone) else {
                break;
            };
            let (held, _) = found.remove();
            self.adjust_totals(&held, false);
        }
        if self.records.len() < self.records.capacity() / 4 {
            let hasher = &self.hasher;
            self.records
                .shrink_to_fit(|held| hasher.hash_one(held.resource.name.as_str()));
        }
    }

    fn adjust_totals(&mut self, held: &CachedResource, comes: bool) {
        let print = match held.is_accepted() {
            true => held.resource.fingerprint(),
            false => 0,
        };
        let unknown = usize::from(held.has_unknown_body());
        match comes {
            true => {
                self.fingerprint_sum = self.fingerprint_sum.wrapping_add(print);
                self.unknown_bodies += unknown;
            }
            false => {
                self.fingerprint_sum = self.fingerprint_sum.wrapping_sub(print);
                self.unknown_bodies -= unknown;
            }
        }
    }

    /// Sets what is held of a name by name, if it is not so already.
    pub(in crate::source) fn make_exception(&mut self, db: &mut Database, name: &Name) {
        if self.deciding_cursor(name).is_some() {
            let held = self.held(db, name);
            self.drop_records(name, |_| false);
            self.exceptions.insert(name.clone());
            held.into_iter().for_each(|held| self.insert(held));
        }
    }

    /// Makes a covered name an exception: its records count, not the cursor.
    pub(in crate::source) fn mark_exception(&mut self, name: &Name) {
        if self.covering_cursor(name).is_some() {
            self.exceptions.insert(name.clone());
        }
    }

    /// Records something that the peer holds, or may hold. Of what it rejected it
    /// may have taken any version, and uses what that refers to (S17, S81).
    pub(in crate::source) fn record(&mut self, db: &mut Database, held: CachedResource) {
        let name = held.resource.name.clone();
        self.make_exception(db, &name);
        let many = self
            .records_of(&name)
            .filter(|other| other.is_same_record(&held));
        let many = many.count() >= MAX_MAYBE_TAKEN;
        self.drop_records(&name, |other| {
            let same = other.resource.version == held.resource.version;
            let takes_place = same || many || held.certainty != Certainty::MaybeTaken;
            !(takes_place && other.is_same_record(&held))
        });
        self.insert(held);
    }

    /// Changes the records of a name as a response does that was accepted.
    pub(in crate::source) fn edit_records(
        &mut self,
        db: &mut Database,
        name: &Name,
        by: impl FnOnce(&mut Vec<CachedResource>),
    ) {
        self.make_exception(db, name);
        let mut held: Vec<CachedResource> = self.records_of(name).cloned().collect();
        by(&mut held);
        self.drop_records(name, |_| false);
        held.into_iter().for_each(|held| self.insert(held));
    }

    /// Forgets all records of a name that no view covers.
    pub(in crate::source) fn forget(&mut self, name: &Name) {
        if self.covering_cursor(name).is_none() {
            self.exceptions.remove(name);
            self.drop_records(name, |_| false);
        }
    }

    /// Drops exceptions that have become the rule again. Only right while
    /// nothing is without an answer: then position and truth are the same
    /// thing. `keeps` tells names that stay exceptions for another reason.
    pub(in crate::source) fn drop_redundant_exceptions(
        &mut self,
        db: &mut Database,
        keeps: impl Fn(&Database, &Name) -> bool,
    ) {
        if !self.pending_acks.is_empty() {
            return;
        }
        let mut exceptions = std::mem::take(&mut self.exceptions);
        let mut ruled = Vec::new();
        exceptions.retain(|name| {
            if keeps(db, name) {
                return true;
            }
            let view = self.covering_cursor(name);
            let rule = view.and_then(|view| view.held_resource(db, self.type_id, name));
            let mut held = self.records_of(name);
            let same = match (held.next(), &rule) {
                (None, None) => true,
                (Some(held), Some(rule)) => {
                    held.certainty == rule.certainty
                        && same_resource(&held.resource, &rule.resource)
                }
                _ => false,
            };
            let keeps = !same || held.next().is_some();
            if !keeps {
                ruled.push(name.clone());
            }
            keeps
        });
        self.exceptions = exceptions;
        for name in ruled {
            self.drop_records(&name, |_| false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Version;

    #[test]
    fn records_that_go_give_their_memory_back() {
        let mut db = Database::new();
        let mut client_cache = ClientCache::new(db.type_id(&"t".into()));
        let name = |nth: usize| Name::new(&nth.to_string());
        for nth in 0..1000 {
            let held = CachedResource::unknown_body(name(nth), Version::new(""));
            client_cache.record(&mut db, held);
        }
        (800..1000).for_each(|nth| client_cache.forget(&name(nth)));
        assert!(client_cache.records.capacity() > 1000, "most are left");
        (10..800).for_each(|nth| client_cache.forget(&name(nth)));
        assert_eq!(client_cache.records.len(), 10);
        assert!(client_cache.records.capacity() < 100);
    }
}
