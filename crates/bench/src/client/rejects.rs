//! Which resources a client rejects.

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rejects {
    /// Nothing.
    Nothing,
    /// Every resource.
    Everything,
    /// The resource of this name.
    Name(String),
    /// This part of the changes of resources that it holds, the same for all
    /// clients.
    Part {
        /// From none of them to all.
        part: f64,
        /// Where the choice begins.
        seed: u64,
    },
}

impl Rejects {
    /// Returns whether a resource is rejected: by its name, or by the revision
    /// `change`, if it is a change of one that the client holds.
    pub(crate) fn has(&self, name: &str, change: Option<u32>) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Name(bad) => bad == name,
            Self::Part { part, seed } => change.is_some_and(|revision| {
                // Every change has a revision of its own.
                let seed = seed.wrapping_mul(0x9e37_79b9).wrapping_add(revision.into());
                fastrand::Rng::with_seed(seed).f64() < *part
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_changes_is_rejected_the_same_each_time() {
        let rejected = |part, seed| {
            let rejects = Rejects::Part { part, seed };
            let bad = |revision: &u32| rejects.has("a", Some(*revision));
            (2..1002).filter(bad).collect::<Vec<u32>>()
        };
        let some = rejected(0.2, 1);
        assert!((150..250).contains(&some.len()), "{}", some.len());
        assert_eq!(rejected(0.2, 1), some);
        assert_ne!(rejected(0.2, 2), some);
        assert_eq!((rejected(0.0, 1).len(), rejected(1.0, 1).len()), (0, 1000));
        // A resource that is new to the client is none.
        assert!(!Rejects::Part { part: 1.0, seed: 1 }.has("a", None));
    }
}
