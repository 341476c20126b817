//! The database: resources of many types, and their subscribers.
//!
//! A server, a client's cache and a relay use this one structure (TP2); they
//! differ in who fills it and who subscribes. It knows names, variants,
//! aliases, views and subscribers. It does not know the protocols, what a
//! client was sent, or the meaning of a body.
//!
//! ```text
//!   type ─▶ name ─▶ variants          a change goes
//!      │      ├──▶ subscribers          to the named subscribers it affects,
//!      │      └──▶ owners (aliases)     and to the views it affects,
//!      └─▶ views ─▶ subscribers         never to the rest
//! ```

mod apply;
mod check;
mod client_sets;
mod commit;
mod completion;
mod content;
mod cursor;
mod entry;
mod history;
mod hosts;
mod log;
mod past;
mod put;
mod resume_point;
mod shards;
mod slab;
mod subscribers;
mod table;
mod tombstones;
mod types;
mod view;
mod view_changes;

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

pub use apply::ApplyError;
pub(crate) use client_sets::ClientSet;
pub use commit::{ChangedName, Commit, Progress, SLICE};
pub use completion::Completion;
pub use content::Choice;
pub(crate) use content::same_resource;
pub use entry::EntryId;
pub use hosts::{HostCandidate, HostExplanation, HostForm, MatchedHost};
pub(crate) use resume_point::ResumePoint;
pub use subscribers::{CursorId, DemandChange, StreamId, SubscriberId};
pub use table::{MemoryCounts, Work};
pub use view::{Position, Scope};
pub use view_changes::{Item, ViewChanges};

use crate::name::{Glob, Name};
use crate::params::{Params, ParamsId, ParamsTable};
use crate::resource::{Resource, TypeUrl};
use client_sets::ClientSets;
use subscribers::SubscriberRegistry;
use table::Table;
use view::ViewId;

/// The index of a type in the database. The index of a type that only
/// subscribers brought is given to another type some time after the last of
/// them has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(u32);

/// Bytes that a subscription takes beside those of its name, about: measured
/// with a million names that do not exist.
pub const NAME_OVERHEAD: usize = 128;

/// Returns the bytes that a subscription to a name counts with, in limits
/// (S72).
#[must_use]
pub fn name_weight(name: &Name) -> usize {
    name.as_str().len() + NAME_OVERHEAD
}

/// Resources of many types, and their subscribers.
#[derive(Debug, Default)]
pub struct Database {
    /// By id. A free one is empty.
    tables: Vec<Table>,
    type_ids: HashMap<TypeUrl, TypeId>,
    /// Ids that no type has.
    free_types: BTreeSet<TypeId>,
    /// Types that may be without a use.
    idle_types: BTreeSet<TypeId>,
    /// How many types only subscribers brought.
    unclaimed_types: usize,
    /// The weight of all subscriptions to names without contents.
    missing_weight: usize,
    /// Whether no further subscription to such a name is taken.
    refuses_missing: bool,
    params: ParamsTable,
    subscribers: SubscriberRegistry,
    work: Work,
    /// [`Work::entries`] at the end of the last slice.
    slice_start: u64,
    /// Views with changes that their subscribers were not woken for, once each.
    changed_views: Vec<(TypeId, ViewId)>,
    is_cache: bool,
    client_sets: ClientSets,
}

impl Database {
    /// Makes an empty database that is authoritative: a name that it does not
    /// have does not exist.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty cache: whether a name exists is unknown until its source
    /// has answered. A server that has not loaded its contents is a cache, too
    /// (S51).
    #[must_use]
    pub fn cache() -> Self {
        let mut cache = Self {
            is_cache: true,
            ..Self::default()
        };
        cache.watch_demand();
        cache
    }

    /// Returns whether a name that the database does not have may exist.
    #[must_use]
    pub fn is_cache(&self) -> bool {
        self.is_cache
    }

    /// Makes a scope of a cache incomplete: names that it does not list may
    /// exist.
    pub fn set_incomplete(&mut self, type_id: TypeId, scope: &Scope) {
        self.table_mut(type_id).set_complete(scope, false);
    }

