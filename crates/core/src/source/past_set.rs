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
        let earlier = self.go_back(db, version)?;
        let set = Arc::new(self.rebuild_set(db, earlier));
        db.remember_set(self.type_id, version.clone(), &set);
        Some(set)
    }

    /// Goes back from the present set to the one of a version. Returns what
    /// each name that changed since then had; `None` if no set has the version.
    fn go_back(
        &self,
        db: &mut Database,
        version: &Version,
    ) -> Option<HashMap<Name, Option<Arc<Resource>>>> {
        let mut sum = self.present_sum(db);
        let mut earlier: HashMap<Name, Option<Arc<Resource>>> = HashMap::new();
        if Version::of_hash(sum) == *version {
            return Some(earlier);
        }

        let past = db.past_resources(self.type_id, self.params);
        let past = past.filter(|(name, _)| self.has_interest(db, name));
        let past: Vec<_> = past
            .map(|(name, resource)| (name.clone(), resource.cloned()))
            .collect();
        for (name, old) in past {
            let new = match earlier.get(&name) {
                Some(resource) => resource.clone(),
                None => self.desired_resources(db, &name).into_iter().next(),
            };
            sum = sum
                .wrapping_sub(self.fingerprint_of(new.as_ref()))
                .wrapping_add(self.fingerprint_of(old.as_ref()));
            earlier.insert(name, old);
            if Version::of_hash(sum) == *version {
                return Some(earlier);
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
        let present = self.present_resources(db);
        let fingerprints = present.values().map(|it| self.fingerprint_of(Some(it)));
        fingerprints.fold(0, u128::wrapping_add)
    }

    /// Returns the desired resources by name. Of a name, the client of one set
    /// of parameters has one.
    fn present_resources(&self, db: &mut Database) -> BTreeMap<Name, Arc<Resource>> {
        let present = self.all_desired_resources(db).into_iter();
        let present = present.map(|resource| (resource.name.clone(), resource));
        present.collect()
    }

    /// Makes the set that the client had before some changes of the present
    /// one: `earlier` has what each changed name had then.
    fn rebuild_set(
        &self,
        db: &mut Database,
        earlier: HashMap<Name, Option<Arc<Resource>>>,
    ) -> ClientSet {
        let mut resources = self.present_resources(db);
        for (name, resource) in earlier {
            match resource {
                Some(resource) => resources.insert(name, resource),
                None => resources.remove(&name),
            };
        }
        let resources = resources.into_values();
        ClientSet {
            resources: resources.filter(|it| !self.is_withheld(it)).collect(),
            quarantined: Vec::new(),
            unacked: BTreeMap::new(),
        }
    }

    /// Returns the fingerprint that a resource adds to the sum of a set; zero
    /// if there is none, or if it is withheld and was not sent.
    fn fingerprint_of(&self, resource: Option<&Arc<Resource>>) -> u128 {
        let sent = resource.filter(|resource| !self.is_withheld(resource));
        sent.map_or(0, |resource| resource.fingerprint())
    }
}
