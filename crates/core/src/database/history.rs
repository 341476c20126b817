//! Bodies that were replaced or removed, by name and version.
//!
//! A delta client that reconnects sends the version of every resource that it
//! has. If this process served that version before, the references of the
//! resource are known, and with them the resources that the client may still
//! use (S82). Bounded: the oldest bodies are forgotten.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::content::{Content, same_resource};
use super::{Database, TypeId};
use crate::kind::Kind;
use crate::name::Name;
use crate::resource::{Resource, Version};

/// Bodies that are remembered for each type.
const MAX_BODIES: usize = 1024;

/// Bytes of these bodies.
const MAX_BYTES: usize = 8 << 20;

/// Replaced bodies of one type.
#[derive(Debug, Default)]
pub(super) struct History {
    bodies: HashMap<(Name, Version), Arc<Resource>>,
    /// The same keys, oldest first.
    order: VecDeque<(Name, Version)>,
    bytes: usize,
}

impl History {
    /// Remembers the replaced resources of a name.
    pub(super) fn remember_all(&mut self, resources: Vec<Arc<Resource>>) {
        resources
            .iter()
            .for_each(|resource| self.remember(resource));
    }

    /// Remembers a replaced resource by its name and version, and forgets the
    /// oldest ones beyond the limits. A resource that is remembered already
    /// keeps its age.
    fn remember(&mut self, resource: &Arc<Resource>) {
        let key = (resource.name.clone(), resource.version.clone());
        if self.bodies.contains_key(&key) {
            return;
        }
        self.bytes += resource.wire_size();
        self.bodies.insert(key.clone(), Arc::clone(resource));
        self.order.push_back(key);
        self.forget_oldest();
    }

    /// Forgets the oldest resources until the others are within the limits.
    fn forget_oldest(&mut self) {
        while self.bodies.len() > MAX_BODIES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            let forgotten_body = self.bodies.remove(&oldest);
            self.bytes -= forgotten_body.map_or(0, |resource| resource.wire_size());
        }
    }
}

/// Returns the resources that a name no longer has and that refer to others, or
/// could by their `kind`: that a body has no references is worth remembering,
/// too. Variants are left out, since a version does not tell which of them a
/// client holds.
pub(super) fn replaced_resources(kind: &Kind, old: &Content, new: &Content) -> Vec<Arc<Resource>> {
    let type_may_refer = !kind.refers_to.is_empty();
    let may_refer = |old: &Resource| type_may_refer || !old.facts().references.is_empty();
    let is_variant = |old: &Resource| old.constraints.is_some();
    let stays = |old: &Arc<Resource>| new.resources().iter().any(|new| same_resource(new, old));

    let old_resources = old.resources().iter();
    let replaced_resources =
        old_resources.filter(|old| may_refer(old) && !is_variant(old) && !stays(old));
    replaced_resources.cloned().collect()
}

impl Database {
    /// Returns the resource that a name had at this version; `None` if it is
    /// not remembered. Only replaced and removed resources are.
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
        let all: Vec<_> = (0..=MAX_BODIES)
            .map(|n| body(&n.to_string(), true))
            .collect();
        all.iter().for_each(|resource| history.remember(resource));
        let has = |resource: &Resource| {
            let key = (resource.name.clone(), resource.version.clone());
            history.bodies.contains_key(&key)
        };
        assert!(!has(&all[0]) && has(&all[1]) && has(&all[MAX_BODIES]));
        assert_eq!(history.order.len(), MAX_BODIES);
    }

    #[test]
    fn the_bytes_of_remembered_bodies_are_bounded() {
        const COUNT: usize = 8;
        let mut history = History::default();
        let size = MAX_BYTES / COUNT - body("", true).wire_size();
        let all: Vec<_> = (0..=COUNT)
            .map(|nth| body(&nth.to_string().repeat(size), true))
            .collect();
        let known = |history: &History| -> Vec<bool> {
            let keys = all.iter().map(|r| (r.name.clone(), r.version.clone()));
            keys.map(|key| history.bodies.contains_key(&key)).collect()
        };
        history.remember_all(all[..COUNT].to_vec());
        assert_eq!(known(&history), [&[true; COUNT][..], &[false]].concat());
        history.remember_all(all.clone());
        assert_eq!(known(&history), [&[false], &[true; COUNT][..]].concat());
        assert_eq!(history.bytes, MAX_BYTES);
        history.remember_all(all[..1].to_vec());
        assert!(known(&history)[0] && !known(&history)[1]);
    }

    #[test]
    fn s82_variants_and_resources_that_stay_are_not_remembered() {
        let variant = |constraints: &str| {
            Arc::new(Resource {
                constraints: Some(constraints.parse().unwrap()),
                ..Resource::clone(&body("1", true))
            })
        };
        let mut db = Database::new();
        let id = db.type_id(&"t".into());
        let upsert = |resource: &Arc<Resource>| Change::Upsert("t".into(), Arc::clone(resource));
        let (a, b) = (variant("env=a"), variant("env=b"));
        db.apply(vec![upsert(&a)]).unwrap();
        db.apply(vec![upsert(&b)]).unwrap();
        db.apply(vec![Change::Remove("t".into(), "a".into())])
            .unwrap();
        assert_eq!(db.recall_body(id, &"a".into(), &a.version), None);
        let plain = body("1", true);
        db.apply(vec![upsert(&plain)]).unwrap();
        db.apply(vec![upsert(&body("1", true))]).unwrap();
        assert_eq!(db.recall_body(id, &"a".into(), &plain.version), None);
        db.apply(vec![upsert(&body("2", true))]).unwrap();
        assert!(db.recall_body(id, &"a".into(), &plain.version).is_some());
    }

    #[test]
    fn s82_a_replaced_body_without_references_is_known_if_its_type_could_have_some() {
        let mut db = Database::new();
        for (url, is_known) in [(crate::kind::LDS, true), (crate::kind::LEDS, false)] {
            let id = db.type_id(&url.into());
            let old = body("1", false);
            for resource in [&old, &body("2", false)] {
                db.apply(vec![Change::Upsert(url.into(), Arc::clone(resource))])
                    .unwrap();
            }
            let known = db.recall_body(id, &"a".into(), &old.version);
            assert_eq!(known.is_some(), is_known, "{url}");
        }
    }
}
