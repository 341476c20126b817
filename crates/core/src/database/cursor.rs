//! Following a view: how a wildcard or glob subscriber learns of changes.
//!
//! A follower names its view by [`CursorId`], never by the view itself, for a
//! view may be divided under it.

use std::sync::Arc;

use super::subscribers::{CursorId, CursorSlot, DemandChange, SubscriberId};
use super::view::{Position, Scope};
use super::{Database, EntryId, ViewChanges};
use crate::message::WireResource;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::Resource;
use crate::resource_list::SharedList;

impl Database {
    /// Begins to follow all that a scope shows this subscriber, from position
    /// zero: it holds nothing.
    pub fn open_cursor(&mut self, subscriber: SubscriberId, scope: &Scope) -> CursorId {
        let params = self.subscribers.params(subscriber);
        let type_id = self.subscribers.type_id(subscriber);
        let table = &mut self.tables[type_id.0 as usize];
        if !table.has_view(scope) {
            self.subscribers
                .record_demand(type_id, scope.selector(), DemandChange::Started);
        }
        let category = self.params.project(params, &table.keys);
        let view_id = table.view_for(scope, category, &mut self.params, &mut self.work);
        let view = table.view_mut(view_id);
        view.subscribers.insert(subscriber);
        view.pin(0);
        let held = vec![0];
        let slot = CursorSlot {
            view: view_id,
            pins: held,
        };
        self.subscribers.add_cursor(subscriber, slot)
    }

    /// Ends following.
    pub fn close_cursor(&mut self, id: CursorId) {
        let Some(slot) = self.subscribers.remove_cursor(id) else {
            return;
        };
        let type_id = self.subscribers.type_id(id.subscriber);
        let table = &mut self.tables[type_id.0 as usize];
        let view = table.view_mut(slot.view);
        view.subscribers.remove(&id.subscriber);
        if view.subscribers.is_empty() {
            let scope = view.scope.clone();
            table.drop_view(slot.view);
            if !table.has_view(&scope) {
                self.subscribers
                    .record_demand(type_id, scope.selector(), DemandChange::Ended);
            }
            return;
        }
        for position in slot.pins {
            let forgotten = table.view_mut(slot.view).unpin(position);
            for entry in forgotten {
                table.forget_if_gone(slot.view, entry, &mut self.params, &mut self.work);
            }
        }
    }

    /// Pins a position of a cursor: bodies that are current there are kept
    /// until it is unpinned.
    pub fn pin(&mut self, id: CursorId, position: Position) {
        let slot = self.subscribers.cursor_mut(id);
        slot.pins.push(position);
        let view = slot.view;
        let type_id = self.subscribers.type_id(id.subscriber);
        self.table_mut(type_id).view_mut(view).pin(position);
    }

    /// The follower will not come back to this position.
    pub fn unpin(&mut self, id: CursorId, position: Position) {
        let slot = self.subscribers.cursor_mut(id);
        let Some(index) = slot.pins.iter().position(|p| *p == position) else {
            return;
        };
        slot.pins.swap_remove(index);
        let view = slot.view;
        let type_id = self.subscribers.type_id(id.subscriber);
        let table = &mut self.tables[type_id.0 as usize];
        for entry in table.view_mut(view).unpin(position) {
            table.forget_if_gone(view, entry, &mut self.params, &mut self.work);
        }
    }

    /// The newest position.
    #[must_use]
    pub fn head(&self, id: CursorId) -> Position {
        let (table, view) = self.table_and_view(id);
        table.view(view).head()
    }

    /// The sum of the fingerprints of all that is listed.
    #[must_use]
    pub fn fingerprint_sum(&self, id: CursorId) -> u128 {
        let (table, view) = self.table_and_view(id);
        table.view(view).fingerprint_sum()
    }

    fn table_and_view(&self, id: CursorId) -> (&super::Table, super::ViewId) {
        let view = self.subscribers.cursor(id).view;
        (self.table(self.subscribers.type_id(id.subscriber)), view)
    }

    /// What is listed under a name.
    pub fn listed_resource(&mut self, id: CursorId, entry: EntryId) -> Option<Arc<Resource>> {
        let view = self.subscribers.cursor(id).view;
        let type_id = self.subscribers.type_id(id.subscriber);
        let table = &mut self.tables[type_id.0 as usize];
        let params = table.view(view).params;
        let choice = table.own_choice(entry, params, &mut self.params, &mut self.work);
        choice.resource().cloned()
    }

    /// What the follower holds under a name if it stands at `position`.
    pub fn resource_at(
        &mut self,
        id: CursorId,
        entry: EntryId,
        position: Position,
    ) -> Option<Arc<Resource>> {
        let current = self.listed_resource(id, entry);
        let (table, view) = self.table_and_view(id);
        table
            .view(view)
            .resource_at(entry, position, current.as_ref())
    }

