//! Parameter sets by number, so that a million clients in ten categories cost
//! ten evaluations.
//!
//! The owner of a number holds it, and releases it in the end: a set that
//! nobody holds is forgotten, with everything that was computed from it. Its
//! number is reused only in a later epoch, so that a cache keyed by numbers can
//! tell whether they still mean the same sets.

use hashbrown::HashMap;

use super::{Keys, Params};

/// The number of a parameter set in one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParamsId(u32);

impl ParamsId {
    /// The empty set, in every table.
    pub const EMPTY: Self = Self(0);

    /// Returns the index of the set in the table.
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Numbers of forgotten sets that wait for the next epoch, beyond as many as
/// there are sets. With fewer, caches would be invalidated too often.
const MAX_WAITING_IDS: usize = 1024;

/// Bytes of a set that is not unusually large.
const SET_BYTES: usize = 512;

/// Parameter sets, each kept once.
#[derive(Clone, Debug)]
pub(crate) struct ParamsTable {
    // By number; the empty set is first.
    sets: Vec<Params>,
    // What the sets in `ids` count beyond one each.
    excess: usize,
    // How often each set is held, by number.
    hold_counts: Vec<u32>,
    // The inverse of `sets`, without the forgotten sets.
    ids: HashMap<Params, ParamsId>,
    // Both sides are in `ids`, and each projection holds its target.
    projections: HashMap<Keys, HashMap<ParamsId, ParamsId>>,
    // Numbers forgotten in this epoch.
    waiting_ids: Vec<ParamsId>,
    // Numbers forgotten in an earlier epoch.
    free_ids: Vec<ParamsId>,
    epoch: u32,
}

impl ParamsTable {
    /// Makes a table that has only the empty set.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self {
            sets: vec![Params::default()],
            excess: 0,
            // The empty set is never forgotten.
            hold_counts: vec![0],
            ids: HashMap::from([(Params::default(), ParamsId::EMPTY)]),
            projections: HashMap::new(),
            waiting_ids: Vec::new(),
            free_ids: Vec::new(),
            epoch: 0,
        }
    }

    /// Returns the number of a set, which is the same for equal sets. A set
    /// that is not in the table is added, and kept until it was held and then
    /// released.
    pub(crate) fn intern(&mut self, set: Params) -> ParamsId {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }

        let id = match self.free_ids.pop() {
            Some(id) => {
                self.sets[id.index()] = set.clone();
                id
            }
            None => {
                self.sets.push(set.clone());
                self.hold_counts.push(0);
                // Memory runs out long before 2³² sets.
                ParamsId(self.sets.len() as u32 - 1)
            }
        };

        self.excess += excess(&set);
        self.ids.insert(set, id);
        id
    }

    /// Keeps a set until it is released as often.
    pub(crate) fn hold(&mut self, id: ParamsId) {
        self.hold_counts[id.index()] += 1;
    }

    /// Ends one hold of a set. The last release forgets the set, unless it is
    /// the empty one.
    pub(crate) fn release(&mut self, id: ParamsId) {
        let hold_count = &mut self.hold_counts[id.index()];
        *hold_count = hold_count.saturating_sub(1);
        // A set that is forgotten already is empty in the table.
        let is_kept = self.sets[id.index()] != Params::default();

        let is_unused = *hold_count == 0 && is_kept;
        if is_unused && self.ids.remove(&self.sets[id.index()]).is_some() {
            self.forget(id);
        }
    }

    /// Forgets a set that is no longer in `ids`, and releases its projections.
    /// An epoch ends when many numbers wait for reuse.
    fn forget(&mut self, id: ParamsId) {
        let projections_by_keys = self.projections.values_mut();
        let projections: Vec<ParamsId> = projections_by_keys
            .filter_map(|ids| ids.remove(&id))
            .collect();
        // A set that is its own projection does not hold itself.
        for target in projections.into_iter().filter(|target| *target != id) {
            self.release(target);
        }

        // The number waits, and the texts of the set are freed.
        self.excess -= excess(&self.sets[id.index()]);
        self.sets[id.index()] = Params::default();
        if self.ids.len() < self.ids.capacity() / 4 {
            self.ids.shrink_to_fit();
            self.projections
                .values_mut()
                .for_each(HashMap::shrink_to_fit);
        }

        self.waiting_ids.push(id);
        if self.waiting_ids.len() > self.ids.len() + MAX_WAITING_IDS {
            self.epoch += 1;
            self.free_ids.append(&mut self.waiting_ids);
        }
    }

    /// Returns the epoch, which changes when a number may come to mean another
    /// set.
    #[must_use]
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the number of a set, if it is in the table.
    #[must_use]
    pub(crate) fn find(&self, set: &Params) -> Option<ParamsId> {
        self.ids.get(set).copied()
    }

    /// Returns the set of a number that this table gave.
    #[must_use]
    pub(crate) fn get(&self, id: ParamsId) -> &Params {
        &self.sets[id.index()]
    }

    /// Returns the number of the projection of a set to these keys. A
    /// projection is computed once, and kept as long as its set.
    pub(crate) fn project(&mut self, id: ParamsId, keys: &Keys) -> ParamsId {
        let projection = self.projections.get(keys).and_then(|ids| ids.get(&id));
        if let Some(&projection) = projection {
            return projection;
        }

        let new_projection = self.intern(self.get(id).project(keys));
        if new_projection != id {
            self.hold(new_projection);
        }
        let ids = self.projections.entry_ref(keys).or_default();
        ids.insert(id, new_projection);
        new_projection
    }

    /// Returns how many sets of the usual size these are: a large one counts as
    /// several.
    pub(crate) fn weight(&self) -> usize {
        self.len() + self.excess
    }

    /// Returns the number of distinct sets, the empty one included.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // it never is
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }
}

