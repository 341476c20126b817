//! The records of a client cache, and the exceptions of its cursors.

use std::hash::BuildHasher;

use super::{CachedResource, Certainty, ClientCache};
use crate::database::{Database, same_resource};
use crate::name::Name;

/// The number of maybe taken versions of one variant that are recorded, so that
/// a client that NACKs everything costs no more. One more replaces all of them.
const MAX_MAYBE_TAKEN: usize = 4;

impl ClientCache {
    /// Returns the hash by which the records of a name are found.
    fn hash(&self, name: &Name) -> u64 {
        self.hasher.hash_one(name.as_str())
    }

    /// Returns the records of a name, of all variants.
    pub(in crate::source) fn records_of(
        &self,
        name: &Name,
    ) -> impl Iterator<Item = &CachedResource> {
        let candidates = self.records.iter_hash(self.hash(name));
        candidates.filter(move |record| record.resource.name == *name)
    }

    /// Adds a record to those of its name, and counts it in the totals. The
    /// caller has dropped a record that it replaces.
    fn insert(&mut self, record: CachedResource) {
        self.fingerprint_sum = self
            .fingerprint_sum
            .wrapping_add(counted_fingerprint(&record));
        self.unknown_bodies += usize::from(record.has_unknown_body());

        let hash = self.hash(&record.resource.name);
        let hasher = &self.hasher;
        self.records.insert_unique(hash, record, |record| {
            hasher.hash_one(record.resource.name.as_str())
        });
    }

    /// Drops the records of a name for which `keep` is false, subtracts them
    /// from the totals, and releases the memory of a table that is mostly
    /// empty.
    fn drop_records(&mut self, name: &Name, mut keep: impl FnMut(&CachedResource) -> bool) {
        let hash = self.hash(name);
        loop {
            let is_dropped =
                |record: &CachedResource| record.resource.name == *name && !keep(record);
            let Ok(entry) = self.records.find_entry(hash, is_dropped) else {
                break;
            };

            let (record, _) = entry.remove();
            self.fingerprint_sum = self
                .fingerprint_sum
                .wrapping_sub(counted_fingerprint(&record));
            self.unknown_bodies -= usize::from(record.has_unknown_body());
        }

        if self.records.len() < self.records.capacity() / 4 {
            let hasher = &self.hasher;
            self.records
                .shrink_to_fit(|record| hasher.hash_one(record.resource.name.as_str()));
        }
    }

    /// Replaces all records of a name by these, which are of the same name.
    fn replace_records(&mut self, name: &Name, records: Vec<CachedResource>) {
        self.drop_records(name, |_| false);
        records.into_iter().for_each(|record| self.insert(record));
    }

    /// Turns a name that a cursor decides into an exception, with records of
    /// what the client holds by the cursor. Has no effect on other names.
    pub(in crate::source) fn make_exception(&mut self, db: &mut Database, name: &Name) {
        if self.deciding_cursor(name).is_some() {
            let held_resources = self.held(db, name);
            self.exceptions.insert(name.clone());
            self.replace_records(name, held_resources);
        }
    }

    /// Turns a covered name into an exception with the records that it has: the
    /// client holds nothing of it by the cursor.
    pub(in crate::source) fn mark_exception(&mut self, name: &Name) {
        if self.covering_cursor(name).is_some() {
            self.exceptions.insert(name.clone());
        }
    }

    /// Records a resource that the client holds, or may hold, in place of the
    /// record of the same variant and certainty. A client may have taken any of
    /// several NACKed versions, and use its references (S17, S81), so all of
    /// these are recorded; one beyond the limit replaces all of them. If a
    /// cursor covers the name, it becomes an exception.
    pub(in crate::source) fn record(&mut self, db: &mut Database, record: CachedResource) {
        let name = record.resource.name.clone();
        self.make_exception(db, &name);

        let is_same_version =
            |other: &CachedResource| other.resource.version == record.resource.version;
        let is_other_version =
            |other: &&CachedResource| other.is_same_record(&record) && !is_same_version(other);
        let other_versions = self.records_of(&name).filter(is_other_version).count();
        let is_full = other_versions >= MAX_MAYBE_TAKEN;

        let replaces_all = record.certainty != Certainty::MaybeTaken || is_full;
        self.drop_records(&name, |other| {
            let is_replaced = replaces_all || is_same_version(other);
            !(is_replaced && other.is_same_record(&record))
        });
        self.insert(record);
    }

    /// Edits the records of a name, which becomes an exception if a cursor
    /// covers it.
    pub(in crate::source) fn edit_records(
        &mut self,
        db: &mut Database,
        name: &Name,
        edit: impl FnOnce(&mut Vec<CachedResource>),
    ) {
        self.make_exception(db, name);
        let mut records: Vec<CachedResource> = self.records_of(name).cloned().collect();
        edit(&mut records);
        self.replace_records(name, records);
    }

    /// Forgets all records of a name that no cursor covers.
    pub(in crate::source) fn forget(&mut self, name: &Name) {
        if self.covering_cursor(name).is_none() {
            self.exceptions.remove(name);
            self.drop_records(name, |_| false);
        }
    }

