//! The contents of one name, and the choice that a client gets of them.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::params::{Keys, ParamsId, ParamsTable};
use crate::resource::{Resource, ResourceError};

/// The contents of one name.
#[derive(Debug, Default)]
pub(super) enum Content {
    /// Nothing: the name does not exist.
    #[default]
    Absent,
    /// Unknown: the cache has no answer from its source yet (S51).
    Unknown,
    /// One resource for all clients.
    One(Arc<Resource>),
    /// Variants, each for some clients (TP2).
    Variants(Box<Variants>),
    /// The resource is not available, and why (TP3). The earlier contents stay,
    /// if the error is transient (S61).
    Failed(Arc<ResourceError>, Box<Content>),
}

/// The contents of a name for one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The name does not exist for this client.
    #[default]
    Absent,
    /// Unknown: nothing can be sent (S51).
    Unknown,
    /// This resource.
    Resource(Arc<Resource>),
    /// The resource is not available, and why (TP3); and the resource that
    /// stays in use meanwhile (S61).
    Failed(Arc<ResourceError>, Option<Arc<Resource>>),
}

/// Variants of one name. No client matches two of them, which is checked when
/// they are added.
#[derive(Debug)]
pub(super) struct Variants {
    /// Sorted by constraints.
    list: Box<[Arc<Resource>]>,
    /// The keys that decide between them.
    keys: Keys,
    /// The index of the variant of each category of clients, filled when a
    /// category is first seen.
    chosen_indexes: HashMap<ParamsId, Option<u32>>,
    /// The epoch of the parameter sets in `chosen_indexes`.
    epoch: u32,
}

impl Content {
    /// Makes contents of variants, which were checked for overlap. Contents of
    /// none are absent; a single resource without constraints is for all
    /// clients.
    pub(super) fn from_variants(mut resources: Vec<Arc<Resource>>) -> Self {
        match resources.pop() {
            None => Self::Absent,
            Some(resource) if resources.is_empty() && resource.constraints.is_none() => {
                Self::One(resource)
            }
            Some(last) => {
                resources.push(last);
                Self::Variants(Box::new(Variants::new(resources)))
            }
        }
    }

    /// Takes over the choices that were made of the old contents, if both have
    /// variants with the same constraints: these are for the same clients.
    pub(super) fn copy_choices(&mut self, old: &Self) {
        if let (Self::Variants(new), Self::Variants(old)) = (self, old)
            && new.has_constraints_of(old)
        {
            new.chosen_indexes.clone_from(&old.chosen_indexes);
            new.epoch = old.epoch;
        }
    }

    /// Returns all variants, those that stay in use after an error included.
    pub(super) fn resources(&self) -> &[Arc<Resource>] {
        match self {
            Self::Absent | Self::Unknown => &[],
            Self::Failed(_, content) => content.resources(),
            Self::One(resource) => std::slice::from_ref(resource),
            Self::Variants(variants) => &variants.list,
        }
    }

    /// Returns the keys that decide which variant a client gets; `None` if all
    /// clients get the same.
    pub(super) fn keys(&self) -> Option<&Keys> {
        match self {
            Self::Variants(variants) => Some(&variants.keys),
            Self::Failed(_, content) => content.keys(),
            Self::Absent | Self::Unknown | Self::One(_) => None,
        }
    }

    /// Returns the contents of the name for a client: the variant whose
    /// constraints its parameters match, with the error if there is one.
    /// `evaluations` counts the constraints that had to be evaluated: none,
    /// once the client's category has been seen. Aliases and domains are not
    /// looked at; [`super::Database::choose`] does.
    pub(super) fn choose_variant(
        &mut self,
        params: ParamsId,
        params_table: &mut ParamsTable,
        evaluations: &mut u64,
    ) -> Choice {
        match self {
            Self::Absent => Choice::Absent,
            Self::Unknown => Choice::Unknown,
            Self::One(resource) => Choice::Resource(Arc::clone(resource)),
            Self::Failed(error, content) => {
                let choice = content.choose_variant(params, params_table, evaluations);
                Choice::Failed(Arc::clone(error), choice.resource().cloned())
            }
            Self::Variants(variants) => {
                variants.choose_for_category(params, params_table, evaluations)
            }
        }
    }
}