    /// All that is listed, by name.
    pub fn list(&mut self, id: CursorId) -> Vec<Arc<Resource>> {
        let head = self.head(id);
        self.resources_at(id, head)
    }

    /// All that is listed as a set that streams share, made once for each
    /// change; `wrap` is whether a `Resource` may be around what needs one.
    pub fn shared_list(&mut self, id: CursorId, wrap: bool) -> Arc<SharedList> {
        let type_id = self.subscribers.type_id(id.subscriber);
        let view_id = self.subscribers.cursor(id).view;
        let table = self.table_mut(type_id);
        if let Some(whole) = table.view_mut(view_id).full_list(wrap) {
            return whole;
        }
        let ttl = table.kind.ttl_in_sotw;
        let deliver = |resource| WireResource::for_sotw(resource, wrap, ttl);
        let whole = Arc::new(SharedList::new(
            self.list(id).into_iter().map(deliver).collect(),
        ));
        self.table_mut(type_id)
            .view_mut(view_id)
            .keep_full_list(wrap, &whole);
        whole
    }

    /// All that a follower at `position` holds, by name.
    pub fn resources_at(&mut self, id: CursorId, position: Position) -> Vec<Arc<Resource>> {
        let (table, view) = self.table_and_view(id);
        let entries: Vec<_> = table.view(view).since(0).map(|(_, entry)| entry).collect();
        self.work.entries += entries.len() as u64;
        let mut held: Vec<_> = entries
            .into_iter()
            .filter_map(|entry| self.resource_at(id, entry, position))
            .collect();
        held.sort_by(|a, b| a.name.cmp(&b.name));
        held
    }

    /// The names of which there is news behind `position`.
    #[must_use]
    pub fn changed_names(&self, id: CursorId, position: Position) -> Vec<Name> {
        let (table, view) = self.table_and_view(id);
        let since = table.view(view).since(position);
        since
            .map(|(_, entry)| table.entry(entry).name.clone())
            .collect()
    }

    /// Whether there is more behind `position` than [`Self::changed_names`] tell: a name
    /// that is gone and that nobody held was forgotten.
    #[must_use]
    pub fn has_forgotten_since(&self, id: CursorId, position: Position) -> bool {
        let (table, view) = self.table_and_view(id);
        table.view(view).has_forgotten_since(position)
    }

    /// Whether what is not listed does not exist.
    #[must_use]
    pub fn is_complete(&self, id: CursorId) -> bool {
        let (table, view) = self.table_and_view(id);
        table.is_complete(&table.view(view).scope)
    }

    /// What is news to a follower at `from`. Made once for all followers that
    /// stand there.
    pub fn view_changes(&mut self, id: CursorId, from: Position) -> Arc<ViewChanges> {
        let type_id = self.subscribers.type_id(id.subscriber);
        let view_id = self.subscribers.cursor(id).view;
        let view = self.table_mut(type_id).view_mut(view_id);
        if let Some(shared) = view.shared_changes(from) {
            return shared;
        }
        let mut changes = ViewChanges::new(from, view.head());
        let entries: Vec<_> = view.since(from).map(|(_, entry)| entry).collect();
        for entry in entries {
            self.work.entries += 1;
            let current = self.listed_resource(id, entry);
            let (table, _) = self.table_and_view(id);
            let view = table.view(view_id);
            let held = view.resource_at(entry, from, current.as_ref());
            changes.add(&table.entry(entry).name, held.as_ref(), current);
        }
        let changes = Arc::new(changes);
        self.table_mut(type_id)
            .view_mut(view_id)
            .share_changes(&changes);
        changes
    }

    /// Forgets lists that were made for many streams and that none asked for
    /// since this was last called: to be called now and then.
    pub fn drop_unused_lists(&mut self) {
        for table in &mut self.tables {
            table.drop_unused_lists();
        }
    }
}

/// The variant that gives way to another, or to nothing (TP2). One for all that
/// gives way to nothing is gone by its name.
pub(crate) fn replaced_variant(
    held: &Resource,
    new: Option<&Resource>,
) -> Option<Option<Constraints>> {
    let left = match new {
        Some(new) => held.name == new.name && held.constraints != new.constraints,
        None => held.constraints.is_some(),
    };
    left.then(|| held.constraints.clone())
}

/// Whether a follower that holds the one has nothing to learn from the other.
pub(super) fn same_listing(a: Option<&Arc<Resource>>, b: Option<&Arc<Resource>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => super::same_resource(a, b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::params::ParamsId;
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
}
