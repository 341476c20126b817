//! Whole sets that clients held when they disconnected, by version.
//!
//! A SotW client that reconnects says nothing about what it has, except the
//! version of its last set. The remembered set tells which resources it may
//! still use, and which ones it has in place of resources that it NACKed (S82).
//! Sets that many clients held are kept once.
//!
//! `ClientSets` also remembers the references of listeners that were draining
//! when their client disconnected: no request of either protocol names such a
//! listener (S81).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;

use super::{Database, TypeId};
use crate::facts::Reference;
use crate::moment::Moment;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Resource, Version};

/// Bytes of the resources of all sets together. Most of these resources are in
/// the database, too, and cost nothing; which ones is not known.
const MAX_BYTES: usize = 64 << 20;

/// Sets that are remembered; the oldest is forgotten for a new one.
const MAX_SETS: usize = 1024;

/// References of draining listeners that are remembered.
const MAX_REFERENCES: usize = 4096;

/// Unacknowledged resources that are remembered for each set.
const MAX_UNACKED: usize = 1024;

/// The whole set that one client held.
#[derive(Clone, Debug)]
pub(crate) struct ClientSet {
    /// Sorted by name.
    pub(crate) resources: Vec<Arc<Resource>>,
    /// Resources that the client NACKed: they are not sent to it again at once
    /// (S12).
    pub(crate) quarantined: Vec<(Name, Option<Constraints>, Version)>,
    /// Resources that the client was sent beside this set, in sets that it did
    /// not ACK, whatever its reason.
    pub(crate) unacked_versions: BTreeMap<Name, Version>,
}

impl ClientSet {
    /// Returns the union of two sets that clients held of one version, each of
    /// which may be a part of the set that was sent. For a name in both, the
    /// resource of `self` stays. `None` if `other` adds no name.
    fn union(&self, other: &Self) -> Option<Self> {
        let is_new = |resource: &&Arc<Resource>| !self.lists(&resource.name);
        let new_resources: Vec<_> = other.resources.iter().filter(is_new).cloned().collect();
        if new_resources.is_empty() {
            return None;
        }
        let mut set = self.clone();
        set.resources.extend(new_resources);
        set.resources
            .sort_by(|left, right| left.name.cmp(&right.name));
        Some(set)
    }

    /// Returns whether the set lists a name.
    pub(crate) fn lists(&self, name: &Name) -> bool {
        let position = self
            .resources
            .binary_search_by(|resource| resource.name.cmp(name));
        position.is_ok()
    }
}

/// The sets that clients held when they disconnected, and the references that
/// may still drain.
#[derive(Debug, Default)]
pub(super) struct ClientSets {
    sets: HashMap<(TypeId, Version), Arc<ClientSet>>,
    /// The same keys, oldest first.
    order: VecDeque<(TypeId, Version)>,
    /// The sum of [`bytes_of`] over `sets`.
    bytes: usize,
    /// References that may still be in use, and until when.
    draining: BTreeMap<Reference, Moment>,
    /// Types of which any resource may be in use, since the referring bodies
    /// are not known.
    draining_types: BTreeMap<&'static str, Moment>,
}

impl ClientSets {
    /// Stores a set in place of one with the same key, whose age it keeps. A
    /// set that alone exceeds the limit is not stored; the old one stays.
    fn insert(&mut self, key: (TypeId, Version), set: Arc<ClientSet>) {
        let bytes = bytes_of(&set);
        if bytes > MAX_BYTES {
            return;
        }
        self.bytes += bytes;
        match self.sets.insert(key.clone(), set) {
            Some(replaced_set) => self.bytes -= bytes_of(&replaced_set),
            None => self.order.push_back(key),
        }
        self.forget_oldest();
    }

    /// Forgets the sets of a type that is gone.
    pub(super) fn forget_type(&mut self, type_id: TypeId) {
        if self.sets.is_empty() {
            return;
        }
        self.order.retain(|(owner, _)| *owner != type_id);
        let forgotten_sets = self.sets.extract_if(|(owner, _), _| *owner == type_id);
        let bytes: usize = forgotten_sets.map(|(_, set)| bytes_of(&set)).sum();
        self.bytes -= bytes;
    }

    /// Forgets the oldest sets until the others are within the limits.
    fn forget_oldest(&mut self) {
        while self.sets.len() > MAX_SETS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            let forgotten_set = self.sets.remove(&oldest);
            self.bytes -= forgotten_set.map_or(0, |set| bytes_of(&set));
        }
    }
}

impl Database {
    /// Returns whether the set of a version is remembered.
    pub(crate) fn remembers_set(&self, type_id: TypeId, version: &Version) -> bool {
        let key = (type_id, version.clone());
        self.client_sets.sets.contains_key(&key)
    }

