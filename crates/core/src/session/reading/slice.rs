//! The weight of a name in a slice: a long name takes longer to parse, to hash
//! and to compare than a short one.

use std::iter::Take;
use std::vec::IntoIter;

use crate::message::Locator;

/// Bytes of a name that take about as long as all else that is done for it.
const NAME_BYTES: usize = 256;

/// Returns the part of a slice that a name of this many bytes takes, as a
/// number of short names.
pub(super) fn weight(bytes: usize) -> usize {
    1 + bytes / NAME_BYTES
}

/// Counts the names at the front of a list that are within the budget, and
/// subtracts their weight from it. The last of them may be heavier than what is
/// left of the budget, so that every slice makes progress.
pub(super) fn count_within(list: &[Locator], budget: &mut usize) -> usize {
    let exceeds_budget = |locator: &Locator| {
        let is_over_budget = *budget == 0;
        *budget = budget.saturating_sub(weight(locator.name.len()));
        is_over_budget
    };
    list.iter().position(exceeds_budget).unwrap_or(list.len())
}

/// Takes names off a list, as many as the budget of a slice allows.
pub(super) fn take_slice<'l>(
    list: &'l mut IntoIter<Locator>,
    budget: &mut usize,
) -> Take<&'l mut IntoIter<Locator>> {
    let count = count_within(list.as_slice(), budget);
    list.by_ref().take(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(lengths: &[usize]) -> Vec<Locator> {
        let name = |length: &usize| Locator::from("n".repeat(*length).as_str());
        lengths.iter().map(name).collect()
    }

    #[test]
    fn s85_a_slice_has_fewer_names_if_they_are_long() {
        for (lengths, slice, taken, rest) in [
            (&[1, 1, 1][..], 2, 2, 0),
            (&[1, 1], 5, 2, 3),
            (&[4096, 1], 17, 1, 0),
            (&[4096, 1], 18, 2, 0),
            // A name that is heavier than a slice is one all the same.
            (&[4096, 1], 1, 1, 0),
            (&[], 3, 0, 3),
            (&[1], 0, 0, 0),
        ] {
            let mut list = names(lengths).into_iter();
            let mut left = slice;
            assert_eq!(
                take_slice(&mut list, &mut left).count(),
                taken,
                "{lengths:?}"
            );
            assert_eq!(left, rest, "{lengths:?}");
            assert_eq!(list.len(), lengths.len() - taken);
        }
    }
}
