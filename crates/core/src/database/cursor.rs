//! Cursors: how wildcard and glob subscriptions read their views.
//!
//! A subscriber names its cursor by [`CursorId`] and never its view, since a
//! view may be split while the cursor is open.

use std::ops::Range;
use std::sync::Arc;

use super::subscribers::{CursorId, CursorSlot, DemandChange, SubscriberId};
use super::table::Table;
use super::view::{Position, Scope, View, ViewId};
use super::{Database, EntryId, TypeId, ViewChanges};
use crate::message::WireResource;
use crate::name::Name;
use crate::params::{Constraints, ParamsId};
use crate::resource::Resource;
use crate::resource_list::SharedList;

impl Database {
    /// Opens a cursor of a subscriber on the view of a scope, which is made if
    /// need be. It begins at position zero, where a client holds nothing. With
    /// its first cursor, demand for the scope starts.
    pub fn open_cursor(&mut self, subscriber: SubscriberId, scope: &Scope) -> CursorId {
        let category = self.category_of(subscriber);
        let type_id = self.subscribers.type_id(subscriber);
        let table = &mut self.tables[type_id.0 as usize];
        if !table.has_view(scope) {
            self.subscribers
                .record_demand(type_id, scope.selector(), DemandChange::Started);
        }

        let view_id = table.find_or_make_view(scope, category, &mut self.params, &mut self.work);
        let view = table.view_mut(view_id);
        view.subscribers.insert(subscriber);
        view.pin(0);
        let slot = CursorSlot {
            view: view_id,
            pins: vec![0],
        };
        self.subscribers.add_cursor(subscriber, slot)
    }

    /// Returns the category of a subscriber: its parameters, projected to the
    /// keys that decide the choices of its type.
    pub(super) fn category_of(&mut self, id: SubscriberId) -> ParamsId {
        let params = self.subscribers.params(id);
        let table = &self.tables[self.subscribers.type_id(id).0 as usize];
        self.params.project(params, &table.keys)
    }

    /// Closes a cursor and removes its pins. The view is dropped with its last
    /// subscriber, and demand for the scope ends with its last view.
    pub fn close_cursor(&mut self, id: CursorId) {
        let Some(cursor) = self.subscribers.remove_cursor(id) else {
            return;
        };
        let type_id = self.subscribers.type_id(id.subscriber);
        let table = &mut self.tables[type_id.0 as usize];
        let view = table.view_mut(cursor.view);
        view.subscribers.remove(&id.subscriber);

        if view.subscribers.is_empty() {
            let scope = view.scope.clone();
            table.drop_view(cursor.view);
            if !table.has_view(&scope) {
                self.subscribers
                    .record_demand(type_id, scope.selector(), DemandChange::Ended);
            }
            return;
        }

        for position in cursor.pins {
            self.unpin_view(type_id, cursor.view, position);
        }
    }

    /// Pins a position of a cursor: bodies that are current there are kept
    /// until it is unpinned.
    pub fn pin(&mut self, id: CursorId, position: Position) {
        let slot = self.subscribers.cursor_mut(id);
        slot.pins.push(position);
        self.view_mut(id).pin(position);
    }

    /// Removes one pin of a position that the cursor will not return to. A
    /// position that the cursor has not pinned is ignored.
    pub fn unpin(&mut self, id: CursorId, position: Position) {
        let cursor = self.subscribers.cursor_mut(id);
        let Some(index) = cursor.pins.iter().position(|pin| *pin == position) else {
            return;
        };
        cursor.pins.swap_remove(index);

        let view = cursor.view;
        let type_id = self.subscribers.type_id(id.subscriber);
        self.unpin_view(type_id, view, position);
    }

    /// Unpins a position of a view, and drops the removed names that it listed
    /// and that no other pin keeps.
    fn unpin_view(&mut self, type_id: TypeId, view: ViewId, position: Position) {
        let table = &mut self.tables[type_id.0 as usize];
        for entry in table.view_mut(view).unpin(position) {
            table.forget_if_unlisted(view, entry, &mut self.params, &mut self.work);
        }
    }

    /// Returns the newest position of the cursor's view.
    #[must_use]
    pub fn head(&self, id: CursorId) -> Position {
        self.view(id).head()
    }

    /// Returns the number of resources that the cursor's view lists.
    #[must_use]
    pub fn listed_len(&self, id: CursorId) -> usize {
        self.view(id).len()
    }

    /// Returns the sum of the fingerprints of all listed resources.
    #[must_use]
    pub fn fingerprint_sum(&self, id: CursorId) -> u128 {
        self.view(id).fingerprint_sum()
    }