    /// Remembers the set, or a part of it, that a client held when it
    /// disconnected. A part is added to what other clients held of the same
    /// version.
    pub(crate) fn remember_set(&mut self, type_id: TypeId, version: Version, set: &Arc<ClientSet>) {
        let key = (type_id, version);
        let set = match self.client_sets.sets.get(&key) {
            None => Some(Arc::clone(set)),
            Some(known_set) => known_set.union(set).map(Arc::new),
        };
        if let Some(set) = set {
            self.client_sets.insert(key, set);
        }
    }

    /// Remembers the resources that a client was sent beside a remembered set,
    /// in sets that it did not ACK. Names that the set lists are left out, and
    /// so are those beyond the limit. Nothing happens if the set is not
    /// remembered.
    pub(crate) fn remember_unacked(
        &mut self,
        type_id: TypeId,
        version: &Version,
        sent_resources: impl Iterator<Item = (Name, Version)>,
    ) {
        let key = (type_id, version.clone());
        let Some(set) = self.client_sets.sets.get_mut(&key) else {
            return;
        };
        let unlisted_resources: Vec<_> = sent_resources
            .filter(|(name, _)| !set.lists(name))
            .collect();
        if unlisted_resources.is_empty() {
            // A set that others use need not be copied.
            return;
        }

        let unacked_versions = &mut Arc::make_mut(set).unacked_versions;
        let room = MAX_UNACKED.saturating_sub(unacked_versions.len());
        unacked_versions.extend(unlisted_resources.into_iter().take(room));
    }

    /// Remembers the references of listeners that drain when their client
    /// disconnects, each until its latest moment. Those whose moment has passed
    /// are forgotten, and new ones beyond the limit are left out.
    pub(crate) fn remember_draining(
        &mut self,
        references: impl Iterator<Item = (Reference, Moment)>,
        now: Moment,
    ) {
        let draining = &mut self.client_sets.draining;
        draining.retain(|_, end| now < *end);
        for (reference, end) in references {
            let has_room = draining.len() < MAX_REFERENCES;
            if has_room || draining.contains_key(&reference) {
                let latest_end = draining.entry(reference).or_insert(end);
                *latest_end = end.max(*latest_end);
            }
        }
    }

    /// Remembers that a draining listener with an unknown body may use any
    /// resource of a type.
    pub(crate) fn remember_draining_type(&mut self, url: &'static str, end: Moment) {
        let latest_end = self.client_sets.draining_types.entry(url).or_insert(end);
        *latest_end = end.max(*latest_end);
    }

    /// Returns the types of which a client that reconnects may still use any
    /// resource, each with the moment until which it may; that moment may have
    /// passed.
    pub(crate) fn recall_draining_types(&self) -> impl Iterator<Item = (&'static str, Moment)> {
        let draining_types = self.client_sets.draining_types.iter();
        draining_types.map(|(url, end)| (*url, *end))
    }

    /// Returns the references that a client that reconnects may still use, each
    /// with the moment until which it may; that moment may have passed.
    pub(crate) fn recall_draining(&self) -> impl Iterator<Item = (&Reference, Moment)> {
        let references = self.client_sets.draining.iter();
        references.map(|(reference, end)| (reference, *end))
    }

    /// Returns the set of a client that resumes with this version; `None` if no
    /// such set is remembered.
    pub(crate) fn recall_set(&self, type_id: TypeId, version: &Version) -> Option<Arc<ClientSet>> {
        let key = (type_id, version.clone());
        self.client_sets.sets.get(&key).cloned()
    }
}

