//! Removed names, remembered for a while.
//!
//! A client that subscribes to a glob again does not say which resources it
//! has, so the removals that it missed must be remembered here (S75). Bounded:
//! the oldest are forgotten.

use std::collections::{BTreeMap, HashMap};

use crate::name::{Glob, Name};

/// Names that are remembered for each type.
const MAX_NAMES: usize = 4096;

/// Removed names of one type.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    names_by_age: BTreeMap<u64, Name>,
    ages: HashMap<Name, u64>,
    next_age: u64,
}

impl Tombstones {
    /// Remembers that a name was removed, as the newest. Beyond the limit, the
    /// oldest name is forgotten.
    pub(super) fn add(&mut self, name: &Name) {
        self.remove(name);
        self.names_by_age.insert(self.next_age, name.clone());
        self.ages.insert(name.clone(), self.next_age);
        self.next_age += 1;
        if self.names_by_age.len() > MAX_NAMES
            && let Some((_, oldest)) = self.names_by_age.pop_first()
        {
            self.ages.remove(&oldest);
        }
    }

    /// Forgets a name, which exists again.
    pub(super) fn remove(&mut self, name: &Name) {
        if let Some(age) = self.ages.remove(name) {
            self.names_by_age.remove(&age);
        }
    }

    /// Returns the remembered names that a glob matches, sorted.
    pub(super) fn names_matching(&self, glob: &Glob) -> Vec<Name> {
        let matching_names = self.ages.keys().filter(|name| glob.matches(name));
        let mut names: Vec<_> = matching_names.cloned().collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(id: usize) -> Name {
        Name::new(&format!("xdstp://a/t/g/{id}"))
    }

    fn glob() -> Glob {
        Glob::of(&name(0)).unwrap()
    }

    #[test]
    fn s75_a_name_is_remembered_until_it_exists_again() {
        let mut stones = Tombstones::default();
        stones.add(&name(2));
        stones.add(&name(1));
        stones.add(&name(2));
        stones.add(&Name::new("other"));
        assert_eq!(stones.names_matching(&glob()), [name(1), name(2)]);
        stones.remove(&name(1));
        stones.remove(&name(1));
        assert_eq!(stones.names_matching(&glob()), [name(2)]);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut stones = Tombstones::default();
        for id in 0..MAX_NAMES + 2 {
            stones.add(&name(id));
        }
        let kept = stones.names_matching(&glob());
        assert_eq!(kept.len(), MAX_NAMES);
        assert!(!kept.contains(&name(0)) && !kept.contains(&name(1)));
        assert_eq!(stones.names_by_age.len(), stones.ages.len());
    }
}
