//! All names of one type, and the views on them.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::SubscriberId;
use super::content::{Choice, Content};
use super::entry::{Entry, EntryId, NameSubscribers};
use super::history::History;
use super::hosts::HostIndex;
use super::past::Past;
use super::shards::Shards;
use super::slab::Slab;
use super::tombstones::Tombstones;
use super::view::{Scope, View, ViewId};
use crate::kind::Kind;
use crate::name::{Glob, Name};
use crate::params::{Keys, ParamsId, ParamsTable};
use crate::resource::{Resource, TypeUrl};

/// Counters of the database's work, with which tests prove the cost of a
/// change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Names visited.
    pub entries: u64,
    /// Views that recorded a change.
    pub views: u64,
    /// Subscribers notified.
    pub subscribers: u64,
    /// Constraints evaluated.
    pub evaluations: u64,
    /// The most names that were visited in one slice, which
    /// [`Database::end_slice`](super::Database::end_slice) ends (S85).
    pub largest_slice: u64,
}

/// Counters of a type's memory, with which tests prove its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    /// Names, whatever uses them.
    pub names: usize,
    /// Views.
    pub views: usize,
    /// Items in the logs of all views, stale ones included.
    pub items: usize,
    /// Earlier versions that a cursor may return to.
    pub retired: usize,
}

/// All names and views of one type.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) url: TypeUrl,
    pub(super) kind: Kind,
    names: Shards<EntryId>,
    hasher: hashbrown::DefaultHashBuilder,
    pub(super) entries: Slab<Entry>,
    /// The index of domains, for a type that is subscribed to by host (S66).
    pub(super) hosts: Option<Box<HostIndex>>,
    /// The resources that have a name as an alias, sorted by name (S36).
    owners: HashMap<EntryId, Vec<EntryId>>,
    /// How many subscribers there are, of names or of views.
    pub(super) subscriber_count: usize,
    /// Whether the type has a use besides subscribers: contents, or a program.
    pub(super) is_claimed: bool,
    /// How many names have contents.
    pub(super) len: usize,
    views: Vec<Option<View>>,
    views_by_scope: HashMap<Scope, Vec<ViewId>>,
    /// The keys that decide the choices of this type. They only grow: a key
    /// that is no longer used makes views finer than needed, never wrong.
    pub(super) keys: Keys,
    pub(super) tombstones: Tombstones,
    pub(super) history: History,
    /// Empty, unless the responses of the type are whole sets.
    pub(super) past: Past,
    /// A name that is not here may exist: its source has to be asked.
    pub(super) is_cache: bool,
    /// The table was a cache, and its entries are being visited.
    pub(super) is_completing: bool,
    /// The complete scopes of a cache.
    complete_scopes: HashSet<Scope>,
}

impl Table {
    /// Makes an empty table. A type that is subscribed to by host has an index
    /// of domains.
    pub(super) fn new(url: TypeUrl, is_cache: bool) -> Self {
        Self {
            hosts: Kind::of(&url).on_demand.then(Box::default),
            kind: Kind::of(&url),
            url,
            names: Shards::default(),
            hasher: hashbrown::DefaultHashBuilder::default(),
            entries: Slab::default(),
            owners: HashMap::new(),
            subscriber_count: 0,
            is_claimed: false,
            len: 0,
            views: Vec::new(),
            views_by_scope: HashMap::new(),
            keys: Keys::default(),
            tombstones: Tombstones::default(),
            history: History::default(),
            past: Past::default(),
            is_cache,
            is_completing: false,
            complete_scopes: HashSet::new(),
        }
    }

    /// Returns whether a name that a scope does not list does not exist.
    pub(super) fn is_complete(&self, scope: &Scope) -> bool {
        !self.is_cache || self.complete_scopes.contains(scope)
    }

    /// Returns the contents of a name without an entry.
    pub(super) fn default_content(&self) -> Content {
        match self.is_cache {
            true => Content::Unknown,
            false => Content::Absent,
        }
    }