impl Variants {
    /// Sorts resources by constraints, and collects the keys that decide
    /// between them. No choice has been made of them.
    fn new(mut resources: Vec<Arc<Resource>>) -> Self {
        resources.sort_by(|left, right| left.constraints.cmp(&right.constraints));
        let mut keys = Keys::default();
        let all_constraints = resources
            .iter()
            .filter_map(|resource| resource.constraints.as_ref());
        for constraints in all_constraints {
            keys = keys.union(constraints.keys());
        }
        Self {
            list: resources.into(),
            keys,
            chosen_indexes: HashMap::new(),
            epoch: 0,
        }
    }

    /// Returns whether both have variants with the same constraints. Both lists
    /// are sorted by them, so they are compared in order.
    fn has_constraints_of(&self, other: &Self) -> bool {
        let own_constraints = self.list.iter().map(|resource| &resource.constraints);
        let other_constraints = other.list.iter().map(|resource| &resource.constraints);
        own_constraints.eq(other_constraints)
    }

    /// Returns the variant for the category of a client, and remembers it; the
    /// name is absent for a client that no variant is for. The categories of an
    /// earlier epoch may mean other parameters now, and are forgotten.
    fn choose_for_category(
        &mut self,
        params: ParamsId,
        params_table: &mut ParamsTable,
        evaluations: &mut u64,
    ) -> Choice {
        let category = params_table.project(params, &self.keys);
        if self.epoch != params_table.epoch() {
            self.epoch = params_table.epoch();
            self.chosen_indexes.clear();
        }

        let list = &self.list;
        let chosen_index = *self.chosen_indexes.entry(category).or_insert_with(|| {
            let params = params_table.get(category);
            let is_for_client = |variant: &Arc<Resource>| {
                *evaluations += 1;
                let constraints = variant.constraints.as_ref();
                constraints.is_none_or(|constraints| constraints.matches(params))
            };
            let index = list.iter().position(is_for_client);
            index.map(|index| index as u32)
        });

        match chosen_index {
            Some(index) => Choice::Resource(Arc::clone(&self.list[index as usize])),
            None => Choice::Absent,
        }
    }
}

impl Choice {
    /// Returns the resource, if there is one; it may be one that stays in use
    /// after an error.
    #[must_use]
    pub fn resource(&self) -> Option<&Arc<Resource>> {
        match self {
            Self::Resource(resource) => Some(resource),
            Self::Failed(_, resource) => resource.as_ref(),
            Self::Absent | Self::Unknown => None,
        }
    }

    /// Returns whether two choices are the same to a client: if it was sent one
    /// of them, it need not be sent the other.
    #[must_use]
    pub fn same_for_client(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Resource(first), Self::Resource(second)) => same_resource(first, second),
            (first, second) => first == second,
        }
    }
}

