//! Bodies that were replaced or removed, by name and version.
//!
//! A client that comes back in deltas names the version of all that it holds.
//! Where that is what this process served before, it is known what it refers to,
//! and so what the client may still use (S82). Bounded: the oldest are forgotten.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::content::{Content, same_resource};
use super::{Database, TypeId};
use crate::kind::Kind;
use crate::name::Name;
use crate::resource::{Resource, Version};

/// How many bodies are remembered for each type.
const BODIES: usize = 1024;

/// How many bytes these may have.
const BYTES: usize = 8 << 20;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct History {
    bodies: HashMap<(Name, Version), Arc<Resource>>,
    /// The same keys, oldest first.
    order: VecDeque<(Name, Version)>,
    bytes: usize,
}

impl History {
    /// Remembers what a name had.
    pub(super) fn remember_all(&mut self, replaced: Vec<Arc<Resource>>) {
        replaced.iter().for_each(|resource| self.remember(resource));
    }

    fn remember(&mut self, resource: &Arc<Resource>) {
        let key = (resource.name.clone(), resource.version.clone());
        if self.bodies.contains_key(&key) {
            return;
        }
        self.bytes += resource.wire_size();
        self.bodies.insert(key.clone(), Arc::clone(resource));
        self.order.push_back(key);
        while self.bodies.len() > BODIES || self.bytes > BYTES {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            let gone = self.bodies.remove(&oldest);
            self.bytes -= gone.map_or(0, |gone| gone.wire_size());
        }
    }
}

/// What a name had and has no longer, as far as that refers to something, or could
/// by its `kind`: that it does not is worth knowing, too. A version does not tell
/// which of several variants is held.
pub(super) fn replaced_resources(kind: &Kind, old: &Content, new: &Content) -> Vec<Arc<Resource>> {
    let stays = |old: &Arc<Resource>| new.resources().iter().any(|new| same_resource(new, old));
    let could = !kind.refers_to.is_empty();
    let refers = |old: &Resource| could || !old.facts().references.is_empty();
    let plain = |old: &Resource| old.constraints.is_none() && old.body.is_some();
    let gone = old.resources().iter();
    let gone = gone.filter(|old| refers(old) && plain(old) && !stays(old));
    gone.cloned().collect()
}

impl Database {
    /// What a name had when it had this version, as far as it is remembered.
    pub(crate) fn recall_body(
        &self,
        type_id: TypeId,
        name: &Name,
        version: &Version,
    ) -> Option<Arc<Resource>> {
        let bodies = &self.table(type_id).history.bodies;
        bodies.get(&(name.clone(), version.clone())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::facts::{Facts, Reference};

    fn body(text: &str, refers: bool) -> Arc<Resource> {
        let reference = Reference {
            type_url: "u".into(),
            name: "b".into(),
        };
        let facts = Facts {
            references: vec![reference; usize::from(refers)].into(),
            ..Facts::default()
        };
        Arc::new(Resource {
            facts: Some(Box::new(facts)),
            ..Resource::new("a".into(), text.to_owned().into())
        })
    }

    #[test]
    fn s82_what_was_replaced_and_refers_to_something_is_known_by_its_version() {
        let mut db = Database::new();
        let id = db.type_id(&"t".into());
        let (first, second) = (body("1", true), body("2", false));
        for resource in [&first, &second] {
            db.apply(vec![Change::Upsert("t".into(), Arc::clone(resource))])
                .unwrap();
        }
        let found = db.recall_body(id, &"a".into(), &first.version);
        assert_eq!(found, Some(first));
        db.apply(vec![Change::Remove("t".into(), "a".into())])
            .unwrap();
        let found = db.recall_body(id, &"a".into(), &second.version);
        assert_eq!(found, None);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest() {
        let mut history = History::default();
        let all: Vec<_> = (0..=BODIES).map(|n| body(&n.to_string(), true)).collect();
        all.iter().for_each(|resource| history.remember(resource));
        let has = |resource: &Resource| {
            let key = (resource.name.clone(), resource.version.clone());
            history.bodies.contains_key(&key)
        };
        assert!(!has(&all[0]) && has(&all[1]) && has(&all[BODIES]));
        assert_eq!(history.order.len(), BODIES);
    }
}