    /// Returns whether contents are those of a name without an entry, and so
    /// need none. In a cache, absent contents are an answer of its source, and
    /// are kept.
    pub(super) fn is_default_content(&self, content: &Content) -> bool {
        match content {
            Content::Absent => !self.is_cache,
            Content::Unknown => true,
            _ => false,
        }
    }

    /// Sets whether a scope of a cache is complete. Nobody is woken.
    pub(super) fn set_complete(&mut self, scope: &Scope, is_complete: bool) {
        if is_complete {
            self.complete_scopes.insert(scope.clone());
        } else {
            self.complete_scopes.remove(scope);
        }
    }

    /// Returns whether any cursor is open on a scope.
    pub(super) fn has_view(&self, scope: &Scope) -> bool {
        self.views_by_scope.contains_key(scope)
    }

    /// Returns the subscribers of all views of a scope, whatever their
    /// parameters.
    pub(super) fn view_subscribers(&self, scope: &Scope) -> Vec<SubscriberId> {
        let views = self.views_by_scope.get(scope).into_iter().flatten();
        let subscribers = views.flat_map(|id| &self.view(*id).subscribers);
        subscribers.copied().collect()
    }

    /// Returns the entry of a name, if it has one.
    pub(super) fn find(&self, name: &str) -> Option<EntryId> {
        let hash = self.hash(name);
        self.names
            .find(hash, |id| self.entry(*id).name.as_str() == name)
            .copied()
    }

    /// Returns the hash by which the index of names finds a name.
    fn hash(&self, name: &str) -> u64 {
        std::hash::BuildHasher::hash_one(&self.hasher, name)
    }

    /// Returns an entry that is in use.
    pub(super) fn entry(&self, id: EntryId) -> &Entry {
        #[expect(clippy::expect_used, reason = "ids are handed out for kept names only")]
        self.entries.get(id.0).expect("the name is kept")
    }

    /// Returns an entry that is in use, to be changed.
    pub(super) fn entry_mut(&mut self, id: EntryId) -> &mut Entry {
        #[expect(clippy::expect_used, reason = "ids are handed out for kept names only")]
        self.entries.get_mut(id.0).expect("the name is kept")
    }

    /// Returns the entry of a name, which is added if need be. The caller has
    /// to put the entry to use, or to call [`Self::remove_unused`].
    pub(super) fn intern(&mut self, name: &Name) -> EntryId {
        if let Some(id) = self.find(name.as_str()) {
            return id;
        }
        let entry = Entry {
            name: name.clone(),
            content: self.default_content(),
            subscribers: NameSubscribers::default(),
        };
        let id = EntryId(self.entries.insert(entry));

        // The index keeps ids alone: the hash of one that it moves is computed
        // again from its name.
        let Self {
            names,
            entries,
            hasher,
            ..
        } = self;
        let rehash = |id: &EntryId| {
            let name = entries.get(id.0).map_or("", |entry| entry.name.as_str());
            std::hash::BuildHasher::hash_one(&*hasher, name)
        };
        names.insert(rehash(&id), id, rehash);
        id
    }

    /// Frees an entry, unless it has contents, subscribers or owners, or a view
    /// lists it. An entry that was freed before is ignored. The caller does
    /// this whenever it has ended a use of the entry.
    pub(super) fn remove_unused(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get(id.0) else {
            return;
        };
        if self.is_used(id, entry) {
            return;
        }

        let hash = self.hash(entry.name.as_str());
        self.names.remove(hash, |other| *other == id);
        self.entries.remove(id.0);
        let Self {
            names,
            entries,
            hasher,
            ..
        } = self;
        names.shrink(|id| {
            let name = entries.get(id.0).map_or("", |entry| entry.name.as_str());
            std::hash::BuildHasher::hash_one(&*hasher, name)
        });
        if let Some(hosts) = &mut self.hosts {
            hosts.forget_rewrites(id);
        }
    }