    /// Returns the table of a cursor's type.
    fn table_of(&self, id: CursorId) -> &Table {
        self.table(self.subscribers.type_id(id.subscriber))
    }

    /// Returns the view that a cursor reads.
    fn view(&self, id: CursorId) -> &View {
        self.table_of(id).view(self.subscribers.cursor(id).view)
    }

    /// Returns the view that a cursor reads, to be changed.
    pub(super) fn view_mut(&mut self, id: CursorId) -> &mut View {
        let view = self.subscribers.cursor(id).view;
        let type_id = self.subscribers.type_id(id.subscriber);
        self.table_mut(type_id).view_mut(view)
    }

    /// Returns the resource that the cursor's view lists under a name now, if
    /// it lists the name.
    pub fn listed_resource(&mut self, id: CursorId, entry: EntryId) -> Option<Arc<Resource>> {
        let view = self.subscribers.cursor(id).view;
        let type_id = self.subscribers.type_id(id.subscriber);
        let table = &mut self.tables[type_id.0 as usize];
        let params = table.view(view).params;
        let choice = table.own_choice(entry, params, &mut self.params, &mut self.work);
        choice.resource().cloned()
    }

    /// Returns the resource that a client holds under a name if its cursor is
    /// at `position`, which must be pinned or the head; `None` if it holds
    /// none.
    pub fn resource_at(
        &mut self,
        id: CursorId,
        entry: EntryId,
        position: Position,
    ) -> Option<Arc<Resource>> {
        let listed_resource = self.listed_resource(id, entry);
        let view = self.view(id);
        view.resource_at(entry, position, listed_resource.as_ref())
    }

    /// Returns all resources that the cursor's view lists, sorted by name.
    /// Every name of the view is visited.
    pub fn list(&mut self, id: CursorId) -> Vec<Arc<Resource>> {
        let head = self.head(id);
        self.resources_at(id, head)
    }

    /// Returns all listed resources as a whole set for SotW. It is made once
    /// after each change of the view, and shared by streams. `wrap` is whether
    /// the client reads resources in a `Resource` wrapper.
    pub fn shared_list(&mut self, id: CursorId, wrap: bool) -> Arc<SharedList> {
        if let Some(list) = self.view_mut(id).full_list(wrap) {
            return list;
        }

        let ttl = self.table_of(id).kind.ttl_in_sotw;
        let encode = |resource| WireResource::for_sotw(resource, wrap, ttl);
        let resources = self.list(id).into_iter().map(encode);
        let list = Arc::new(SharedList::new(resources.collect()));
        self.view_mut(id).keep_full_list(wrap, &list);
        list
    }

    /// Returns all resources that a client holds if its cursor is at
    /// `position`, which must be pinned or the head; sorted by name. Every name
    /// of the view is visited.
    pub fn resources_at(&mut self, id: CursorId, position: Position) -> Vec<Arc<Resource>> {
        let items = self.view(id).entries_since(0);
        let entries: Vec<_> = items.map(|(_, entry)| entry).collect();
        self.work.entries += entries.len() as u64;

        let mut resources: Vec<_> = entries
            .into_iter()
            .filter_map(|entry| self.resource_at(id, entry, position))
            .collect();
        resources.sort_by(|left, right| left.name.cmp(&right.name));
        resources
    }

    /// Returns the resource that a client holds under a name if its cursor is
    /// at `position`, as [`Self::resource_at`] does; `None` also for a name
    /// without an entry.
    pub(crate) fn named_resource_at(
        &mut self,
        id: CursorId,
        name: &Name,
        position: Position,
    ) -> Option<Arc<Resource>> {
        self.work.entries += 1;
        let entry = self.table_of(id).find(name.as_str())?;
        self.resource_at(id, entry, position)
    }

    /// Returns the number of slots of the cursor's type, free ones included.
    pub(crate) fn slots(&self, id: CursorId) -> usize {
        self.table_of(id).entries.slots()
    }

    /// Returns the resources in some slots of the cursor's type that a client
    /// holds if its cursor is at `position`. While that is pinned, a caller that
    /// visits all slots in parts misses none, whatever changes meanwhile.
    pub(crate) fn resources_in_slots(
        &mut self,
        id: CursorId,
        slots: Range<usize>,
        position: Position,
    ) -> Vec<Arc<Resource>> {
        self.work.entries += slots.len() as u64;
        let entries = &self.table_of(id).entries;
        let used_slots: Vec<_> = slots
            .map(|slot| slot as u32)
            .filter(|slot| entries.get(*slot).is_some())
            .collect();
        let used_entries = used_slots.into_iter().map(EntryId);
        used_entries
            .filter_map(|entry| self.resource_at(id, entry, position))
            .collect()
    }

