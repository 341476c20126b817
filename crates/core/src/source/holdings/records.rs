//! The records: what is held name by name, and which names of a view have some.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use super::{Held, Holdings, State};
use crate::database::Database;
use crate::name::Name;

/// Rejected versions of one variant that are remembered: a peer that rejects all
/// that it is sent does not make us hold more. With one more, only that is.
const VERSIONS: usize = 4;

impl Holdings {
    fn hash(&self, name: &Name) -> u64 {
        self.hasher.hash_one(name.as_str())
    }

    pub(in crate::source) fn recorded(&self, name: &Name) -> impl Iterator<Item = &Held> {
        let same = self.records.iter_hash(self.hash(name));
        same.filter(move |held| held.resource.name == *name)
    }

    fn insert(&mut self, held: Held) {
        self.count(&held, true);
        let hash = self.hash(&held.resource.name);
        let hasher = &self.hasher;
        self.records.insert_unique(hash, held, |held| {
            hasher.hash_one(held.resource.name.as_str())
        });
    }

    /// Drops the records of a name that are not to be kept.
    fn drop_records(&mut self, name: &Name, mut keep: impl FnMut(&Held) -> bool) {
        let hash = self.hash(name);
        loop {
            let is_gone = |held: &Held| held.resource.name == *name && !keep(held);
            let Ok(found) = self.records.find_entry(hash, is_gone) else {
                break;
            };
            let (held, _) = found.remove();
            self.count(&held, false);
        }
        if self.records.len() < self.records.capacity() / 4 {
            let hasher = &self.hasher;
            self.records
                .shrink_to_fit(|held| hasher.hash_one(held.resource.name.as_str()));
        }
    }

    fn count(&mut self, held: &Held, comes: bool) {
        let print = match held.is_accepted() {
            true => held.resource.fingerprint(),
            false => 0,
        };
        let unknown = usize::from(held.is_unknown());
        match comes {
            true => {
                self.sum = self.sum.wrapping_add(print);
                self.unknown += unknown;
            }
            false => {
                self.sum = self.sum.wrapping_sub(print);
                self.unknown -= unknown;
            }
        }
    }

    /// Sets what is held of a name by name, if it is not so already.
    pub(in crate::source) fn except(&mut self, db: &mut Database, name: &Name) {
        if self.rules(name).is_some() {
            let held = self.now(db, name);
            self.drop_records(name, |_| false);
            self.exceptions.insert(name.clone());
            held.into_iter().for_each(|held| self.insert(held));
        }
    }

    /// The records of a name tell the truth, whatever view covers it now.
    pub(in crate::source) fn keep_exception(&mut self, name: &Name) {
        if self.covering(name).is_some() {
            self.exceptions.insert(name.clone());
        }
    }

    /// These and nothing else are the records of a name, which is made an
    /// exception, or was one.
    pub(in crate::source) fn replace_records(&mut self, name: &Name, held: Option<Held>) {
        if !self.records.is_empty() {
            self.drop_records(name, |_| false);
        }
        held.into_iter().for_each(|held| self.insert(held));
    }

    /// The records of these names tell the truth, whatever view covers them.
    pub(in crate::source) fn add_exceptions(&mut self, mut names: BTreeSet<Name>) {
        self.exceptions.append(&mut names);
    }

    /// Records something that the peer holds, or may hold. Of what it rejected it
    /// may have taken any version, and uses what that refers to (S17, S81).
    pub(in crate::source) fn record(&mut self, db: &mut Database, held: Held) {
        let name = held.resource.name.clone();
        self.except(db, &name);
        let many = self.recorded(&name).filter(|other| other.is_like(&held));
        let many = many.count() >= VERSIONS;
        self.drop_records(&name, |other| {
            let same = other.resource.version == held.resource.version;
            let takes_place = same || many || held.state != State::Rejected;
            !(takes_place && other.is_like(&held))
        });
        self.insert(held);
    }

    /// Changes the records of a name as a response does that was accepted.
    pub(in crate::source) fn change(
        &mut self,
        db: &mut Database,
        name: &Name,
        by: impl FnOnce(&mut Vec<Held>),
    ) {
        self.except(db, name);
        let mut held: Vec<Held> = self.recorded(name).cloned().collect();
        by(&mut held);
        self.drop_records(name, |_| false);
        held.into_iter().for_each(|held| self.insert(held));
    }

    /// Forgets all records of a name that no view covers.
    pub(in crate::source) fn forget(&mut self, name: &Name) {
        if self.covering(name).is_none() {
            self.exceptions.remove(name);
            self.drop_records(name, |_| false);
        }
    }

    /// Drops exceptions that have become the rule again. Only right while
    /// nothing is without an answer: then position and truth are the same
    /// thing. `keeps` tells names that stay exceptions for another reason.
    pub(in crate::source) fn tidy(
        &mut self,
        db: &mut Database,
        keeps: impl Fn(&Database, &Name) -> bool,
    ) {
        if !self.flights.is_empty() {
            return;
        }
        let mut exceptions = std::mem::take(&mut self.exceptions);
        let mut ruled = Vec::new();
        exceptions.retain(|name| {
            if keeps(db, name) {
                return true;
            }
            let view = self.covering(name);
            let rule = view.and_then(|view| view.rule(db, self.type_id, name));
            let mut held = self.recorded(name);
            let same = match (held.next(), &rule) {
                (None, None) => true,
                (Some(held), Some(rule)) => {
                    held.is_accepted() && crate::database::same_resource(&held.resource, rule)
                }
                _ => false,
            };
            let keeps = !same || held.next().is_some();
            if !keeps {
                ruled.push(name.clone());
            }
            keeps
        });
        self.exceptions = exceptions;
        for name in ruled {
            self.drop_records(&name, |_| false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Version;

    #[test]
    fn records_that_go_give_their_memory_back() {
        let mut db = Database::new();
        let mut holdings = Holdings::new(db.type_id(&"t".into()));
        let name = |nth: usize| Name::new(&nth.to_string());
        for nth in 0..1000 {
            let held = Held::unknown(name(nth), Version::new(""));
            holdings.record(&mut db, held);
        }
        (800..1000).for_each(|nth| holdings.forget(&name(nth)));
        assert!(holdings.records.capacity() > 1000, "most are left");
        (10..800).for_each(|nth| holdings.forget(&name(nth)));
        assert_eq!(holdings.records.len(), 10);
        assert!(holdings.records.capacity() < 100);
    }
}
