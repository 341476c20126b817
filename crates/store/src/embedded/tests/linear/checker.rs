//! Whether a history of concurrent operations could have happened one after the
//! other: a linearizability checker after Wing and Gong, with the memory of
//! Lowe. States that were reached with the same operations done are tried once.

use std::collections::HashSet;
use std::hash::Hash;

/// What operations mean, one after the other.
pub(super) trait Model {
    type State: Clone + Eq + Hash + Default;
    type Done;

    /// Returns the state after an operation; `None` if it could not have had
    /// its result in this state.
    fn step(state: &Self::State, done: &Self::Done) -> Option<Self::State>;
}

/// An operation with its result.
#[derive(Clone, Debug)]
pub(super) struct Operation<D> {
    pub(super) done: D,
    /// The moment at which it was called.
    pub(super) called: u64,
    /// The moment at which it returned; `None` if nobody knows whether it took
    /// effect, and when.
    pub(super) returned: Option<u64>,
}

/// Returns whether there is an order of the operations in which each has its
/// result, and none comes before another that had returned before it was called.
pub(super) fn is_linearizable<M: Model>(history: &[Operation<M::Done>]) -> bool {
    assert!(history.len() <= 128, "more than fit into a set of bits");
    let known = history.iter().enumerate();
    let known = known.filter(|(_, it)| it.returned.is_some());
    let must = known.fold(0u128, |set, (nth, _)| set | 1 << nth);
    let mut seen = HashSet::new();
    let mut open = vec![(0u128, M::State::default())];
    while let Some((done, state)) = open.pop() {
        if done & must == must {
            return true;
        }
        for (nth, operation) in history.iter().enumerate() {
            if done >> nth & 1 == 1 || !may_be_next(history, done, operation) {
                continue;
            }
            let Some(next) = M::step(&state, &operation.done) else {
                continue;
            };
            let key = (done | 1 << nth, next);
            if seen.insert(key.clone()) {
                open.push(key);
            }
        }
    }
    false
}

/// Returns whether no operation that is not done had returned before this one
/// was called.
fn may_be_next<D>(history: &[Operation<D>], done: u128, operation: &Operation<D>) -> bool {
    let mut waiting = history.iter().enumerate();
    waiting.all(|(nth, other)| {
        done >> nth & 1 == 1 || other.returned.is_none_or(|at| at >= operation.called)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One register.
    struct Register;

    #[derive(Clone, Copy)]
    enum Done {
        Write(u8),
        Read(u8),
    }
    use Done::{Read, Write};

    impl Model for Register {
        type State = u8;
        type Done = Done;

        fn step(state: &u8, done: &Done) -> Option<u8> {
            match done {
                Write(value) => Some(*value),
                Read(value) => (value == state).then_some(*state),
            }
        }
    }

    fn check(history: &[(Done, u64, u64)]) -> bool {
        let history = history.iter().map(|(done, called, returned)| Operation {
            done: *done,
            called: *called,
            returned: (*returned != 0).then_some(*returned),
        });
        is_linearizable::<Register>(&history.collect::<Vec<_>>())
    }

    #[test]
    fn operations_that_overlap_may_have_either_order() {
        assert!(check(&[]));
        assert!(check(&[(Write(1), 1, 4), (Read(0), 2, 3)]));
        assert!(check(&[(Write(1), 1, 4), (Read(1), 2, 3)]));
        let both = [(Write(1), 1, 5), (Write(2), 2, 6), (Read(1), 7, 8)];
        assert!(check(&both));
        let many = [
            (Write(1), 1, 9),
            (Read(0), 2, 3),
            (Read(1), 4, 5),
            (Read(1), 6, 7),
        ];
        assert!(check(&many));
    }

    #[test]
    fn what_nobody_can_have_seen_is_refused() {
        assert!(!check(&[(Read(1), 1, 2)]));
        let stale = [(Write(1), 1, 2), (Read(0), 3, 4)];
        assert!(!check(&stale));
        let lost = [(Write(1), 1, 2), (Write(2), 3, 4), (Read(1), 5, 6)];
        assert!(!check(&lost));
        // One reader saw it, and a later one did not.
        let back = [(Write(1), 1, 9), (Read(1), 2, 3), (Read(0), 4, 5)];
        assert!(!check(&back));
        // Two readers saw two writes in different orders.
        let torn = [
            (Write(1), 1, 9),
            (Write(2), 1, 9),
            (Read(1), 2, 3),
            (Read(2), 4, 5),
            (Read(1), 6, 7),
        ];
        assert!(!check(&torn));
    }

    #[test]
    fn what_is_not_known_may_have_happened_at_any_time_or_never() {
        assert!(check(&[(Write(1), 1, 0), (Read(0), 2, 3)]));
        assert!(check(&[(Write(1), 1, 0), (Read(0), 2, 3), (Read(1), 4, 5)]));
        assert!(!check(&[(Read(1), 1, 2), (Write(1), 3, 0)]));
    }
}