/// Returns the number of sets that a set counts as, beyond one.
fn excess(set: &Params) -> usize {
    set.bytes() / SET_BYTES
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
    fn s72_a_large_set_counts_as_several_until_it_is_forgotten() {
        let mut table = ParamsTable::default();
        assert_eq!(table.weight(), 1);
        let long = params(&[("env", &"x".repeat(10 * SET_BYTES))]);
        let id = table.intern(long);
        assert_eq!((table.len(), table.weight()), (2, 12));
        table.hold(id);
        table.release(id);
        assert_eq!(table.weight(), 1);
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
    fn what_nobody_holds_is_forgotten_with_its_projections() {
        let mut table = ParamsTable::new();
        let keys = Keys::new(["a"]);
        let [one, two] = ["1", "2"].map(|b| params(&[("a", "x"), ("b", b)]));
        let (one, two) = (table.intern(one), table.intern(two));
        table.hold(one);
        table.hold(one);
        table.hold(two);
        let category = table.project(one, &keys);
        assert_eq!(table.project(two, &keys), category);
        assert_eq!(table.len(), 4);
        table.release(one);
        assert_eq!(table.len(), 4);
        table.release(one);
        assert_eq!((table.len(), table.project(two, &keys)), (3, category));
        assert_eq!(table.find(&params(&[("a", "x"), ("b", "1")])), None);
        table.release(two);
        assert_eq!(table.len(), 1);
        assert!(table.projections[&keys].is_empty());
        table.release(ParamsId::EMPTY);
        assert_eq!(table.find(&Params::default()), Some(ParamsId::EMPTY));
    }

    #[test]
    fn a_number_means_another_set_only_in_another_epoch() {
        let mut table = ParamsTable::new();
        let mut seen = HashMap::new();
        for nth in 0..5 * MAX_WAITING_IDS {
            let set = params(&[("id", &nth.to_string())]);
            let id = table.intern(set.clone());
            table.hold(id);
            let before = seen.insert((table.epoch(), id), set);
            assert_eq!(before, None);
            table.release(id);
        }
        assert!(table.epoch() >= 3, "{}", table.epoch());
        assert!(
            table.sets.len() <= 2 * (MAX_WAITING_IDS + 2),
            "{}",
            table.sets.len()
        );
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_known_projection_is_not_computed() {
        let mut table = ParamsTable::new();
        let id = table.intern(params(&[("a", "1"), ("b", "2")]));
        let a = table.project(id, &Keys::new(["a"]));
        // A second computation would intern the set again.
        table.ids.clear();
        assert_eq!(table.project(id, &Keys::new(["a"])), a);
        assert!(table.ids.is_empty());
    }
}
