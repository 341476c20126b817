//! Which resource changes next, and how.

use crate::contents::{Kind, Place};

/// What happens to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// It gets a new revision.
    Change,
    /// It is removed.
    Remove,
}

/// Changes of one type, some at a time. A removed resource is put again with
/// the next ones, so that at the end all exist.
#[derive(Debug)]
pub(super) struct Plan {
    kind: Kind,
    resources: usize,
    variants: usize,
    /// The part of all changes that are removals; each needs one more change,
    /// which puts the resource again.
    removals: f64,
    random: fastrand::Rng,
    left: usize,
    made: usize,
    removed: usize,
    /// The resources that are removed now.
    away: Vec<Place>,
}

impl Plan {
    /// Makes a plan of the changes that the flags say, of one type.
    pub(super) fn new(options: &crate::Options, kind: Kind) -> Self {
        Self {
            kind,
            resources: options.resources,
            variants: options.variants.max(1),
            removals: options.removals,
            random: fastrand::Rng::with_seed(options.seed ^ 0x5eed),
            left: options.changes,
            made: 0,
            removed: 0,
            away: Vec::new(),
        }
    }

    /// Returns how many changes are still to be made.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Returns the next changes, `most` at most. There may be fewer: a resource
    /// that is changed or removed already is passed over, and that change is
    /// not made.
    pub(super) fn next(&mut self, most: usize) -> Vec<(Place, Action)> {
        let some = most.min(self.left);
        self.left -= some;
        let back = self.away.drain(..some.min(self.away.len()));
        let mut next: Vec<(Place, Action)> = back.map(|place| (place, Action::Change)).collect();
        for _ in next.len()..some {
            let place = self.random_place();
            // One resource changes once at a time.
            let taken = next.iter().any(|(other, _)| *other == place);
            if taken || self.away.contains(&place) {
                continue;
            }
            let action = self.next_action();
            if action == Action::Remove {
                self.removed += 1;
                self.away.push(place);
            }
            next.push((place, action));
        }
        self.made += next.len();
        next
    }

    /// Returns whether the next change is a removal. Removals are spread
    /// evenly, and leave room to put the resource again.
    fn next_action(&self) -> Action {
        let due = self.removals * (self.made + 1) as f64;
        match self.removed as f64 + 0.5 < due && self.away.len() < self.left {
            true => Action::Remove,
            false => Action::Change,
        }
    }

    /// Returns a random variant of a random resource.
    fn random_place(&mut self) -> Place {
        Place {
            kind: self.kind,
            index: self.random.usize(0..self.resources),
            variant: self.random.usize(0..self.variants),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn plan(changes: usize, removals: f64) -> Plan {
        Plan {
            kind: Kind::Clusters,
            resources: 20,
            variants: 2,
            removals,
            random: fastrand::Rng::with_seed(7),
            left: changes,
            made: 0,
            removed: 0,
            away: Vec::new(),
        }
    }

    #[test]
    fn what_is_removed_comes_back_and_a_part_is_removed() {
        for (batch, removals, expected) in [(1, 0.0, 0..=0), (1, 0.25, 24..=25), (3, 0.5, 40..=50)]
        {
            let mut plan = plan(100, removals);
            let (mut away, mut removed, mut made) = (HashSet::new(), 0, 0);
            while plan.left() > 0 {
                let next = plan.next(batch);
                made += next.len();
                for (place, action) in next {
                    // A removed resource is not removed again.
                    let was_away = away.remove(&place);
                    if action == Action::Remove {
                        assert!(!was_away);
                        away.insert(place);
                        removed += 1;
                    }
                }
            }
            assert!(away.is_empty(), "{removals}: {away:?}");
            assert!(expected.contains(&removed), "{removals}: {removed}");
            assert!((90..=100).contains(&made), "{removals}: {made}");
        }
    }
}