    /// Drops exceptions whose records agree with their cursor, but for names
    /// for which `keeps` is true. Does nothing while an ACK is pending: the
    /// position of a cursor does not count it yet.
    pub(in crate::source) fn drop_redundant_exceptions(
        &mut self,
        db: &mut Database,
        keeps: impl Fn(&Database, &Name) -> bool,
    ) {
        if !self.pending_acks.is_empty() {
            return;
        }
        let mut exceptions = std::mem::take(&mut self.exceptions);
        let is_redundant = |name: &Name| !keeps(db, name) && self.agrees_with_cursor(db, name);
        let redundant_names: Vec<Name> = exceptions.extract_if(.., is_redundant).collect();
        self.exceptions = exceptions;
        for name in redundant_names {
            self.drop_records(&name, |_| false);
        }
    }

    /// Returns whether the records of a name agree with what the client would
    /// hold by the covering cursor.
    fn agrees_with_cursor(&self, db: &mut Database, name: &Name) -> bool {
        let cursor = self.covering_cursor(name);
        let cursor_resource =
            cursor.and_then(|cursor| cursor.held_resource(db, self.type_id, name));
        let mut records = self.records_of(name);
        let first_agrees = match (records.next(), &cursor_resource) {
            (None, None) => true,
            (Some(record), Some(resource)) => {
                record.certainty == resource.certainty
                    && same_resource(&record.resource, &resource.resource)
            }
            _ => false,
        };
        let has_more = records.next().is_some();
        first_agrees && !has_more
    }
}

/// Returns the fingerprint of a record as it counts in the sum: zero unless the
/// resource is accepted.
fn counted_fingerprint(record: &CachedResource) -> u128 {
    match record.is_accepted() {
        true => record.resource.fingerprint(),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Cursor;
    use super::*;
    use crate::database::Scope;
    use crate::params::Params;
    use crate::resource::{Resource, Version};

    #[test]
    fn records_that_go_give_their_memory_back() {
        let mut db = Database::new();
        let mut client_cache = ClientCache::new(db.type_id(&"t".into()));
        let name = |nth: usize| Name::new(&nth.to_string());
        for nth in 0..1000 {
            let held = CachedResource::unknown_body(name(nth), Version::unknown());
            client_cache.record(&mut db, held);
        }
        (800..1000).for_each(|nth| client_cache.forget(&name(nth)));
        assert!(client_cache.records.capacity() > 1000, "most are left");
        (10..800).for_each(|nth| client_cache.forget(&name(nth)));
        assert_eq!(client_cache.records.len(), 10);
        assert!(client_cache.records.capacity() < 100);
    }

    #[test]
    fn variants_that_go_together_give_their_memory_back() {
        let mut db = Database::new();
        let mut client_cache = ClientCache::new(db.type_id(&"t".into()));
        let name = |nth: usize| Name::new(&nth.to_string());
        for nth in 0..1000 {
            for env in 0..3 {
                let held = CachedResource::accepted(&Arc::new(Resource {
                    constraints: Some(format!("env={env}").parse().unwrap()),
                    ..Resource::new(name(nth), "x".into())
                }));
                client_cache.record(&mut db, held);
            }
        }
        (10..1000).for_each(|nth| client_cache.forget(&name(nth)));
        assert_eq!(client_cache.records.len(), 30);
        assert!(client_cache.records.capacity() < 200);
    }

    #[test]
    fn a_variant_has_one_accepted_record_and_a_few_that_are_maybe_taken() {
        let mut db = Database::new();
        let mut client_cache = ClientCache::new(db.type_id(&"t".into()));
        let name = Name::new("a");
        let version = |nth: usize| Arc::new(Resource::new(name.clone(), nth.to_string().into()));
        for nth in 0..3 {
            client_cache.record(&mut db, CachedResource::accepted(&version(nth)));
            let held = client_cache.held(&mut db, &name).into_iter();
            let held: Vec<_> = held.map(|held| held.resource).collect();
            assert_eq!(held, [version(nth)]);
        }
        for nth in 0..MAX_MAYBE_TAKEN {
            for _ in 0..2 {
                client_cache.record(&mut db, CachedResource::maybe_taken(version(nth)));
            }
            assert_eq!(client_cache.records_of(&name).count(), 1 + nth + 1);
        }
        let another = version(MAX_MAYBE_TAKEN);
        client_cache.record(&mut db, CachedResource::maybe_taken(another));
        assert_eq!(client_cache.records_of(&name).count(), 2);
        assert_eq!(client_cache.check(|_| true), Ok(()));
    }

    #[test]
    fn an_exception_of_which_neither_records_nor_the_cursor_know_anything_goes() {
        let mut db = Database::new();
        let type_id = db.type_id(&"t".into());
        let mut client_cache = ClientCache::new(type_id);
        let params = db.intern_params(Params::default());
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, type_id, params);
        let id = db.open_cursor(subscriber, &Scope::All);
        client_cache.add_cursor(Cursor::new(Scope::All, id));
        client_cache.mark_exception(&"a".into());
        client_cache.drop_redundant_exceptions(&mut db, |_, _| true);
        assert_eq!(client_cache.exceptions().len(), 1);
        client_cache.drop_redundant_exceptions(&mut db, |_, _| false);
        assert_eq!(client_cache.exceptions().len(), 0);
    }
}
