//! Whole sets of the past, found by their version: the set that a client names
//! when it reconnects after a restart of the server (S82).
//!
//! `resume` asks for it. A set that this process has sent is remembered when
//! its client disconnects, by `remember`; other sets are rebuilt here from the
//! changes in `database::past`.
//!
//! ```text
//!   present set ◀─ change ◀─ change ◀─ change ...   going back, newest first
//!       sum          sum       sum       sum        one is the version
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use super::TypeStream;
use crate::database::{ClientSet, Database};
use crate::name::Name;
use crate::resource::{Resource, Version};

impl TypeStream {
    /// Finds the set of a version: one that a client held when it disconnected,
    /// or one that this client's subscriptions had in the past, which is then
    /// remembered for the next client that names it.
    pub(super) fn find_set(&self, db: &mut Database, version: &Version) -> Option<Arc<ClientSet>> {
        if let Some(set) = db.recall_set(self.type_id, version) {
            return Some(set);
        }
        let earlier_choices = self.find_earlier_choices(db, version)?;
        let set = Arc::new(self.rebuild_set(db, earlier_choices));
        db.remember_set(self.type_id, version.clone(), &set);
        Some(set)
    }

    /// Goes back from the present set to the set of a version. Returns the
    /// resource that each name had then, if the name changed since; `None` if
    /// no remembered set has the version.
    fn find_earlier_choices(
        &self,
        db: &mut Database,
        version: &Version,
    ) -> Option<HashMap<Name, Option<Arc<Resource>>>> {
        let mut sum = self.present_sum(db);
        let mut earlier_choices: HashMap<Name, Option<Arc<Resource>>> = HashMap::new();
        if Version::of_hash(sum) == *version {
            return Some(earlier_choices);
        }

        let past_resources = db.past_resources(self.type_id, self.params);
        let past_changes: Vec<_> = past_resources
            .filter(|(name, _)| self.has_interest(db, name))
            .map(|(name, resource)| (name.clone(), resource.cloned()))
            .collect();
        // Each step undoes one change, from the newest to the oldest.
        for (name, old_resource) in past_changes {
            let new_resource = match earlier_choices.get(&name) {
                Some(resource) => resource.clone(),
                None => self.desired_resources(db, &name).into_iter().next(),
            };
            sum = sum
                .wrapping_sub(self.fingerprint_of(new_resource.as_ref()))
                .wrapping_add(self.fingerprint_of(old_resource.as_ref()));
            earlier_choices.insert(name, old_resource);
            if Version::of_hash(sum) == *version {
                return Some(earlier_choices);
            }
        }
        None
    }

    /// Returns the sum of the fingerprints of the present set, of which its
    /// version is made.
    fn present_sum(&self, db: &mut Database) -> u128 {
        if let [cursor] = self.client_cache.cursors()
            && self.subscriptions.is_empty()
            && !self.withholds_any_of(db, cursor.id)
        {
            return db.fingerprint_sum(cursor.id);
        }
        let resources = self.present_resources(db);
        let fingerprints = resources
            .values()
            .map(|resource| self.fingerprint_of(Some(resource)));
        fingerprints.fold(0, u128::wrapping_add)
    }

    /// Returns the desired resources by name. A client with one set of
    /// parameters has one resource of each name.
    fn present_resources(&self, db: &mut Database) -> BTreeMap<Name, Arc<Resource>> {
        let resources = self.all_desired_resources(db).into_iter();
        resources
            .map(|resource| (resource.name.clone(), resource))
            .collect()
    }

    /// Makes an earlier set from the present one: `earlier_choices` has the
    /// resource that each changed name had then, or `None` for a name that did
    /// not exist. Resources that were withheld are left out.
    fn rebuild_set(
        &self,
        db: &mut Database,
        earlier_choices: HashMap<Name, Option<Arc<Resource>>>,
    ) -> ClientSet {
        let mut resources = self.present_resources(db);
        for (name, resource) in earlier_choices {
            match resource {
                Some(resource) => resources.insert(name, resource),
                None => resources.remove(&name),
            };
        }

        let sent_resources = resources
            .into_values()
            .filter(|resource| !self.is_withheld(resource));
        ClientSet {
            resources: sent_resources.collect(),
            quarantined: Vec::new(),
            unacked_versions: BTreeMap::new(),
        }
    }

    /// Returns the fingerprint that a resource adds to the sum of a set; zero
    /// if there is none, or if it is withheld and was not sent.
    fn fingerprint_of(&self, resource: Option<&Arc<Resource>>) -> u128 {
        let sent_resource = resource.filter(|resource| !self.is_withheld(resource));
        sent_resource.map_or(0, |resource| resource.fingerprint())
    }
}
