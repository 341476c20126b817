//! Proof of the database's invariants, for tests and simulation.

use super::hosts::own_domains;
use super::table::Table;
use super::view::ViewId;
use super::{Database, EntryId, Position, TypeId, name_weight};
use crate::hosts::HostName;
use crate::name::Name;

impl Database {
    /// Checks every invariant; the whole database is visited.
    ///
    /// # Errors
    /// Says which invariant does not hold.
    pub fn check(&mut self) -> Result<(), String> {
        for index in 0..self.tables.len() {
            self.check_names(TypeId(index as u32))?;
            self.check_hosts(TypeId(index as u32))?;
            self.check_views(TypeId(index as u32))?;
        }
        self.check_missing_weight()?;
        self.check_pins()
    }

    /// Checks that the counted weight is that of the names without contents
    /// that are subscribed to.
    fn check_missing_weight(&self) -> Result<(), String> {
        let entries = self.tables.iter().flat_map(Table::entries);
        let missing_entries = entries.filter(|(_, entry)| entry.content.resources().is_empty());
        let weights =
            missing_entries.map(|(_, entry)| entry.subscribers.len() * name_weight(&entry.name));
        let weight: usize = weights.sum();
        match weight == self.missing_weight {
            true => Ok(()),
            false => Err(format!(
                "missing names weigh {weight}, counted {}",
                self.missing_weight
            )),
        }
    }

    /// Checks that every entry is found by its name, is in use, and is an alias
    /// of its owners, and that names with contents are counted.
    fn check_names(&self, type_id: TypeId) -> Result<(), String> {
        let table = self.table(type_id);
        let mut name_count = 0;
        for (id, entry) in table.entries() {
            let name = &entry.name;
            if table.find(name.as_str()) != Some(id) {
                return Err(format!("{name}: not found under its name"));
            }
            // A completion frees unused entries only when it visits them.
            if !table.is_completing && !table.is_used(id, entry) {
                return Err(format!("{name}: not in use"));
            }
            check_owners(table, id, name)?;
            name_count += usize::from(!entry.content.resources().is_empty());
        }

        if name_count != table.len {
            return Err(format!(
                "{}: {name_count} names, {} counted",
                table.url, table.len
            ));
        }
        Ok(())
    }

    /// Checks that every domain leads to its virtual host, and that the index
    /// has as many domains and requested hosts as there are.
    fn check_hosts(&self, type_id: TypeId) -> Result<(), String> {
        let table = self.table(type_id);
        let Some(hosts) = &table.hosts else {
            return Ok(());
        };
        let (mut domain_count, mut requested_count) = (0, 0);
        for (id, entry) in table.entries() {
            let Some(HostName { route, .. }) = HostName::split(entry.name.as_str()) else {
                continue;
            };
            requested_count += usize::from(!entry.subscribers.is_empty());
            for domain in own_domains(entry) {
                domain_count += 1;
                if !hosts.owners(&table.entries, route, domain).contains(&id) {
                    return Err(format!("{}: not found by {domain}", entry.name));
                }
            }
        }

        if hosts.counts() != (domain_count, requested_count) {
            return Err(format!(
                "{domain_count} domains and {requested_count} requested hosts, {:?} in the index",
                hosts.counts()
            ));
        }
        Ok(())
    }

    /// Checks that every view has subscribers, lists its members, and has the
    /// sum of their fingerprints.
    fn check_views(&mut self, type_id: TypeId) -> Result<(), String> {
        let table = &mut self.tables[type_id.0 as usize];
        let ids: Vec<_> = table.views().map(|(id, _)| id).collect();
        for id in ids {
            let scope = table.view(id).scope.clone();
            let params = table.view(id).params;
            let members = table.members(&scope, params, &mut self.params, &mut self.work);
            let view = table.view(id);

            if view.subscribers.is_empty() {
                return Err(format!("{scope:?}: a view without subscribers"));
            }

            let has_all = members.iter().all(|(entry, _)| view.has_entry(*entry));
            if view.len() != members.len() || !has_all {
                return Err(format!("{scope:?}: the view does not list its members"));
            }

            let fingerprints = members.iter().map(|(_, member)| member.fingerprint());
            let sum = fingerprints.fold(0, u128::wrapping_add);
            if view.fingerprint_sum() != sum {
                return Err(format!(
                    "{scope:?}: the fingerprint sum is not that of the members"
                ));
            }
        }
        Ok(())
    }

