//! Parameter sets by number, so that a million clients in ten categories cost
//! ten evaluations.
//!
//! The table only grows: a number stays good for as long as the table lives,
//! and nobody counts who uses it. It has one entry for each distinct set, so
//! whoever takes sets from strangers watches [`ParamsTable::len`].

use hashbrown::HashMap;

use super::{Keys, Params};

/// A parameter set in one [`ParamsTable`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParamsId(u32);

impl ParamsId {
    /// The empty set, in every table.
    pub const EMPTY: Self = Self(0);
}

/// Parameter sets, each kept once.
#[derive(Clone, Debug)]
pub struct ParamsTable {
    // At the place that its id says; the empty set is first.
    sets: Vec<Params>,
    // The inverse of `sets`.
    ids: HashMap<Params, ParamsId>,
    projections: HashMap<Keys, HashMap<ParamsId, ParamsId>>,
}

impl ParamsTable {
    /// A table with the empty set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sets: vec![Params::default()],
            ids: HashMap::from([(Params::default(), ParamsId::EMPTY)]),
            projections: HashMap::new(),
        }
    }

    /// The number of a set, the same each time.
    pub fn intern(&mut self, set: Params) -> ParamsId {
        // Memory ends long before the numbers do.
        let next = ParamsId(self.sets.len() as u32);
        let id = *self.ids.entry_ref(&set).or_insert(next);
        if id == next {
            self.sets.push(set);
        }
        id
    }

    /// The number of a set that was met before.
    #[must_use]
    pub fn find(&self, set: &Params) -> Option<ParamsId> {
        self.ids.get(set).copied()
    }

    /// The set of a number that this table gave.
    #[must_use]
    pub fn get(&self, id: ParamsId) -> &Params {
        &self.sets[id.0 as usize]
    }

    /// The number of what a set says of these keys: computed once, then found.
    pub fn project(&mut self, id: ParamsId, keys: &Keys) -> ParamsId {
        let known = self.projections.get(keys).and_then(|ids| ids.get(&id));
        if let Some(&known) = known {
            return known;
        }
        let projected = self.intern(self.get(id).project(keys));
        let ids = self.projections.entry_ref(keys).or_default();
        ids.insert(id, projected);
        projected
    }

    /// How many distinct sets there are, the empty one included.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // it never is
    pub fn len(&self) -> usize {
        self.sets.len()
    }
}

impl Default for ParamsTable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Params {
        Params::new(pairs.iter().copied()).unwrap()
    }

    #[test]
    fn a_set_has_one_number() {
        let mut table = ParamsTable::default();
        assert_eq!(table.len(), 1);
        assert_eq!(table.intern(Params::default()), ParamsId::EMPTY);
        assert_eq!(table.get(ParamsId::EMPTY), &Params::default());
        let (prod, test) = (params(&[("env", "prod")]), params(&[("env", "test")]));
        let id = table.intern(prod.clone());
        let other = table.intern(test.clone());
        assert_ne!(id, other);
        assert_eq!(table.intern(prod.clone()), id);
        assert_eq!((table.get(id), table.get(other)), (&prod, &test));
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn projections_are_found_again() {
        let mut table = ParamsTable::new();
        let id = table.intern(params(&[("a", "1"), ("b", "2")]));
        let a = table.project(id, &Keys::new(["a"]));
        assert_eq!(table.get(a), &params(&[("a", "1")]));
        assert_eq!(table.project(id, &Keys::new(["a"])), a);
        assert_eq!(table.project(a, &Keys::new(["a"])), a);
        let none = table.project(id, &Keys::new(["c"]));
        assert_eq!(none, ParamsId::EMPTY);
        assert_eq!(table.len(), 3);
        assert_eq!(table.projections[&Keys::new(["a"])].len(), 2);
        assert_eq!(table.projections.len(), 2);
    }

    #[test]
    fn a_known_projection_is_not_computed() {
        let mut table = ParamsTable::new();
        let id = table.intern(params(&[("a", "1"), ("b", "2")]));
        let a = table.project(id, &Keys::new(["a"]));
        // Were it computed, it would be interned.
        table.ids.clear();
        assert_eq!(table.project(id, &Keys::new(["a"])), a);
        assert!(table.ids.is_empty());
    }
}