    /// Returns whether an entry is in use: it has contents, subscribers or
    /// owners, or a view lists it.
    pub(super) fn is_used(&self, id: EntryId, entry: &Entry) -> bool {
        let has_contents = !self.is_default_content(&entry.content);
        let has_subscribers = !entry.subscribers.is_empty();
        if has_contents || has_subscribers || self.owners.contains_key(&id) {
            return true;
        }
        let mut views = self.views.iter().flatten();
        views.any(|view| view.has_entry(id))
    }

    /// Returns the resources that have this name as an alias, sorted by name
    /// (S36).
    pub(super) fn owners(&self, alias: EntryId) -> &[EntryId] {
        self.owners.get(&alias).map_or(&[], Vec::as_slice)
    }

    /// Adds an owner that an alias does not have. The owners stay sorted by
    /// name, since a choice takes the first that has a resource.
    pub(super) fn add_owner(&mut self, alias: EntryId, owner: EntryId) {
        let mut owners = self.owners.remove(&alias).unwrap_or_default();
        owners.push(owner);
        owners.sort_by(|left, right| self.entry(*left).name.cmp(&self.entry(*right).name));
        self.owners.insert(alias, owners);
    }

    /// Removes an owner of an alias. The entry of the alias is freed with its
    /// last use.
    pub(super) fn remove_owner(&mut self, alias: EntryId, owner: EntryId) {
        if let Some(owners) = self.owners.get_mut(&alias) {
            owners.retain(|other| *other != owner);
            if owners.is_empty() {
                self.owners.remove(&alias);
            }
        }
        self.remove_unused(alias);
    }

    /// Returns what a client gets for a name: of the name itself, or if it is
    /// absent or unknown, of the first owner that has a resource for the client
    /// (S36). In a type with hosts, the domains of virtual hosts decide.
    pub(super) fn choose(
        &mut self,
        id: EntryId,
        params: ParamsId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) -> Choice {
        work.entries += 1;
        if let Some(choice) = self.choose_host(id, params, params_table, work) {
            return choice;
        }

        let own_choice = self.own_choice(id, params, params_table, work);
        if !matches!(own_choice, Choice::Absent | Choice::Unknown) {
            return own_choice;
        }

        for owner in self.owners(id).to_vec() {
            let choice = self.own_choice(owner, params, params_table, work);
            if choice.resource().is_some() {
                return choice;
            }
        }
        own_choice
    }

    /// Returns what a client gets for a name by its contents alone, without
    /// aliases and domains: what a view lists.
    pub(super) fn own_choice(
        &mut self,
        id: EntryId,
        params: ParamsId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) -> Choice {
        self.entry_mut(id)
            .content
            .choose_variant(params, params_table, &mut work.evaluations)
    }

    /// Returns a view that has subscribers.
    pub(super) fn view(&self, id: ViewId) -> &View {
        #[expect(clippy::expect_used, reason = "a view lives while it has subscribers")]
        self.views[id.0 as usize]
            .as_ref()
            .expect("the view is kept")
    }

    /// Returns a view that has subscribers, to be changed.
    pub(super) fn view_mut(&mut self, id: ViewId) -> &mut View {
        #[expect(clippy::expect_used, reason = "a view lives while it has subscribers")]
        self.views[id.0 as usize]
            .as_mut()
            .expect("the view is kept")
    }

    /// Drops the lists that a view shares with streams, in all views whose
    /// lists no stream used since the last call.
    pub(super) fn drop_unused_lists(&mut self) {
        for view in self.views.iter_mut().flatten() {
            view.drop_unused_lists();
        }
    }

    /// Returns all views, in the order of their ids.
    pub(super) fn views(&self) -> impl Iterator<Item = (ViewId, &View)> {
        self.views
            .iter()
            .enumerate()
            .filter_map(|(index, view)| Some((ViewId(index as u32), view.as_ref()?)))
    }

