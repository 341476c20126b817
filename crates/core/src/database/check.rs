//! Proof of the database's invariants, for tests and simulation.

use super::hosts::own_domains;
use super::{Database, TypeId};
use crate::hosts::HostName;

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
        self.check_cursors()
    }

    /// Checks that every entry is found by its name, is in use, and is an alias
    /// of its owners, and that names with contents are counted.
    fn check_names(&self, type_id: TypeId) -> Result<(), String> {
        let table = self.table(type_id);
        let mut with_contents = 0;
        for (id, entry) in table.entries() {
            let name = &entry.name;
            if table.find(name.as_str()) != Some(id) {
                return Err(format!("{name}: not found under its name"));
            }
            with_contents += usize::from(!entry.content.resources().is_empty());
            if !table.is_completing && !table.is_used(id, entry) {
                return Err(format!("{name}: not in use"));
            }
            for owner in table.owners(id) {
                let owner = table.entry(*owner);
                let mut resources = owner.content.resources().iter();
                if !resources.any(|r| r.aliases.contains(name)) {
                    return Err(format!("{name}: not an alias of {}", owner.name));
                }
            }
        }
        if with_contents != table.len {
            return Err(format!(
                "{}: {with_contents} names, {} counted",
                table.url, table.len
            ));
        }
        Ok(())
    }

    /// Checks that every domain leads to its virtual host, and that the index
    /// has no other domains.
    fn check_hosts(&self, type_id: TypeId) -> Result<(), String> {
        let table = self.table(type_id);
        let Some(hosts) = &table.hosts else {
            return Ok(());
        };
        let (mut domains, mut requested) = (0, 0);
        for (id, entry) in table.entries() {
            let Some(HostName { route, .. }) = HostName::split(entry.name.as_str()) else {
                continue;
            };
            requested += usize::from(!entry.subscribers.is_empty());
            for domain in own_domains(entry) {
                domains += 1;
                if !hosts.owners(&table.entries, route, domain).contains(&id) {
                    return Err(format!("{}: not found by {domain}", entry.name));
                }
            }
        }
        match hosts.counts() == (domains, requested) {
            true => Ok(()),
            false => Err(format!(
                "{domains} domains and {requested} requested hosts, {:?} in the index",
                hosts.counts()
            )),
        }
    }

    /// Checks that every view has subscribers, lists its members, and has the
    /// sum of their fingerprints.
    fn check_views(&mut self, type_id: TypeId) -> Result<(), String> {
        let table = &mut self.tables[type_id.0 as usize];
        let ids: Vec<_> = table.views().map(|(id, _)| id).collect();
        for id in ids {
            let (scope, params) = (table.view(id).scope.clone(), table.view(id).params);
            let members = table.members(&scope, params, &mut self.params, &mut self.work);
            let view = table.view(id);
            if view.subscribers.is_empty() {
                return Err(format!("{scope:?}: a view without subscribers"));
            }
            if view.len() != members.len() || members.iter().any(|(e, _)| !view.has_entry(*e)) {
                return Err(format!("{scope:?}: the view does not list its members"));
            }
            let sum = members
                .iter()
                .fold(0u128, |sum, (_, r)| sum.wrapping_add(r.fingerprint()));
            if view.fingerprint_sum() != sum {
                return Err(format!(
                    "{scope:?}: the fingerprint sum is not that of the members"
                ));
            }
        }
        Ok(())
    }

    /// Checks that the pins of every view are those of its cursors.
    fn check_cursors(&self) -> Result<(), String> {
        for (type_index, table) in self.tables.iter().enumerate() {
            for (id, view) in table.views() {
                let mut pins: Vec<_> = self
                    .subscribers
                    .all_cursors()
                    .filter(|(_, t, cursor)| t.0 as usize == type_index && cursor.view == id)
                    .flat_map(|(_, _, cursor)| cursor.pins.iter().copied())
                    .collect();
                pins.sort_unstable();
                let counted = view
                    .pins()
                    .flat_map(|(position, n)| std::iter::repeat_n(position, n));
                if !counted.eq(pins.iter().copied()) {
                    return Err(format!(
                        "{:?}: the view's pins are not its cursors'",
                        view.scope
                    ));
                }
            }
        }
        Ok(())
    }
}
