//! One step along a view, as a response says it.

use std::ops::Range;
use std::sync::Arc;

use crate::database::{CursorId, Item, Position, ViewChanges};
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::Resource;

/// A step that is made in parts (S44). It is shared by all streams that make
/// it; a stream costs two numbers, however large the step is.
#[derive(Debug)]
pub(crate) struct PartialAdvance {
    pub(crate) changes: Arc<ViewChanges>,
    /// Items before this one were sent.
    pub(crate) sent: usize,
    /// Items before this one have been answered.
    pub(crate) acknowledged: usize,
}

impl PartialAdvance {
    /// Whether all of it was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent == self.changes.items.len()
    }
}

/// One step along a view, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Advance {
    /// The view; `None` if it is followed no longer.
    pub(crate) cursor: Option<CursorId>,
    pub(crate) from: Position,
    pub(crate) to: Position,
    /// The changes of the view, if the client takes them as they are; otherwise
    /// they are among the updates.
    pub(crate) changes: Option<Arc<ViewChanges>>,
    /// Which items of the step this is about.
    pub(crate) range: Range<usize>,
    /// Items of the part that are said name by name, sorted.
    pub(crate) excluded: Vec<usize>,
    /// Whether the step ends here.
    pub(crate) is_last: bool,
}

impl Advance {
    /// Whether it brings nothing that has to be said.
    pub(crate) fn is_empty(&self) -> bool {
        self.items().next().is_none()
    }

    /// What it brings.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        let part = self
            .changes
            .as_ref()
            .map_or(&[][..], |b| &b.items[self.range.clone()]);
        let places = self.range.clone().zip(part);
        let updated = |(place, _): &(usize, _)| self.excluded.binary_search(place).is_err();
        places.filter(updated).map(|(_, item)| item)
    }

    /// What it brings under a name; `None` if it does not speak of it.
    pub(crate) fn item(&self, name: &Name) -> Option<&Option<Arc<Resource>>> {
        let changes = self.changes.as_ref()?;
        let place = changes.find(name).filter(|place| self.includes(*place))?;
        Some(&changes.items[place].1)
    }

    fn includes(&self, place: usize) -> bool {
        self.range.contains(&place) && self.excluded.binary_search(&place).is_err()
    }

    /// What it brings in place of something that refers to other resources,
    /// beside that.
    pub(crate) fn replacements(
        &self,
    ) -> impl Iterator<Item = (&Arc<Resource>, Option<&Arc<Resource>>)> {
        let changes = self.changes.iter();
        let referring = changes
            .flat_map(|changes| changes.replaced_referrers.iter().map(move |r| (changes, r)));
        referring.filter_map(move |(changes, (place, old))| {
            let new = changes.items[*place].1.as_ref();
            self.includes(*place).then_some((old, new))
        })
    }

    /// The variants that it takes away in favour of others (TP2).
    pub(crate) fn replaced_variants(&self) -> impl Iterator<Item = (Name, Option<Constraints>)> {
        let left = self
            .changes
            .iter()
            .flat_map(|changes| &changes.replaced_variants);
        left.filter(|(name, _)| self.item(name).is_some()).cloned()
    }

    /// The constraints of the variant of a name that it takes away.
    pub(crate) fn replaced_variant_of(&self, name: &Name) -> Option<&Option<Constraints>> {
        let mut left = self
            .changes
            .iter()
            .flat_map(|changes| &changes.replaced_variants);
        left.find(|(other, _)| other == name).map(|(_, old)| old)
    }
}

/// Adds a step to others, so that there are never more than two of one view:
/// one that ends, and one that does not. Returns the position to which nobody
/// will come back.
pub(crate) fn merge_advance(advances: &mut Vec<Advance>, next: Advance) -> Option<Position> {
    let before = advances
        .iter_mut()
        .rfind(|advance| advance.cursor == next.cursor);
    match before {
        // Another part of the same step.
        Some(before) if before.to == next.to => {
            before.range.end = next.range.end;
            before.excluded.extend(next.excluded);
            before.is_last = next.is_last;
        }
        _ => advances.push(next.clone()),
    }
    let mut ended =
        (0..advances.len()).filter(|i| advances[*i].cursor == next.cursor && advances[*i].is_last);
    let (first, second) = (ended.next()?, ended.next()?);
    let second = advances.remove(second);
    advances[first].to = second.to;
    Some(second.from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advance((from, to): (Position, Position), part: Range<usize>, last: bool) -> Advance {
        Advance {
            cursor: None,
            from,
            to,
            changes: None,
            range: part,
            excluded: Vec::new(),
            is_last: last,
        }
    }

    #[test]
    fn parts_of_a_step_become_one_and_so_do_steps_that_end() {
        let mut advances = Vec::new();
        assert_eq!(
            merge_advance(&mut advances, advance((0, 5), 0..2, false)),
            None
        );
        assert_eq!(
            merge_advance(&mut advances, advance((0, 5), 2..4, true)),
            None
        );
        assert_eq!((advances.len(), advances[0].range.clone()), (1, 0..4));
        assert!(advances[0].is_last);
        let between = merge_advance(&mut advances, advance((5, 9), 0..1, true));
        assert_eq!(
            (between, advances.len()),
            (Some(5), 1),
            "nobody goes back to 5"
        );
        assert_eq!((advances[0].from, advances[0].to), (0, 9));
    }
}
