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
    /// Drops what is known of a name: in a cache, nothing is known of it again.
    pub fn forget(&mut self, type_id: TypeId, name: &Name) {
        let blank = self.table(type_id).default_content();
        self.put(type_id, name, blank);
        self.wake_view_subscribers();
    }

    /// Gives a name its contents and tells those whom it concerns; followers of
    /// views hear of it with [`Self::wake_view_subscribers`]. Returns what it held.
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

    /// Wakes the followers of the views that were told of changes, once each,
    /// however many changes there were.
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

    /// Moves the names under which a resource also answers (S36), and tells
    /// those who ask for one of them.
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

    /// Tells all who ask for a name, for something else may answer to it now.
    pub(super) fn notify_all_subscribers(&mut self, type_id: TypeId, alias: EntryId) {
        self.work.entries += 1;
        let asking: Vec<_> = self
            .table(type_id)
            .entry(alias)
            .subscribers
            .iter()
            .collect();
        for (subscriber, params) in asking {
            self.work.subscribers += 1;
            self.subscribers.mark_dirty(subscriber, alias, params);
        }
    }

    /// A key that did not matter before matters now: followers that differ in
    /// it need views of their own. Each begins as a copy, so nobody hears of it.
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
            // Not in slices: until the last follower is with its own kind, no
            // change may be told. A key is new once in the life of a type.
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
