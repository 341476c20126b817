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
    /// The variant of each category of clients, filled when a category is first
    /// seen.
    chosen: HashMap<ParamsId, Option<u32>>,
    /// The epoch of the parameter sets in `chosen`.
    epoch: u32,
}

impl Content {
    /// Makes contents with these variants, which were checked for overlap.
    pub(super) fn from_variants(mut resources: Vec<Arc<Resource>>) -> Self {
        match resources.pop() {
            None => Self::Absent,
            Some(only) if resources.is_empty() && only.constraints.is_none() => Self::One(only),
            Some(last) => {
                resources.push(last);
                resources.sort_by(|a, b| a.constraints.cmp(&b.constraints));
                let keys = resources
                    .iter()
                    .filter_map(|r| r.constraints.as_ref())
                    .fold(Keys::default(), |all, c| all.union(c.keys()));
                Self::Variants(Box::new(Variants {
                    list: resources.into(),
                    keys,
                    chosen: HashMap::new(),
                    epoch: 0,
                }))
            }
        }
    }

    /// Takes over the choices of the old contents: variants with the same
    /// constraints are for the same clients.
    pub(super) fn copy_choices(&mut self, old: &Self) {
        if let (Self::Variants(new), Self::Variants(old)) = (self, old)
            && new.list.len() == old.list.len()
            && new
                .list
                .iter()
                .zip(&old.list)
                .all(|(a, b)| a.constraints == b.constraints)
        {
            new.chosen.clone_from(&old.chosen);
            new.epoch = old.epoch;
        }
    }

    /// Returns all variants, those that stay in use after an error included.
    pub(super) fn resources(&self) -> &[Arc<Resource>] {
        match self {
            Self::Absent | Self::Unknown => &[],
            Self::Failed(_, kept) => kept.resources(),
            Self::One(only) => std::slice::from_ref(only),
            Self::Variants(variants) => &variants.list,
        }
    }

    /// Returns the keys that decide which variant a client gets; `None` if all
    /// clients get the same.
    pub(super) fn keys(&self) -> Option<&Keys> {
        match self {
            Self::Variants(variants) => Some(&variants.keys),
            Self::Failed(_, kept) => kept.keys(),
            Self::Absent | Self::Unknown | Self::One(_) => None,
        }
    }

    /// Returns the choice of a client. `evaluations` counts the constraints
    /// that had to be evaluated: none, once the client's category has been
    /// seen.
    pub(super) fn choose(
        &mut self,
        params: ParamsId,
        params_table: &mut ParamsTable,
        evaluations: &mut u64,
    ) -> Choice {
        match self {
            Self::Absent => Choice::Absent,
            Self::Unknown => Choice::Unknown,
            Self::One(only) => Choice::Resource(Arc::clone(only)),
            Self::Failed(error, kept) => {
                let kept = kept.choose(params, params_table, evaluations);
                Choice::Failed(Arc::clone(error), kept.resource().cloned())
            }
            Self::Variants(variants) => variants.choose(params, params_table, evaluations),
        }
    }
}

impl Variants {
    /// Returns the variant for the category of a client, and remembers it. The
    /// categories of an earlier epoch may mean other parameters now, and are
    /// forgotten.
    fn choose(
        &mut self,
        params: ParamsId,
        params_table: &mut ParamsTable,
        evaluations: &mut u64,
    ) -> Choice {
        let category = params_table.project(params, &self.keys);
        if self.epoch != params_table.epoch() {
            self.epoch = params_table.epoch();
            self.chosen.clear();
        }
        let list = &self.list;
        let index = *self.chosen.entry(category).or_insert_with(|| {
            let params = params_table.get(category);
            let matches = |r: &Arc<Resource>| {
                *evaluations += 1;
                r.constraints.as_ref().is_none_or(|c| c.matches(params))
            };
            list.iter().position(matches).map(|i| i as u32)
        });
        match index {
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
            Self::Failed(_, kept) => kept.as_ref(),
            Self::Absent | Self::Unknown => None,
        }
    }

    /// Returns whether a client that was sent the one need not be sent the
    /// other.
    #[must_use]
    pub fn same_for_client(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Resource(a), Self::Resource(b)) => same_resource(a, b),
            (a, b) => a == b,
        }
    }
}

/// Returns whether two resources are the same to a client that has one of them.
pub(crate) fn same_resource(a: &Arc<Resource>, b: &Arc<Resource>) -> bool {
    Arc::ptr_eq(a, b)
        || (a.version == b.version
            && a.name == b.name
            && a.constraints == b.constraints
            && a.aliases == b.aliases
            && a.ttl == b.ttl)
}