    /// Returns the names that changed after `position`, in the order of the
    /// log. A removed name may be missing: see [`Self::has_forgotten_since`].
    #[must_use]
    pub fn changed_names(&self, id: CursorId, position: Position) -> Vec<Name> {
        let table = self.table_of(id);
        let items = self.view(id).entries_since(position);
        items
            .map(|(_, entry)| table.entry(entry).name.clone())
            .collect()
    }

    /// Returns whether a name that was removed after `position` is missing in
    /// [`Self::changed_names`]: the view forgot it, since no cursor could
    /// return to it.
    #[must_use]
    pub fn has_forgotten_since(&self, id: CursorId, position: Position) -> bool {
        self.view(id).has_forgotten_since(position)
    }

    /// Returns whether a name that the cursor's view does not list does not
    /// exist.
    #[must_use]
    pub fn is_complete(&self, id: CursorId) -> bool {
        self.table_of(id).is_complete(&self.view(id).scope)
    }

    /// Returns the advance of a cursor from a position to the head of its view.
    /// It is made once for all cursors at that position.
    pub fn view_changes(&mut self, id: CursorId, from: Position) -> Arc<ViewChanges> {
        let view = self.view_mut(id);
        if let Some(changes) = view.shared_changes(from) {
            return changes;
        }

        let mut changes = ViewChanges::new(from, view.head());
        let entries: Vec<_> = view.entries_since(from).map(|(_, entry)| entry).collect();
        for entry in entries {
            self.work.entries += 1;
            let listed_resource = self.listed_resource(id, entry);
            let view = self.view(id);
            let held_resource = view.resource_at(entry, from, listed_resource.as_ref());
            let name = &self.table_of(id).entry(entry).name;
            changes.add_difference(name, held_resource.as_ref(), listed_resource);
        }

        let changes = Arc::new(changes);
        self.view_mut(id).share_changes(&changes);
        changes
    }

    /// Drops lists that streams share and that none used since the last call.
    /// The caller does this now and then.
    pub fn drop_unused_lists(&mut self) {
        for table in &mut self.tables {
            table.drop_unused_lists();
        }
    }
}

/// Returns the constraints of the variant `old` if a client has to be told that
/// the variant goes (TP2): another variant of its name replaces it, or it is
/// removed. `Some(None)` means the variant for all clients, which another one
/// replaces. If that variant is removed, the result is `None`: the removal of
/// its name says so.
pub(crate) fn replaced_variant(
    old: &Resource,
    new: Option<&Resource>,
) -> Option<Option<Constraints>> {
    let is_replaced = match new {
        Some(new) => old.name == new.name && old.constraints != new.constraints,
        None => old.constraints.is_some(),
    };
    is_replaced.then(|| old.constraints.clone())
}