/// Returns the approximate size of the resources of a set.
fn bytes_of(set: &ClientSet) -> usize {
    set.resources
        .iter()
        .map(|resource| resource.wire_size())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest() {
        let mut db = Database::new();
        let id = db.type_id(&"t".into());
        // As many as the limit allows have exactly its bytes.
        let empty = Resource::new("a".into(), "".into()).wire_size();
        let body = vec![0; empty.next_power_of_two() - empty];
        let one = Arc::new(Resource::new("a".into(), body.into()));
        let set = |size: usize| {
            Arc::new(ClientSet {
                resources: vec![Arc::clone(&one); size],
                quarantined: Vec::new(),
                unacked_versions: BTreeMap::new(),
            })
        };
        let small = set(1);
        for version in 0..2 * MAX_SETS {
            db.remember_set(id, Version::new(version.to_string()), &small);
        }
        assert_eq!(db.client_sets.sets.len(), MAX_SETS);
        assert!(!db.remembers_set(id, &"0".into()));
        let newest = Version::new((2 * MAX_SETS - 1).to_string());
        assert!(db.recall_set(id, &newest).is_some());
        let most = MAX_BYTES / one.wire_size();
        db.remember_set(id, "large".into(), &set(most));
        assert_eq!(db.client_sets.sets.len(), 1);
        assert_eq!(db.client_sets.bytes, MAX_BYTES);
        db.remember_set(id, "larger".into(), &set(most + 1));
        assert!(db.recall_set(id, &"larger".into()).is_none());
        assert_eq!(db.client_sets.bytes, most * one.wire_size());
    }

    #[test]
    fn s81_what_drained_is_forgotten_when_its_time_is_over() {
        let mut db = Database::new();
        let reference = Reference {
            type_url: "t".into(),
            name: "a".into(),
        };
        let until = Moment::START + std::time::Duration::from_secs(1);
        db.remember_draining([(reference, until)].into_iter(), Moment::START);
        assert_eq!(db.recall_draining().count(), 1);
        db.remember_draining(std::iter::empty(), until);
        assert_eq!(db.recall_draining().count(), 0);
    }

    fn set(names: &[&str]) -> Arc<ClientSet> {
        let resource = |name: &&str| Arc::new(Resource::new(Name::new(name), "x".into()));
        Arc::new(ClientSet {
            resources: names.iter().map(resource).collect(),
            quarantined: Vec::new(),
            unacked_versions: BTreeMap::new(),
        })
    }

    #[test]
    fn s82_parts_of_a_set_are_remembered_together() {
        let mut db = Database::new();
        let id = db.type_id(&"t".into());
        let names = |db: &Database| -> Vec<Name> {
            let set = db.recall_set(id, &"1".into()).unwrap();
            set.resources.iter().map(|r| r.name.clone()).collect()
        };
        assert!(!db.remembers_set(id, &"1".into()));
        for (part, all) in [(["b", "d"], "bd"), (["b", "d"], "bd"), (["a", "b"], "abd")] {
            db.remember_set(id, "1".into(), &set(&part));
            let all = all.chars().map(|name| Name::new(&name.to_string()));
            assert_eq!(names(&db), all.collect::<Vec<_>>());
        }
        assert!(db.remembers_set(id, &"1".into()));
        assert_eq!(db.client_sets.order.len(), 1);
        let bytes = db.recall_set(id, &"1".into()).map(|set| bytes_of(&set));
        assert_eq!(bytes, Some(db.client_sets.bytes));
    }

    #[test]
    fn s82_unacknowledged_resources_are_remembered_beside_a_set_up_to_a_limit() {
        let mut db = Database::new();
        let id = db.type_id(&"t".into());
        let sent = |nth: usize| (Name::new(&nth.to_string()), Version::new("1"));
        db.remember_unacked(id, &"1".into(), [sent(0)].into_iter());
        assert!(db.recall_set(id, &"1".into()).is_none());
        db.remember_set(id, "1".into(), &set(&["0"]));
        db.remember_unacked(id, &"1".into(), (0..MAX_UNACKED).map(sent));
        let unacked_versions = |db: &Database| {
            db.recall_set(id, &"1".into())
                .unwrap()
                .unacked_versions
                .clone()
        };
        assert_eq!(unacked_versions(&db).len(), MAX_UNACKED - 1);
        assert!(!unacked_versions(&db).contains_key(&sent(0).0));
        db.remember_unacked(id, &"1".into(), (MAX_UNACKED..MAX_UNACKED + 2).map(sent));
        assert_eq!(unacked_versions(&db).len(), MAX_UNACKED);
        assert!(unacked_versions(&db).contains_key(&sent(MAX_UNACKED).0));
    }

    #[test]
    fn s81_references_that_drain_are_remembered_up_to_a_limit_and_until_the_last_moment() {
        let mut db = Database::new();
        let reference = |nth: usize| Reference {
            type_url: "t".into(),
            name: Name::new(&nth.to_string()),
        };
        let after = |seconds| Moment::START + std::time::Duration::from_secs(seconds);
        let all = (0..=MAX_REFERENCES).map(|nth| (reference(nth), after(2)));
        db.remember_draining(all, Moment::START);
        let until = |db: &Database, nth| {
            let wanted = reference(nth);
            let mut known = db.recall_draining();
            known
                .find(|(other, _)| **other == wanted)
                .map(|(_, until)| until)
        };
        assert_eq!(db.recall_draining().count(), MAX_REFERENCES);
        assert_eq!(until(&db, MAX_REFERENCES), None);
        let known = [(reference(0), after(3)), (reference(1), after(1))];
        db.remember_draining(known.into_iter(), Moment::START);
        assert_eq!(until(&db, 0), Some(after(3)));
        assert_eq!(until(&db, 1), Some(after(2)));
        // The others are no longer in use.
        db.remember_draining([(reference(5), after(4))].into_iter(), after(2));
        assert_eq!(db.recall_draining().count(), 2);
    }

    #[test]
    fn s81_a_type_that_drains_is_remembered_until_the_last_moment() {
        let mut db = Database::new();
        let after = |seconds| Moment::START + std::time::Duration::from_secs(seconds);
        assert_eq!(db.recall_draining_types().count(), 0);
        db.remember_draining_type("t", after(2));
        db.remember_draining_type("t", after(1));
        db.remember_draining_type("u", after(1));
        let all: Vec<_> = db.recall_draining_types().collect();
        assert_eq!(all, [("t", after(2)), ("u", after(1))]);
    }
}