/// Returns whether two resources are the same to a client that has one of them.
/// Bodies are not compared: equal versions of one variant have equal contents.
pub(crate) fn same_resource(first: &Arc<Resource>, second: &Arc<Resource>) -> bool {
    if Arc::ptr_eq(first, second) {
        return true;
    }
    first.version == second.version
        && first.name == second.name
        && first.constraints == second.constraints
        && first.aliases == second.aliases
        && first.ttl == second.ttl
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::database::{Database, TypeId};
    use crate::params::Params;
    use crate::resource::ErrorCode;

    fn variant(clients: &str, body: &'static str) -> Arc<Resource> {
        Arc::new(Resource {
            constraints: Some(clients.parse().unwrap()),
            ..Resource::new("a".into(), body.into())
        })
    }

    #[test]
    fn resources_that_differ_in_one_field_are_not_the_same_to_a_client() {
        let one = Resource::new("a".into(), "x".into());
        let ttl = Some(std::time::Duration::from_secs(1));
        let others = [
            Resource::new("a".into(), "y".into()),
            Resource {
                name: "b".into(),
                ..one.clone()
            },
            Resource {
                aliases: vec!["b".into()].into(),
                ..one.clone()
            },
            Resource {
                constraints: Some("env=a".parse().unwrap()),
                ..one.clone()
            },
            Resource { ttl, ..one.clone() },
        ];
        let one = Arc::new(one);
        assert!(same_resource(&one, &Arc::new(Resource::clone(&one))));
        for other in others {
            assert!(!same_resource(&one, &Arc::new(other.clone())), "{other:?}");
            let other = Arc::new(other);
            assert!(same_resource(&other, &Arc::clone(&other)));
        }
    }

    fn choose(db: &mut Database, type_id: TypeId, env: &str) -> Choice {
        let params = db.intern_params(Params::new([("env", env)]).unwrap());
        db.choose_name(type_id, &"a".into(), params)
    }

    #[test]
    fn tp2_variants_for_the_same_clients_keep_the_choices_and_others_do_not() {
        let mut db = Database::new();
        let type_id = db.type_id(&"t".into());
        let replace = |db: &mut Database, variants: Vec<Arc<Resource>>| {
            db.apply(vec![Change::ReplaceAll("t".into(), variants)])
                .unwrap();
        };
        let (a, b) = (variant("env=a", "1"), variant("env=b", "1"));
        replace(&mut db, vec![a, Arc::clone(&b)]);
        assert_eq!(choose(&mut db, type_id, "b"), Choice::Resource(b));
        let evaluations = db.work().evaluations;
        assert_eq!(evaluations, 2);
        let (a, b) = (variant("env=a", "2"), variant("env=b", "2"));
        replace(&mut db, vec![Arc::clone(&a), Arc::clone(&b)]);
        assert_eq!(choose(&mut db, type_id, "b"), Choice::Resource(b));
        assert_eq!(db.work().evaluations, evaluations);
        replace(&mut db, vec![Arc::clone(&a), variant("env=c", "2")]);
        assert_eq!(choose(&mut db, type_id, "b"), Choice::Absent);
        assert_eq!(choose(&mut db, type_id, "a"), Choice::Resource(a.clone()));
        replace(&mut db, vec![a]);
        assert_eq!(choose(&mut db, type_id, "c"), Choice::Absent);
    }

    #[test]
    fn tp2_a_single_variant_is_for_its_clients_and_a_plain_resource_for_all() {
        let mut db = Database::new();
        let type_id = db.type_id(&"t".into());
        let upsert = |resource: &Arc<Resource>| Change::Upsert("t".into(), Arc::clone(resource));
        db.apply(vec![upsert(&variant("env=a", "1"))]).unwrap();
        assert_eq!(choose(&mut db, type_id, "b"), Choice::Absent);
        let plain = Arc::new(Resource::new("a".into(), "x".into()));
        db.apply(vec![Change::Remove("t".into(), "a".into()), upsert(&plain)])
            .unwrap();
        let evaluations = db.work().evaluations;
        assert_eq!(choose(&mut db, type_id, "b"), Choice::Resource(plain));
        assert_eq!(db.work().evaluations, evaluations);
    }

    #[test]
    fn s61_a_resource_that_stays_in_use_after_an_error_is_a_part_of_the_choice() {
        let resource = Arc::new(Resource::new("a".into(), "x".into()));
        let error = |message: &str| {
            Arc::new(ResourceError {
                code: ErrorCode::Unavailable,
                message: message.into(),
            })
        };
        let failed = |message| Choice::Failed(error(message), Some(Arc::clone(&resource)));
        assert_eq!(failed("down").resource(), Some(&resource));
        assert_eq!(Choice::Failed(error("down"), None).resource(), None);
        assert!(failed("down").same_for_client(&failed("down")));
        assert!(!failed("down").same_for_client(&failed("lost")));
        assert!(!failed("down").same_for_client(&Choice::Resource(resource.clone())));
        assert!(!Choice::Absent.same_for_client(&Choice::Unknown));
    }
}
