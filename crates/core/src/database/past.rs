//! The last changes of a type whose responses are whole sets, so that sets of
//! the past can be worked out from the present one.
//!
//! A SotW client that reconnects names the version of its set, which is a sum
//! over its resources. A server that has restarted has sent no set yet, but a
//! store gave it the last transactions one by one: going back over them from
//! the present set, one of the sums is that version (S82). Bounded: the oldest
//! changes are forgotten.

use std::collections::VecDeque;
use std::sync::Arc;

use super::content::{Content, same_resource};
use super::{Database, SLICE, TypeId};
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Resource;

/// Changes that are remembered for each type. All of them are visited at once
/// when a client names a version that is none of them.
const MAX_CHANGES: usize = 10 * SLICE;

/// Bytes of the resources that these changes replaced or removed.
const MAX_BYTES: usize = 8 << 20;

/// The last changes of one type.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Oldest first.
    changes: VecDeque<PastChange>,
    bytes: usize,
}

/// The variants that a name had before a change.
#[derive(Debug)]
struct PastChange {
    name: Name,
    variants: Box<[Arc<Resource>]>,
}

impl PastChange {
    /// Returns the approximate size of the variants that are kept.
    fn bytes(&self) -> usize {
        let sizes = self.variants.iter().map(|variant| variant.wire_size());
        sizes.sum()
    }
}

impl Past {
    /// Remembers the variants that a name had before a change, unless they are
    /// the same as after it, and forgets the oldest changes beyond the limits.
    pub(super) fn remember(&mut self, name: &Name, old: &Content, new: &Content) {
        let (old_variants, new_variants) = (old.resources(), new.resources());
        let stays = |(old, new): (&Arc<Resource>, &Arc<Resource>)| {
            old.constraints == new.constraints && same_resource(old, new)
        };
        let have_same_count = old_variants.len() == new_variants.len();
        if have_same_count && old_variants.iter().zip(new_variants).all(stays) {
            return;
        }

        let change = PastChange {
            name: name.clone(),
            variants: old_variants.into(),
        };
        self.bytes += change.bytes();
        self.changes.push_back(change);
        while self.changes.len() > MAX_CHANGES || self.bytes > MAX_BYTES {
            let oldest = self.changes.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.bytes());
        }
    }
}

impl Database {
    /// Returns the remembered changes of a type, newest first: each name with
    /// the resource that a client with these parameters had of it before the
    /// change.
    pub(crate) fn past_resources(
        &self,
        type_id: TypeId,
        params: ParamsId,
    ) -> impl Iterator<Item = (&Name, Option<&Arc<Resource>>)> {
        let params = self.params.get(params);
        let changes = self.table(type_id).past.changes.iter().rev();
        changes.map(move |change| {
            let is_for_client = |variant: &&Arc<Resource>| {
                let constraints = variant.constraints.as_ref();
                constraints.is_none_or(|constraints| constraints.matches(params))
            };
            (&change.name, change.variants.iter().find(is_for_client))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::kind;
    use crate::params::Params;

    fn resource(name: &str, body: &str, clients: Option<&str>) -> Arc<Resource> {
        Arc::new(Resource {
            constraints: clients.map(|text| text.parse().unwrap()),
            ..Resource::new(name.into(), body.to_owned().into())
        })
    }

    fn past_of(db: &Database, url: &str, params: ParamsId) -> Vec<(String, Option<Arc<Resource>>)> {
        let type_id = db.find_type(&url.into()).unwrap();
        let past = db.past_resources(type_id, params);
        let past = past.map(|(name, resource)| (name.to_string(), resource.cloned()));
        past.collect()
    }

    #[test]
    fn s82_what_a_name_had_is_known_change_by_change_for_a_client() {
        let mut db = Database::new();
        let prod = db.intern_params(Params::new([("env", "prod")]).unwrap());
        let upsert = |it: &Arc<Resource>| vec![Change::Upsert(kind::CDS.into(), Arc::clone(it))];
        let (old, new) = (resource("a", "1", None), resource("a", "2", None));
        let variant = resource("v", "1", Some("env=prod"));
        for step in [&old, &new, &new, &variant] {
            db.apply(upsert(step)).unwrap();
        }
        for name in ["a", "v"] {
            db.apply(vec![Change::Remove(kind::CDS.into(), name.into())])
                .unwrap();
        }

        let of_prod = [
            Some(variant),
            Some(new.clone()),
            None,
            Some(old.clone()),
            None,
        ];
        let names = ["v", "a", "v", "a", "a"].map(str::to_owned);
        let expected: Vec<_> = names.clone().into_iter().zip(of_prod).collect();
        assert_eq!(past_of(&db, kind::CDS, prod), expected);
        let of_others = [None, Some(new), None, Some(old), None];
        let expected: Vec<_> = names.into_iter().zip(of_others).collect();
        assert_eq!(past_of(&db, kind::CDS, ParamsId::EMPTY), expected);
    }

    #[test]
    fn s82_only_types_whose_responses_are_whole_sets_have_a_past() {
        let mut db = Database::new();
        let eds = Change::Upsert(kind::EDS.into(), resource("a", "1", None));
        db.apply(vec![eds]).unwrap();
        assert_eq!(past_of(&db, kind::EDS, ParamsId::EMPTY), []);
    }

    #[test]
    fn the_past_is_bounded_and_the_newest() {
        let content = |body: usize, size: usize| {
            let text = format!("{body}{}", " ".repeat(size));
            Content::from_variants(vec![resource("a", &text, None)])
        };
        let mut past = Past::default();
        for nth in 0..=MAX_CHANGES {
            past.remember(&"a".into(), &content(nth, 0), &Content::Absent);
        }
        assert_eq!(past.changes.len(), MAX_CHANGES);
        assert_eq!(past.changes[0].variants[0].body, Some("1".into()));

        let mut past = Past::default();
        for nth in 0..10 {
            past.remember(&"a".into(), &content(nth, MAX_BYTES / 4), &Content::Absent);
        }
        assert_eq!(past.changes.len(), 3);
        let bytes: usize = past.changes.iter().map(PastChange::bytes).sum();
        assert_eq!(bytes, past.bytes);
    }
}