/// Returns whether a client that holds the first resource needs no update to
/// hold the second; `None` is no resource.
pub(super) fn same_listing(first: Option<&Arc<Resource>>, second: Option<&Arc<Resource>>) -> bool {
    match (first, second) {
        (None, None) => true,
        (Some(first), Some(second)) => super::same_resource(first, second),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::resource::TypeUrl;

    #[test]
    fn what_was_made_for_many_is_forgotten_when_nobody_asks() {
        let mut db = Database::new();
        let url = TypeUrl::new("t");
        let resource = Resource::new(Name::new("a"), "x".into());
        db.apply(vec![Change::Upsert(url.clone(), Arc::new(resource))])
            .unwrap();
        let type_id = db.type_id(&url);
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
        let cursor = db.open_cursor(subscriber, &Scope::All);
        let kept = |db: &mut Database| {
            let changes = Arc::downgrade(&db.view_changes(cursor, 0));
            let whole = Arc::downgrade(&db.shared_list(cursor, false));
            (changes, whole)
        };
        let (changes, whole) = kept(&mut db);
        db.drop_unused_lists();
        assert!(changes.upgrade().is_some() && whole.upgrade().is_some());
        db.drop_unused_lists();
        assert!(changes.upgrade().is_none() && whole.upgrade().is_none());
        // A change makes it outdated at once.
        let (changes, whole) = kept(&mut db);
        let other = Resource::new(Name::new("a"), "y".into());
        db.apply(vec![Change::Upsert(url, Arc::new(other))])
            .unwrap();
        assert!(changes.upgrade().is_none() && whole.upgrade().is_none());
    }

    fn put(body: &'static str) -> Change {
        let resource = Resource::new(Name::new("a"), body.into());
        Change::Upsert("t".into(), Arc::new(resource))
    }

    #[test]
    fn a_removed_name_is_listed_as_changed_or_known_to_be_forgotten() {
        let mut db = Database::new();
        let type_id = db.type_id(&"t".into());
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
        let cursor = db.open_cursor(subscriber, &Scope::All);
        let gone = || vec![Change::Remove("t".into(), "a".into())];
        db.apply(vec![put("x")]).unwrap();
        let listed = db.head(cursor);
        assert!(!db.has_forgotten_since(cursor, 0));
        db.apply(gone()).unwrap();
        let removed = db.head(cursor);
        assert_eq!(db.changed_names(cursor, listed), []);
        assert!(db.has_forgotten_since(cursor, listed));
        assert!(!db.has_forgotten_since(cursor, removed));
        // A client may hold it: the removal is listed.
        db.apply(vec![put("y")]).unwrap();
        let listed = db.head(cursor);
        db.pin(cursor, listed);
        db.apply(gone()).unwrap();
        assert_eq!(db.changed_names(cursor, listed), [Name::new("a")]);
        assert!(!db.has_forgotten_since(cursor, listed));
        assert_eq!(db.resources_at(cursor, listed).len(), 1);
        assert_eq!(db.list(cursor), []);
        assert_eq!(db.memory_counts(type_id).retired, 1);
        // Until the client is told: then the name is freed.
        db.unpin(cursor, listed + 100);
        assert_eq!(db.memory_counts(type_id).names, 1);
        db.unpin(cursor, 0);
        db.unpin(cursor, listed);
        assert!(db.has_forgotten_since(cursor, listed));
        let counts = db.memory_counts(type_id);
        assert_eq!((counts.names, counts.retired), (0, 0));
        assert_eq!(db.check(), Ok(()));
    }

    #[test]
    fn tp2_a_variant_is_replaced_by_another_variant_of_its_name() {
        let resource = |name: &str, clients: Option<&str>| Resource {
            constraints: clients.map(|text| text.parse().unwrap()),
            ..Resource::new(name.into(), "x".into())
        };
        let (all, prod) = (resource("a", None), resource("a", Some("env=prod")));
        let other = resource("b", None);
        assert_eq!(replaced_variant(&all, Some(&prod)), Some(None));
        let replaced = Some(prod.constraints.clone());
        assert_eq!(replaced_variant(&prod, Some(&all)), replaced);
        assert_eq!(replaced_variant(&prod, None), replaced);
        assert_eq!(replaced_variant(&prod, Some(&prod)), None);
        assert_eq!(replaced_variant(&prod, Some(&other)), None);
        assert_eq!(replaced_variant(&all, None), None);
    }

    #[test]
    fn an_advance_costs_its_names_once_for_all_cursors() {
        let mut db = Database::new();
        let type_id = db.type_id(&"t".into());
        let stream = db.open_stream();
        let cursors = [(); 2].map(|()| {
            let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
            db.open_cursor(subscriber, &Scope::All)
        });
        let named = |name: &str| Arc::new(Resource::new(Name::new(name), "x".into()));
        let put = ["a", "b", "c"].map(|name| Change::Upsert("t".into(), named(name)));
        db.apply(put.into()).unwrap();
        let before = db.work().entries;
        let changes = cursors.map(|cursor| db.view_changes(cursor, 0));
        assert_eq!(changes[0].items.len(), 3);
        assert!(Arc::ptr_eq(&changes[0], &changes[1]));
        assert_eq!(db.work().entries - before, 3);
        assert_eq!(db.view_changes(cursors[0], 2).items.len(), 1);
        assert_eq!(db.work().entries - before, 4);
        assert_eq!(db.list(cursors[0]).len(), 3);
        assert_eq!(db.work().entries - before, 7);
    }

    #[test]
    fn a_view_costs_all_names_once_for_all_cursors() {
        let mut db = Database::new();
        let type_id = db.type_id(&"t".into());
        db.apply(vec![put("x")]).unwrap();
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
        for name in ["absent", "absent too"] {
            db.subscribe(subscriber, &name.into(), ParamsId::EMPTY);
        }
        let before = db.work().entries;
        let cursors = [(); 2].map(|()| db.open_cursor(subscriber, &Scope::All));
        assert_eq!(db.work().entries - before, 3);
        assert!(cursors.iter().all(|cursor| db.head(*cursor) == 1));
    }
}
