//! Replaces the contents of one name, and notifies the subscribers and views
//! for which that is a change.

use std::collections::BTreeMap;

use super::content::Content;
use super::cursor::same_listing;
use super::entry::EntryId;
use super::history::replaced_resources;
use super::subscribers::SubscriberId;
use super::table::Table;
use super::view::ViewId;
use super::{Database, TypeId, name_weight};
use crate::name::Name;
use crate::params::ParamsId;

impl Database {
    /// Drops the contents of a name: in a cache it is unknown again, otherwise
    /// it does not exist. Its subscribers and those of its views are notified.
    pub fn forget(&mut self, type_id: TypeId, name: &Name) {
        let default = self.table(type_id).default_content();
        self.put(type_id, name, default);
        self.wake_view_subscribers();
    }

    /// Replaces the contents of a name. Notifies its subscribers, those of the
    /// hosts and aliases that may resolve to another resource now, and the
    /// views that list the name. The subscribers of the views sleep until
    /// [`Self::wake_view_subscribers`]. Returns the old contents.
    pub(super) fn put(&mut self, type_id: TypeId, name: &Name, content: Content) -> Content {
        self.add_keys(type_id, &content);
        let table = self.table_mut(type_id);
        let entry = table.intern(name);
        let mut old_content = table.replace_content(entry, name, content);
        self.weigh_missing(type_id, entry, &old_content);

        self.record_in_views(type_id, entry, &mut old_content);
        self.notify_subscribers(type_id, entry, &mut old_content);
        for host in self.table_mut(type_id).move_domains(entry, &old_content) {
            self.notify_all_subscribers(type_id, host);
        }
        self.update_portless(type_id, entry);
        self.move_aliases(type_id, entry, &old_content);

        // Without contents, the entry may be in use no more.
        self.table_mut(type_id).remove_unused(entry);
        old_content
    }

    /// Adds the weight of a name to that of missing ones, or takes it out, if
    /// the name has lost its contents or has got some.
    fn weigh_missing(&mut self, type_id: TypeId, entry: EntryId, old_content: &Content) {
        let entry = self.table(type_id).entry(entry);
        let weight = entry.subscribers.len() * name_weight(&entry.name);
        let was_missing = old_content.resources().is_empty();
        match (was_missing, entry.content.resources().is_empty()) {
            (true, false) => self.missing_weight -= weight,
            (false, true) => self.missing_weight += weight,
            (true, true) | (false, false) => {}
        }
    }