    /// Checks that the pins of every view are those of its cursors.
    fn check_pins(&self) -> Result<(), String> {
        for (index, table) in self.tables.iter().enumerate() {
            for (id, view) in table.views() {
                let pins = view.pins();
                let view_positions =
                    pins.flat_map(|(position, count)| std::iter::repeat_n(position, count));
                let cursor_positions = self.pins_of_cursors(TypeId(index as u32), id);
                if !view_positions.eq(cursor_positions) {
                    return Err(format!(
                        "{:?}: the view's pins are not its cursors'",
                        view.scope
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the positions that the cursors in a view have pinned, sorted. A
    /// position with several pins is repeated.
    fn pins_of_cursors(&self, type_id: TypeId, view: ViewId) -> Vec<Position> {
        let cursors = self.subscribers.all_cursors();
        let view_cursors = cursors
            .filter(|(_, cursor_type, cursor)| *cursor_type == type_id && cursor.view == view)
            .map(|(_, _, cursor)| cursor);
        let mut pins: Vec<_> = view_cursors
            .flat_map(|cursor| &cursor.pins)
            .copied()
            .collect();
        pins.sort_unstable();
        pins
    }
}

/// Checks that a name is an alias of each of its owners.
fn check_owners(table: &Table, id: EntryId, name: &Name) -> Result<(), String> {
    for owner in table.owners(id) {
        let owner = table.entry(*owner);
        let mut resources = owner.content.resources().iter();
        if !resources.any(|resource| resource.aliases.contains(name)) {
            return Err(format!("{name}: not an alias of {}", owner.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Scope;
    use super::*;
    use crate::change::Change;
    use crate::facts::Facts;
    use crate::hosts::{Domain, Domains};
    use crate::kind::VHDS;
    use crate::name::Glob;
    use crate::params::ParamsId;
    use crate::resource::Resource;

    const NAME: &str = "xdstp://x/t/g/a";

    fn member() -> Arc<Resource> {
        Arc::new(Resource {
            aliases: vec!["alias".into()].into(),
            ..Resource::new(NAME.into(), "x".into())
        })
    }

    /// A type with one name and its alias, and a type with one virtual host.
    /// Both have views with cursors at several positions.
    fn sound() -> (Database, [TypeId; 2]) {
        let mut db = Database::new();
        let types = ["t", VHDS].map(|url| db.type_id(&url.into()));
        let host = Resource {
            facts: Some(Box::new(Facts {
                domains: Domains::new(["a.com", "*.a.com"]),
                ..Facts::default()
            })),
            ..Resource::new("r/h".into(), "x".into())
        };
        db.apply(vec![
            Change::Upsert("t".into(), member()),
            Change::Upsert(VHDS.into(), Arc::new(host)),
        ])
        .unwrap();
        let stream = db.open_stream();
        let glob = Glob::of(&NAME.into()).map(Scope::Glob).unwrap();
        for (nth, type_id) in types.into_iter().enumerate() {
            let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
            for scope in [&Scope::All, &glob] {
                let cursor = db.open_cursor(subscriber, scope);
                db.pin(cursor, nth as u64);
            }
            let host = Name::new("r/a.com");
            db.subscribe(subscriber, &host, ParamsId::EMPTY);
        }
        assert_eq!(db.check(), Ok(()));
        (db, types)
    }

    fn first_view(db: &mut Database, type_id: TypeId) -> ViewId {
        let view = db.table(type_id).views().next();
        view.map(|(id, _)| id).unwrap()
    }

    fn entry(db: &Database, type_id: TypeId, name: &str) -> EntryId {
        db.find(type_id, &name.into()).unwrap()
    }

    /// Breaks a sound database, and returns the fault that is found.
    fn fault(breaks: impl FnOnce(&mut Database, TypeId, TypeId)) -> String {
        let (mut db, [plain, hosts]) = sound();
        breaks(&mut db, plain, hosts);
        db.check().expect_err("a broken invariant")
    }

    #[test]
    fn a_name_that_is_kept_wrongly_is_found() {
        let renamed = fault(|db, plain, _| {
            let id = entry(db, plain, NAME);
            db.table_mut(plain).entry_mut(id).name = "other".into();
        });
        assert!(renamed.contains("not found under its name"));
        let unused = fault(|db, plain, _| {
            db.table_mut(plain).intern(&"unused".into());
        });
        assert!(unused.contains("not in use"));
        let owned = fault(|db, plain, _| {
            let id = entry(db, plain, NAME);
            db.table_mut(plain).add_owner(id, id);
        });
        assert!(owned.contains("not an alias"));
        let counted = fault(|db, plain, _| db.table_mut(plain).len += 1);
        assert!(counted.contains("1 names, 2 counted"));
    }

    #[test]
    fn a_table_that_is_being_completed_may_have_unused_names() {
        let (mut db, [plain, _]) = sound();
        db.table_mut(plain).intern(&"unused".into());
        db.table_mut(plain).is_completing = true;
        assert_eq!(db.check(), Ok(()));
    }

    #[test]
    fn a_wrong_index_of_domains_is_found() {
        let lost = fault(|db, _, hosts| {
            let id = entry(db, hosts, "r/h");
            let index = db.table_mut(hosts).hosts.as_mut().unwrap();
            index.remove("r", Domain::of("a.com"), id);
        });
        assert!(lost.contains("not found by a.com"));
        let extra = fault(|db, _, hosts| {
            let id = entry(db, hosts, "r/h");
            let index = db.table_mut(hosts).hosts.as_mut().unwrap();
            index.insert("r", Domain::of("b.com"), id);
        });
        assert!(extra.contains("(3, 1) in the index"));
        let unrequested = fault(|db, _, hosts| {
            let id = entry(db, hosts, "r/a.com");
            let index = db.table_mut(hosts).hosts.as_mut().unwrap();
            index.remove_requested("r/a.com", id);
        });
        assert!(unrequested.contains("(2, 0) in the index"));
    }

    #[test]
    fn a_view_that_differs_from_its_members_is_found() {
        let unseen = fault(|db, plain, _| {
            let view = first_view(db, plain);
            let view = db.table_mut(plain).view_mut(view);
            view.subscribers.clear();
        });
        assert!(unseen.contains("without subscribers"));
        let twice = fault(|db, plain, _| {
            let (view, id) = (first_view(db, plain), entry(db, plain, NAME));
            let view = db.table_mut(plain).view_mut(view);
            view.record(id, None, Some(&member()));
        });
        assert!(twice.contains("does not list its members"));
        let forgotten = fault(|db, plain, _| {
            let (view, id) = (first_view(db, plain), entry(db, plain, NAME));
            db.table_mut(plain).view_mut(view).forget(id);
        });
        assert!(forgotten.contains("does not list its members"));
        let outdated = fault(|db, plain, _| {
            let (view, id) = (first_view(db, plain), entry(db, plain, NAME));
            let other = Arc::new(Resource::new(NAME.into(), "y".into()));
            let view = db.table_mut(plain).view_mut(view);
            view.record(id, Some(&member()), Some(&other));
        });
        assert!(outdated.contains("fingerprint sum"));
    }

    #[test]
    fn a_pin_without_a_cursor_is_found() {
        let pinned = fault(|db, _, hosts| {
            let view = first_view(db, hosts);
            db.table_mut(hosts).view_mut(view).pin(1);
        });
        assert!(pinned.contains("the view's pins are not its cursors'"));
        let unpinned = fault(|db, plain, _| {
            let view = first_view(db, plain);
            db.table_mut(plain).view_mut(view).unpin(0);
        });
        assert!(unpinned.contains("the view's pins are not its cursors'"));
    }
}
