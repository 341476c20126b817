//! The sets of parameters that one selector is subscribed to with.
//!
//! Nearly every selector is plain, which takes no memory of its own here.

use std::collections::BTreeSet;

use crate::params::Params;

/// At least one set of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParamSets {
    /// The empty set only.
    Plain,
    /// Others; the empty one may be among them.
    #[expect(
        clippy::box_collection,
        reason = "there are many names, and nearly none has these"
    )]
    Located(Box<BTreeSet<Params>>),
}

impl ParamSets {
    /// Makes the sets of a first subscription with these parameters.
    pub(super) fn new(params: Params) -> Self {
        if params.is_empty() {
            Self::Plain
        } else {
            Self::Located(Box::new(BTreeSet::from([params])))
        }
    }

    /// Adds a set of parameters, which may be the empty one. Returns whether it
    /// is new.
    pub(super) fn insert(&mut self, params: Params) -> bool {
        match self {
            Self::Plain if params.is_empty() => false,
            Self::Plain => {
                let sets = BTreeSet::from([Params::default(), params]);
                *self = Self::Located(Box::new(sets));
                true
            }
            Self::Located(sets) => sets.insert(params),
        }
    }

    /// Returns the sets without this one, which need not be among them; `None`
    /// if no set remains.
    pub(super) fn remove(self, params: &Params) -> Option<Self> {
        let Self::Located(mut sets) = self else {
            return None;
        };
        sets.remove(params);
        let is_plain_only = sets.len() == 1 && sets.contains(&Params::default());
        match (sets.is_empty(), is_plain_only) {
            (true, _) => None,
            (false, true) => Some(Self::Plain),
            (false, false) => Some(Self::Located(sets)),
        }
    }

    /// Returns whether this set of parameters is among the sets.
    pub(super) fn contains(&self, params: &Params) -> bool {
        match self {
            Self::Plain => params.is_empty(),
            Self::Located(sets) => sets.contains(params),
        }
    }

    /// Returns the sets in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Params> {
        let (plain_set, located_sets) = match self {
            Self::Plain => (Some(Params::none()), None),
            Self::Located(sets) => (None, Some(sets.iter())),
        };
        plain_set
            .into_iter()
            .chain(located_sets.into_iter().flatten())
    }
}