    /// Adds the keys of new contents to those of their type. If one is new,
    /// views are split first: subscribers that differ in it must not share the
    /// log in which the change is recorded.
    fn add_keys(&mut self, type_id: TypeId, content: &Content) {
        let Some(new_keys) = content.keys() else {
            return;
        };
        let type_keys = &self.table(type_id).keys;
        if new_keys.iter().all(|key| type_keys.contains(key)) {
            return;
        }

        self.table_mut(type_id).keys = type_keys.union(new_keys);
        // A subscriber that moves to a copy of its view would not be woken for
        // the changes before.
        self.wake_view_subscribers();
        self.split_views(type_id);
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

    /// Records a change in each view that lists another resource under a name
    /// than it did with the old contents. [`Self::wake_view_subscribers`] wakes
    /// the subscribers of these views.
    fn record_in_views(&mut self, type_id: TypeId, entry: EntryId, old_content: &mut Content) {
        let table = &mut self.tables[type_id.0 as usize];
        let name = table.entry(entry).name.clone();
        for view_id in table.views_of_name(&name) {
            self.work.views += 1;
            let params = table.view(view_id).params;
            let old_choice =
                old_content.choose_variant(params, &mut self.params, &mut self.work.evaluations);
            let new_choice = table.own_choice(entry, params, &mut self.params, &mut self.work);
            let (old_resource, new_resource) = (old_choice.resource(), new_choice.resource());
            if same_listing(old_resource, new_resource) {
                continue;
            }

            let view = table.view_mut(view_id);
            view.record(entry, old_resource, new_resource);
            if !view.has_unannounced_changes {
                view.has_unannounced_changes = true;
                self.changed_views.push((type_id, view_id));
            }
        }
    }

    /// Marks a name dirty for the subscribers that get another choice than they
    /// did of the old contents. The choices are compared once for all
    /// subscribers with the same parameters.
    fn notify_subscribers(&mut self, type_id: TypeId, entry: EntryId, old_content: &mut Content) {
        let table = &mut self.tables[type_id.0 as usize];
        self.work.entries += 1;
        for params in table.entry(entry).subscribers.distinct_params() {
            let old_choice =
                old_content.choose_variant(params, &mut self.params, &mut self.work.evaluations);
            let new_choice = table.own_choice(entry, params, &mut self.params, &mut self.work);
            if old_choice.same_for_client(&new_choice) {
                continue;
            }
            for subscriber in table.entry(entry).subscribers.with_params(params) {
                self.work.subscribers += 1;
                self.subscribers.mark_dirty(subscriber, entry, params);
            }
        }
    }

    /// Replaces the aliases that a resource had with its old contents (S36).
    /// Notifies the subscribers of the old and the new ones; an alias that
    /// stays leads to new contents.
    fn move_aliases(&mut self, type_id: TypeId, owner: EntryId, old_content: &Content) {
        let new_aliases = aliases_of(&self.table(type_id).entry(owner).content);
        let old_aliases = aliases_of(old_content);

        for alias in &old_aliases {
            let Some(entry) = self.find(type_id, alias) else {
                continue;
            };
            self.notify_all_subscribers(type_id, entry);
            if !new_aliases.contains(alias) {
                self.table_mut(type_id).remove_owner(entry, owner);
            }
        }

        for alias in new_aliases
            .iter()
            .filter(|alias| !old_aliases.contains(alias))
        {
            let table = self.table_mut(type_id);
            let entry = table.intern(alias);
            table.add_owner(entry, owner);
            self.notify_all_subscribers(type_id, entry);
        }
    }

    /// Marks a name dirty for all its subscribers: it may resolve to another
    /// resource now.
    pub(super) fn notify_all_subscribers(&mut self, type_id: TypeId, entry: EntryId) {
        self.work.entries += 1;
        let table = &self.tables[type_id.0 as usize];
        for (subscriber, params) in table.entry(entry).subscribers.iter() {
            self.work.subscribers += 1;
            self.subscribers.mark_dirty(subscriber, entry, params);
        }
    }

    /// Splits all views of a type that got a new key: subscribers that differ
    /// in it need separate views. A new view begins as a copy, so nobody is
    /// notified.
    fn split_views(&mut self, type_id: TypeId) {
        let views = self.table(type_id).views();
        let ids: Vec<_> = views.map(|(id, _)| id).collect();
        for id in ids {
            self.split_view(type_id, id);
        }
    }

    /// Splits one view by the categories of its subscribers. The category of
    /// the first subscriber keeps the view, and every other category moves to a
    /// copy of it.
    fn split_view(&mut self, type_id: TypeId, id: ViewId) {
        let subscribers = &self.table(type_id).view(id).subscribers;
        let mut subscribers: Vec<_> = subscribers.iter().copied().collect();
        subscribers.sort_unstable();
        let Some(first) = subscribers.first() else {
            return;
        };

        let staying_category = self.category_of(*first);
        let mut leaving_subscribers: BTreeMap<ParamsId, Vec<SubscriberId>> = BTreeMap::new();
        for subscriber in subscribers {
            let category = self.category_of(subscriber);
            if category != staying_category {
                leaving_subscribers
                    .entry(category)
                    .or_default()
                    .push(subscriber);
            }
        }

        let view = self.table_mut(type_id).view_mut(id);
        view.params = staying_category;
        // Not in slices: no change may be recorded until every subscriber is in
        // its own view. A key is new once in the life of a type.
        let copied_items = leaving_subscribers.len() * view.items();
        self.work.entries += copied_items as u64;
        for (category, subscribers) in leaving_subscribers {
            self.move_to_new_view(type_id, id, category, &subscribers);
        }
    }

    /// Moves subscribers of one category from a view to a copy of it, with
    /// their cursors and the positions that these pinned.
    fn move_to_new_view(
        &mut self,
        type_id: TypeId,
        old_view: ViewId,
        category: ParamsId,
        subscribers: &[SubscriberId],
    ) {
        let mut pins = Vec::new();
        for subscriber in subscribers {
            pins.extend(self.subscribers.pins(*subscriber, old_view));
        }

        let table = self.table_mut(type_id);
        let copy = table
            .view_mut(old_view)
            .split_off(category, subscribers, &pins);
        let new_view = table.add_view(copy);
        for subscriber in subscribers {
            self.subscribers
                .move_cursors(*subscriber, old_view, new_view);
        }
    }
}

impl Table {
    /// Replaces the contents of an entry, which has this name, and updates the
    /// counts, tombstones and history that depend on them. Returns the old
    /// contents.
    fn replace_content(&mut self, id: EntryId, name: &Name, content: Content) -> Content {
        let entry = self.entry_mut(id);
        if let Some(resource) = content.resources().first() {
            // The same text, but in memory that the resource keeps anyway.
            entry.name = resource.name.clone();
        }
        let old = std::mem::replace(&mut entry.content, content);
        entry.content.copy_choices(&old);

        let new = &self.entry(id).content;
        let existed = !old.resources().is_empty();
        let exists = !new.resources().is_empty();
        let replaced_resources = replaced_resources(&self.kind, &old, new);
        self.history.remember_all(replaced_resources);
        if let Some(entry) = self.entries.get(id.0)
            && self.kind.whole_set
            && !self.is_cache
        {
            self.past.remember(name, &old, &entry.content);
        }

        if exists && !existed {
            self.len += 1;
            self.tombstones.remove(name);
        } else if existed && !exists {
            self.len -= 1;
            self.tombstones.add(name);
        }
        old
    }
}

/// Returns the aliases of all variants, sorted, without repetition. An alias
/// that is the name of its resource is left out.
fn aliases_of(content: &Content) -> Vec<Name> {
    let mut aliases = Vec::new();
    for resource in content.resources() {
        let other_names = resource
            .aliases
            .iter()
            .filter(|alias| **alias != resource.name);
        aliases.extend(other_names.cloned());
    }
    aliases.sort();
    aliases.dedup();
    aliases
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Choice, Scope, Work};
    use super::*;
    use crate::change::Change;
    use crate::params::Params;
    use crate::resource::Resource;