    /// Makes a scope of a cache complete: names that it does not list do not
    /// exist. The subscribers of its views are woken, unless the scope was
    /// complete before.
    pub fn set_complete(&mut self, type_id: TypeId, scope: &Scope) {
        let table = self.table_mut(type_id);
        if table.is_complete(scope) {
            return;
        }
        table.set_complete(scope, true);
        for subscriber in table.view_subscribers(scope) {
            self.subscribers.wake(subscriber);
        }
    }

    /// Returns the index of a type, if the database has it.
    #[must_use]
    pub fn find_type(&self, url: &TypeUrl) -> Option<TypeId> {
        self.type_ids.get(url).copied()
    }

    /// Returns the types of the database, in the order in which they were
    /// added.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, &TypeUrl)> {
        let tables = self.tables.iter().enumerate();
        let types = tables.map(|(index, table)| (TypeId(index as u32), &table.url));
        types.filter(|(id, _)| !self.free_types.contains(id))
    }

    /// Returns the URL of a type.
    #[must_use]
    pub fn type_url(&self, id: TypeId) -> &TypeUrl {
        &self.table(id).url
    }

    /// Returns the number of names of a type that have contents.
    #[must_use]
    pub fn len(&self, id: TypeId) -> usize {
        self.table(id).len
    }

    /// Returns whether no name of any type has contents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(|table| table.len == 0)
    }

    /// Returns the entry of a name, if the database has one.
    #[must_use]
    pub fn find(&self, type_id: TypeId, name: &Name) -> Option<EntryId> {
        self.table(type_id).find(name.as_str())
    }

    /// Returns the name of an entry.
    #[must_use]
    pub fn name(&self, type_id: TypeId, entry: EntryId) -> &Name {
        &self.table(type_id).entry(entry).name
    }

    /// Returns every resource of a type with all its variants, in no order.
    pub fn resources(&self, type_id: TypeId) -> impl Iterator<Item = &Arc<Resource>> {
        self.table(type_id)
            .entries()
            .flat_map(|(_, entry)| entry.content.resources())
    }

    /// Returns the resources in the `nth` slice of a type, which is [`SLICE`]
    /// slots; `None` after the last slice. A caller that visits all resources
    /// lets others use the database between two slices, and misses none that
    /// stays: a name with contents keeps its slot.
    pub fn slice_of_resources(
        &self,
        type_id: TypeId,
        nth: usize,
    ) -> Option<impl Iterator<Item = &Arc<Resource>>> {
        // The type may be gone since the last slice.
        let entries = &self.tables.get(type_id.0 as usize)?.entries;
        let first = nth * SLICE;
        let end = (first + SLICE).min(entries.slots());
        if first >= end {
            return None;
        }
        let slice_entries = (first..end).filter_map(|slot| entries.get(slot as u32));
        Some(slice_entries.flat_map(|entry| entry.content.resources()))
    }

    /// Returns all variants of a name; none if it has no contents.
    #[must_use]
    pub fn variants(&self, type_id: TypeId, name: &Name) -> &[Arc<Resource>] {
        match self.find(type_id, name) {
            Some(entry) => self.table(type_id).entry(entry).content.resources(),
            None => &[],
        }
    }

    /// Returns the number of a set of parameters, which is added if need be. It
    /// is kept until it was held and released as often.
    pub fn intern_params(&mut self, params: Params) -> ParamsId {
        self.params.intern(params)
    }

    /// Returns the number of a set of parameters, if the database has it.
    #[must_use]
    pub(crate) fn find_params(&self, params: &Params) -> Option<ParamsId> {
        self.params.find(params)
    }

    /// Returns the set of a number.
    #[must_use]
    pub fn params(&self, id: ParamsId) -> &Params {
        self.params.get(id)
    }

    /// Keeps a set of parameters until it is released as often. Subscriptions
    /// with it have to end before.
    pub fn hold_params(&mut self, id: ParamsId) {
        self.params.hold(id);
    }

    /// Ends one hold of a set of parameters.
    pub fn release_params(&mut self, id: ParamsId) {
        self.params.release(id);
    }

    /// Returns the number of sets of parameters.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn params_count(&self) -> usize {
        self.params.len()
    }

    /// Returns the number of sets of parameters, where a large one counts as
    /// several.
    #[must_use]
    pub(crate) fn params_weight(&self) -> usize {
        self.params.weight()
    }

    /// Returns what a client with these parameters gets for a name: a variant
    /// of the name, else of a resource that has it as an alias, else that there
    /// is none. In a type with hosts, the domains of virtual hosts decide.
    pub fn choose(&mut self, type_id: TypeId, entry: EntryId, params: ParamsId) -> Choice {
        self.tables[type_id.0 as usize].choose(entry, params, &mut self.params, &mut self.work)
    }

    /// Returns what a client with these parameters gets for a name, as
    /// [`Self::choose`] does for an entry. A name without an entry is absent,
    /// in a cache too.
    pub fn choose_name(&mut self, type_id: TypeId, name: &Name, params: ParamsId) -> Choice {
        match self.find(type_id, name) {
            Some(entry) => self.choose(type_id, entry, params),
            None => Choice::Absent,
        }
    }

    /// Returns the removed names that a glob matches, as far as they are
    /// remembered (S75).
    #[must_use]
    pub(crate) fn tombstones(&self, type_id: TypeId, glob: &Glob) -> Vec<Name> {
        self.table(type_id).tombstones.names_matching(glob)
    }

    /// Returns the counters of the work so far.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// Ends a slice: others that share the database can use it now. The work
    /// since the previous call is one slice, and [`Work::largest_slice`] is the
    /// largest of them.
    pub fn end_slice(&mut self) {
        let slice_size = self.work.entries - self.slice_start;
        self.work.largest_slice = self.work.largest_slice.max(slice_size);
        self.slice_start = self.work.entries;
    }

    /// Returns the weight of all subscriptions to names that have no contents.
    #[must_use]
    pub fn missing_weight(&self) -> usize {
        self.missing_weight
    }

    /// Sets whether the process is short of memory. While it is, a further
    /// subscription to a name without contents is refused, and every other one
    /// is taken (S72).
    pub fn set_memory_short(&mut self, is_short: bool) {
        self.refuses_missing = is_short;
    }

    /// Returns whether subscriptions to names without contents are refused
    /// because the process is short of memory.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.refuses_missing
    }

    /// Returns the counters of the memory of a type.
    #[must_use]
    pub fn memory_counts(&self, type_id: TypeId) -> MemoryCounts {
        self.table(type_id).memory_counts()
    }

    /// Returns the table of a type, which the database has.
    fn table(&self, id: TypeId) -> &Table {
        &self.tables[id.0 as usize]
    }

    /// Returns the table of a type, to be changed.
    fn table_mut(&mut self, id: TypeId) -> &mut Table {
        &mut self.tables[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::change::Change;

    fn put(url: &str, name: &str) -> Change {
        let resource = Resource::new(Name::new(name), "x".into());
        Change::Upsert(url.into(), Arc::new(resource))
    }

    #[test]
    fn a_database_lists_its_types_and_names() {
        let mut db = Database::new();
        let [t, u] = ["t", "u"].map(|url| db.type_id(&url.into()));
        assert!(db.is_empty() && !db.is_cache());
        db.apply(vec![put("u", "a"), put("u", "b")]).unwrap();
        assert!(!db.is_empty());
        assert_eq!((db.len(t), db.len(u)), (0, 2));
        let types: Vec<_> = db.types().map(|(id, url)| (id, url.as_str())).collect();
        assert_eq!(types, [(t, "t"), (u, "u")]);
        assert_eq!(db.type_url(u).as_str(), "u");
        assert_eq!(db.find_type(&"u".into()), Some(u));
        assert_eq!(db.find_type(&"v".into()), None);
        let names: BTreeSet<_> = db.resources(u).map(|r| r.name.as_str()).collect();
        assert_eq!(names, BTreeSet::from(["a", "b"]));
        assert_eq!(db.resources(t).count(), 0);
        let b = db.find(u, &"b".into()).unwrap();
        assert_eq!(db.name(u, b).as_str(), "b");
        assert_eq!(db.find(t, &"b".into()), None);
        assert_eq!(db.variants(u, &"c".into()), []);
        db.apply(vec![Change::ReplaceAll("u".into(), Vec::new())])
            .unwrap();
        assert!(db.is_empty());
    }

    #[test]
    fn s51_a_cache_does_not_know_which_names_exist_until_it_is_authoritative() {
        let mut db = Database::cache();
        let t = db.type_id(&"t".into());
        assert!(db.is_cache());
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, t, ParamsId::EMPTY);
        let entry = db.subscribe(subscriber, &"a".into(), ParamsId::EMPTY);
        assert_eq!(db.choose(t, entry, ParamsId::EMPTY), Choice::Unknown);
        let other = db.subscribe(subscriber, &"b".into(), ParamsId::EMPTY);
        db.unsubscribe(subscriber, other, ParamsId::EMPTY);
        assert_eq!(db.memory_counts(t).names, 1);
        db.set_authoritative();
        assert!(!db.is_cache());
        assert_eq!(db.choose(t, entry, ParamsId::EMPTY), Choice::Absent);
    }

    #[test]
    fn s85_all_resources_are_visited_a_slice_at_a_time() {
        let mut db = Database::new();
        let t = db.type_id(&"t".into());
        let sizes = |db: &Database| -> Vec<usize> {
            let slices = (0..5).map_while(|nth| db.slice_of_resources(t, nth));
            slices.map(Iterator::count).collect()
        };
        assert_eq!(sizes(&db), []);
        let puts = (0..2 * SLICE).map(|nth| put("t", &nth.to_string()));
        db.apply(puts.collect()).unwrap();
        assert_eq!(sizes(&db), [SLICE, SLICE]);
        db.apply(vec![put("t", "last")]).unwrap();
        assert_eq!(sizes(&db), [SLICE, SLICE, 1]);
        let slices = (0..3).filter_map(|nth| db.slice_of_resources(t, nth));
        let names: BTreeSet<_> = slices.flatten().map(|r| r.name.clone()).collect();
        assert_eq!(names.len(), 2 * SLICE + 1);
        let gone = Change::Remove("t".into(), "last".into());
        db.apply(vec![gone]).unwrap();
        let third = db.slice_of_resources(t, 2).map(Iterator::count);
        assert_eq!(third.unwrap_or_default(), 0);
    }

    #[test]
    fn s85_the_work_between_two_ends_of_a_slice_is_counted() {
        let mut db = Database::new();
        for names in [["a", "b"], ["c", "c"], ["d", "e"]] {
            db.apply(names.map(|name| put("t", name)).into()).unwrap();
            db.end_slice();
            assert_eq!(db.work().largest_slice, 2);
        }
        db.apply(vec![put("t", "f")]).unwrap();
        db.apply(vec![put("t", "g"), put("t", "h")]).unwrap();
        assert_eq!(db.work().largest_slice, 2);
        db.end_slice();
        assert_eq!(db.work().largest_slice, 3);
    }

    #[test]
    fn a_set_of_parameters_is_kept_until_it_is_released_as_often_as_it_was_held() {
        let mut db = Database::new();
        let before = db.params_count();
        let params = Params::new([("env", "a")]).unwrap();
        let id = db.intern_params(params.clone());
        db.hold_params(id);
        db.hold_params(id);
        db.release_params(id);
        assert_eq!(db.find_params(&params), Some(id));
        assert_eq!(*db.params(id), params);
        assert_eq!(db.params_count(), before + 1);
        db.release_params(id);
        assert_eq!(db.find_params(&params), None);
        assert_eq!(db.params_count(), before);
    }
}
