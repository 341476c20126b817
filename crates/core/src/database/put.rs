//! Gives one name other contents, and notifies the subscribers and views that
//! they concern.

use std::collections::BTreeMap;

use super::content::Content;
use super::cursor::same_listing;
use super::entry::EntryId;
use super::history::replaced_resources;
use super::{Database, TypeId};
use crate::name::Name;

impl Database {
    /// Drops the contents of a name: in a cache, it is unknown again.
    pub fn forget(&mut self, type_id: TypeId, name: &Name) {
        let default = self.table(type_id).default_content();
        self.put(type_id, name, default);
        self.wake_view_subscribers();
    }

    /// Replaces the contents of a name and notifies its subscribers and views;
    /// [`Self::wake_view_subscribers`] wakes the subscribers of views. Returns
    /// the old contents.
    pub(super) fn put(&mut self, type_id: TypeId, name: &Name, content: Content) -> Content {
        if let Some(keys) = content.keys()
            && keys
                .iter()
                .any(|key| !self.table(type_id).keys.contains(key))
        {
            let keys = self.table(type_id).keys.union(keys);
            self.table_mut(type_id).keys = keys;
            self.wake_view_subscribers();
            self.split_views(type_id);
        }
        let table = self.table_mut(type_id);
        let entry = table.intern(name);
        let new_aliases = aliases(&content);
        if let Some(resource) = content.resources().first() {
            // The same text, but in memory that the resource keeps anyway.
            table.entry_mut(entry).name = resource.name.clone();
        }
        let held = &mut table.entry_mut(entry).content;
        let mut old = std::mem::replace(held, content);
        held.copy_choices(&old);
        let (was, is) = (exists(&old), exists(held));
        let held = &table.entry(entry).content;
        let replaced = replaced_resources(&table.kind, &old, held);
        table.history.remember_all(replaced);
        match (was, is) {
            (false, true) => {
                table.len += 1;
                table.tombstones.remove(name);
            }
            (true, false) => {
                table.len -= 1;
                table.tombstones.add(name);
            }
            _ => {}
        }
        self.notify_views(type_id, entry, &mut old);
        self.notify_subscribers(type_id, entry, &mut old);
        for host in self.table_mut(type_id).move_domains(entry, &old) {
            self.notify_all_subscribers(type_id, host);
        }
        self.update_portless(type_id, entry);
        self.move_aliases(type_id, entry, aliases(&old), new_aliases);
        self.table_mut(type_id).remove_unused(entry);
        old
    }

    /// Wakes the subscribers of views with changes, once each, however many
    /// changes there were.
    pub(super) fn wake_view_subscribers(&mut self) {
        for (type_id, view_id) in std::mem::take(&mut self.changed_views) {
            let view = self.tables[type_id.0 as usize].view_mut(view_id);
            view.has_unannounced_changes = false;
            for subscriber in &view.subscribers {
                self.work.subscribers += 1;
                self.subscribers.wake(*subscriber);
            }
        }
    }

    fn notify_views(&mut self, type_id: TypeId, entry: EntryId, old: &mut Content) {
        let table = &mut self.tables[type_id.0 as usize];
        let name = table.entry(entry).name.clone();
        for view_id in table.views_of_name(&name) {
            self.work.views += 1;
            let params = table.view(view_id).params;
            let before = old.choose(params, &mut self.params, &mut self.work.evaluations);
            let after = table.own_choice(entry, params, &mut self.params, &mut self.work);
            let (before, after) = (before.resource(), after.resource());
            if same_listing(before, after) {
                continue;
            }
            let view = table.view_mut(view_id);
            view.record(entry, before, after);
            if !std::mem::replace(&mut view.has_unannounced_changes, true) {
                self.changed_views.push((type_id, view_id));
            }
        }
    }

    fn notify_subscribers(&mut self, type_id: TypeId, entry: EntryId, old: &mut Content) {
        let table = &mut self.tables[type_id.0 as usize];
        self.work.entries += 1;
        for params in table.entry(entry).subscribers.params() {
            let before = old.choose(params, &mut self.params, &mut self.work.evaluations);
            let after = table.own_choice(entry, params, &mut self.params, &mut self.work);
            if before.same_for_client(&after) {
                continue;
            }
            for subscriber in table.entry(entry).subscribers.with_params(params) {
                self.work.subscribers += 1;
                self.subscribers.mark_dirty(subscriber, entry, params);
            }
        }
    }

    /// Replaces the aliases of a resource (S36), and notifies the subscribers
    /// of the aliases.
    fn move_aliases(&mut self, type_id: TypeId, owner: EntryId, old: Vec<Name>, new: Vec<Name>) {
        for alias in &old {
            let Some(entry) = self.find(type_id, alias) else {
                continue;
            };
            self.notify_all_subscribers(type_id, entry);
            if !new.contains(alias) {
                self.table_mut(type_id).remove_owner(entry, owner);
            }
        }
        for alias in new.iter().filter(|alias| !old.contains(alias)) {
            let table = self.table_mut(type_id);
            let entry = table.intern(alias);
            table.add_owner(entry, owner);
            self.notify_all_subscribers(type_id, entry);
        }
    }

    /// Notifies all subscribers of a name: it may resolve to another resource
    /// now.
    pub(super) fn notify_all_subscribers(&mut self, type_id: TypeId, alias: EntryId) {
        self.work.entries += 1;
        let subscribers: Vec<_> = self
            .table(type_id)
            .entry(alias)
            .subscribers
            .iter()
            .collect();
        for (subscriber, params) in subscribers {
            self.work.subscribers += 1;
            self.subscribers.mark_dirty(subscriber, alias, params);
        }
    }

    /// Splits views after the type got a new key: subscribers that differ in it
    /// need separate views. Each begins as a copy, so nobody is notified.
    fn split_views(&mut self, type_id: TypeId) {
        let table = &mut self.tables[type_id.0 as usize];
        let ids: Vec<_> = table.views().map(|(id, _)| id).collect();
        for id in ids {
            let Some(first) = table.view(id).subscribers.iter().min().copied() else {
                continue;
            };
            let stays = self
                .params
                .project(self.subscribers.params(first), &table.keys);
            let mut leaving: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for subscriber in &table.view(id).subscribers {
                let params = self.subscribers.params(*subscriber);
                let category = self.params.project(params, &table.keys);
                if category != stays {
                    leaving.entry(category).or_default().push(*subscriber);
                }
            }
            table.view_mut(id).params = stays;
            // Not in slices: no change may be recorded until every subscriber
            // is in its own view. A key is new once in the life of a type.
            self.work.entries += (leaving.len() * table.view(id).items()) as u64;
            for (category, subscribers) in leaving {
                let positions: Vec<_> = subscribers
                    .iter()
                    .flat_map(|s| self.subscribers.pins(*s, id))
                    .collect();
                let part = table
                    .view_mut(id)
                    .split_off(category, &subscribers, &positions);
                let new_id = table.add_view(part);
                for subscriber in subscribers {
                    self.subscribers.change_view(subscriber, id, new_id);
                }
            }
        }
    }
}

fn exists(content: &Content) -> bool {
    !content.resources().is_empty()
}

fn aliases(content: &Content) -> Vec<Name> {
    let mut all: Vec<_> = content
        .resources()
        .iter()
        .flat_map(|r| r.aliases.iter().filter(|a| **a != r.name).cloned())
        .collect();
    all.sort();
    all.dedup();
    all
}