    fn put(name: &str, aliases: &[&str], body: &'static str) -> Change {
        let resource = Resource {
            aliases: aliases.iter().map(|alias| Name::new(alias)).collect(),
            ..Resource::new(name.into(), body.into())
        };
        Change::Upsert("t".into(), Arc::new(resource))
    }

    fn work_of(db: &mut Database, change: Change) -> (u64, u64, u64) {
        let Work {
            entries,
            views,
            subscribers,
            ..
        } = db.work();
        db.apply(vec![change]).unwrap();
        let work = db.work();
        (
            work.entries - entries,
            work.views - views,
            work.subscribers - subscribers,
        )
    }

    #[test]
    fn s36_a_change_costs_the_subscribers_of_the_aliases() {
        let mut db = Database::new();
        let type_id = db.type_id(&"t".into());
        let stream = db.open_stream();
        let [one, two] = [(); 2].map(|()| db.add_subscriber(stream, type_id, ParamsId::EMPTY));
        for (subscriber, name) in [(one, "a"), (one, "b"), (two, "b"), (two, "c")] {
            db.subscribe(subscriber, &name.into(), ParamsId::EMPTY);
        }
        // The name itself, and each alias.
        let work = work_of(&mut db, put("a", &["a", "b", "c"], "1"));
        assert_eq!(work, (3, 0, 4));
        let dirty = [one, two].map(|id| db.take_dirty(id, usize::MAX).len());
        assert_eq!(dirty, [2, 2]);
        // An alias that goes is notified as well, and then no more.
        let work = work_of(&mut db, put("a", &["b"], "2"));
        assert_eq!(work, (3, 0, 4));
        let work = work_of(&mut db, put("a", &["b"], "3"));
        assert_eq!(work, (2, 0, 3));
        let choices = ["a", "b", "c"].map(|name| {
            let choice = db.choose_name(type_id, &name.into(), ParamsId::EMPTY);
            choice.resource().is_some()
        });
        assert_eq!(choices, [true, true, false]);
        db.apply(vec![Change::Remove("t".into(), "a".into())])
            .unwrap();
        assert_eq!(db.memory_counts(type_id).names, 3);
        assert_eq!(db.check(), Ok(()));
    }

    #[test]
    fn tp2_a_new_key_costs_a_copy_of_the_view_for_each_category_but_one() {
        let mut db = Database::new();
        let type_id = db.type_id(&"t".into());
        db.apply(["a", "b", "c", "d"].map(|name| put(name, &[], "1")).into())
            .unwrap();
        let stream = db.open_stream();
        let cursors = ["a", "b", "c", "a"].map(|env| {
            let params = db.intern_params(Params::new([("env", env)]).unwrap());
            let subscriber = db.add_subscriber(stream, type_id, params);
            db.open_cursor(subscriber, &Scope::All)
        });
        assert_eq!(db.memory_counts(type_id).views, 1);
        let variant = Resource {
            constraints: Some("env=b".parse().unwrap()),
            ..Resource::new("v".into(), "1".into())
        };
        let work = work_of(&mut db, Change::Upsert("t".into(), Arc::new(variant)));
        // Two copies of four items, and the name; one of three views lists it.
        assert_eq!(work, (2 * 4 + 1, 3, 1));
        assert_eq!(db.memory_counts(type_id).views, 3);
        let listed = cursors.map(|cursor| db.list(cursor).len());
        assert_eq!(listed, [4, 5, 4, 4]);
        assert_eq!(db.check(), Ok(()));
    }

    #[test]
    fn a_name_that_is_forgotten_is_unknown_in_a_cache_and_absent_elsewhere() {
        for (mut db, expected) in [
            (Database::cache(), Choice::Unknown),
            (Database::new(), Choice::Absent),
        ] {
            let type_id = db.type_id(&"t".into());
            db.apply(vec![put("a", &[], "1")]).unwrap();
            let stream = db.open_stream();
            let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
            let entry = db.subscribe(subscriber, &"a".into(), ParamsId::EMPTY);
            let cursor = db.open_cursor(subscriber, &Scope::All);
            db.take_woken_streams();
            db.forget(type_id, &"a".into());
            assert_eq!(db.choose(type_id, entry, ParamsId::EMPTY), expected);
            assert_eq!(db.list(cursor), []);
            assert_eq!(db.take_woken_streams(), [stream]);
            assert_eq!(db.len(type_id), 0);
        }
    }
}