    /// Returns the views that cover a name: those of the whole type, and those
    /// of the one glob that collects it.
    pub(super) fn views_of_name(&self, name: &Name) -> Vec<ViewId> {
        if self.views_by_scope.is_empty() {
            // To find the glob of a name, the name has to be parsed.
            return Vec::new();
        }
        let glob = Glob::of(name).map(Scope::Glob);
        let scopes = [Scope::All].into_iter().chain(glob);
        let views = scopes.filter_map(|scope| self.views_by_scope.get(&scope));
        views.flatten().copied().collect()
    }

    /// Returns the view of a scope for one category of clients. `params` are
    /// projected on the keys that the type uses, so that clients which get the
    /// same resources share a view. Making a view visits all names of the type,
    /// which `work` counts; finding one does not.
    pub(super) fn find_or_make_view(
        &mut self,
        scope: &Scope,
        params: ParamsId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) -> ViewId {
        let mut views = self.views_by_scope.get(scope).into_iter().flatten();
        if let Some(id) = views.find(|id| self.view(**id).params == params) {
            return *id;
        }

        let mut view = View::new(scope.clone(), params);
        for (entry, resource) in self.members(scope, params, params_table, work) {
            view.record(entry, None, Some(&resource));
        }
        self.add_view(view)
    }

    /// Adds a view in the first free slot, and returns its id.
    pub(super) fn add_view(&mut self, view: View) -> ViewId {
        let scope = view.scope.clone();
        let free_slot = self.views.iter().position(Option::is_none);
        let index = free_slot.unwrap_or_else(|| {
            self.views.push(None);
            self.views.len() - 1
        });
        self.views[index] = Some(view);
        let id = ViewId(index as u32);
        self.views_by_scope.entry(scope).or_default().push(id);
        id
    }

    /// Returns the resources that a view of a scope lists, sorted by name. All
    /// names of the type are visited.
    pub(super) fn members(
        &mut self,
        scope: &Scope,
        params: ParamsId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) -> Vec<(EntryId, Arc<Resource>)> {
        let mut members = Vec::new();
        for (id, entry) in self.entries.iter_mut() {
            work.entries += 1;
            if !scope.covers(&entry.name) {
                continue;
            }
            let choice = entry
                .content
                .choose_variant(params, params_table, &mut work.evaluations);
            if let Some(resource) = choice.resource() {
                members.push((EntryId(id), Arc::clone(resource)));
            }
        }

        members.sort_by(|(_, left), (_, right)| left.name.cmp(&right.name));
        members
    }

    /// Drops a name from the log of a view, if the view does not list it. The
    /// caller has freed the retired versions of the name, so that no cursor
    /// returns to a position which lists it. The entry is freed with its last
    /// use.
    pub(super) fn forget_if_unlisted(
        &mut self,
        view_id: ViewId,
        entry: EntryId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) {
        let params = self.view(view_id).params;
        let choice = self.own_choice(entry, params, params_table, work);
        if choice.resource().is_none() {
            self.view_mut(view_id).forget(entry);
            self.remove_unused(entry);
        }
    }

    /// Removes a view that has no subscribers, and frees the entries that only
    /// its log had in use.
    pub(super) fn drop_view(&mut self, id: ViewId) {
        let Some(view) = self.views[id.0 as usize].take() else {
            return;
        };
        if let Some(ids) = self.views_by_scope.get_mut(&view.scope) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.views_by_scope.remove(&view.scope);
            }
        }

        for (_, entry) in view.entries_since(0) {
            self.remove_unused(entry);
        }
    }

    /// Counts names, views, and the items and retired versions of all views.
    pub(super) fn memory_counts(&self) -> MemoryCounts {
        MemoryCounts {
            names: self.entries.len(),
            views: self.views().count(),
            items: self.views().map(|(_, view)| view.items()).sum(),
            retired: self.views().map(|(_, view)| view.retired_versions()).sum(),
        }
    }

    /// Returns all entries, by their ids.
    pub(super) fn entries(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        self.entries.iter().map(|(id, entry)| (EntryId(id), entry))
    }
}
