//! Advances of a cursor along its view, as responses contain them.

use std::ops::Range;
use std::sync::Arc;

use super::cached::Variant;
use crate::database::{CursorId, Item, Position, ViewChanges};
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::Resource;

/// An advance that is too large for one response (S44). All streams that make
/// it share its changes, so it costs a stream two numbers, however large it is.
#[derive(Debug)]
pub(crate) struct PartialAdvance {
    pub(crate) changes: Arc<ViewChanges>,
    /// The number of items that were sent.
    pub(crate) sent_count: usize,
    /// The number of items that were acknowledged.
    pub(crate) acknowledged_count: usize,
}

impl PartialAdvance {
    /// Returns whether every item of the advance was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent_count == self.changes.items.len()
    }
}

/// The advance of one cursor by one response, which may be a part of a larger
/// one.
#[derive(Clone, Debug)]
pub(crate) struct Advance {
    /// The cursor that advances; `None` if it was closed since.
    pub(crate) cursor: Option<CursorId>,
    pub(crate) from: Position,
    pub(crate) to: Position,
    /// The changes of the view; `None` if they are among the updates of the
    /// response.
    pub(crate) changes: Option<Arc<ViewChanges>>,
    /// The items of the changes that this response has.
    pub(crate) range: Range<usize>,
    /// Items of the range that are sent as updates of their names, sorted.
    pub(crate) excluded: Vec<usize>,
    /// Whether the range ends with the last item.
    pub(crate) is_last: bool,
}

impl Advance {
    /// Returns whether the advance has no item.
    pub(crate) fn is_empty(&self) -> bool {
        self.items().next().is_none()
    }

    /// Returns the items of the advance's range, without the excluded ones.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        let changes = self.changes.as_ref();
        let items = changes.map_or(&[][..], |changes| &changes.items[self.range.clone()]);
        let indexed_items = self.range.clone().zip(items);
        let is_included = |(index, _): &(usize, _)| self.excluded.binary_search(index).is_err();
        indexed_items.filter(is_included).map(|(_, item)| item)
    }

    /// Returns the item of a name: `Some(None)` if the item is a removal,
    /// `None` if the advance has no item of the name.
    pub(crate) fn item(&self, name: &Name) -> Option<&Option<Arc<Resource>>> {
        let changes = self.changes.as_ref()?;
        let index = changes.find(name).filter(|index| self.includes(*index))?;
        Some(&changes.items[index].1)
    }

    /// Returns whether the item at an index of the changes is in the range and
    /// not excluded.
    fn includes(&self, index: usize) -> bool {
        self.range.contains(&index) && self.excluded.binary_search(&index).is_err()
    }

    /// Returns the replaced resources that refer to others, each with the one
    /// that replaces it; `None` if it is removed.
    pub(crate) fn replacements(
        &self,
    ) -> impl Iterator<Item = (&Arc<Resource>, Option<&Arc<Resource>>)> {
        let changes = self.changes.iter();
        changes.flat_map(|changes| {
            let referrers = changes.replaced_referrers.iter();
            let included_referrers = referrers.filter(|(index, _)| self.includes(*index));
            included_referrers.map(|(index, old)| (old, changes.items[*index].1.as_ref()))
        })
    }

    /// Returns the variants of the advance's items that are removed, or that
    /// other variants replace (TP2).
    pub(crate) fn replaced_variants(&self) -> impl Iterator<Item = Variant> {
        let variants = self.all_replaced_variants();
        let included_variants = variants.filter(|(name, _)| self.item(name).is_some());
        included_variants.cloned()
    }

    /// Returns the constraints of the variant of a name that another variant
    /// replaces, or that is removed; `None` if the same variant changes or is
    /// new.
    pub(crate) fn replaced_variant_of(&self, name: &Name) -> Option<&Option<Constraints>> {
        let mut variants = self.all_replaced_variants();
        variants
            .find(|(other, _)| other == name)
            .map(|(_, constraints)| constraints)
    }

    /// Returns the replaced and removed variants of all items of the changes,
    /// whether they are in the range or not.
    fn all_replaced_variants(&self) -> impl Iterator<Item = &Variant> {
        let changes = self.changes.iter();
        changes.flat_map(|changes| &changes.replaced_variants)
    }

    /// Returns the variant that the client loses by an item, or `None` if the
    /// item is an upsert that replaces no other variant. A removal removes the
    /// variant without constraints, unless another one is known.
    pub(crate) fn removed_variant(
        &self,
        name: &Name,
        item: Option<&Arc<Resource>>,
    ) -> Option<Variant> {
        let replaced_constraints = self.replaced_variant_of(name).cloned();
        let constraints = match item {
            Some(_) => replaced_constraints?,
            None => replaced_constraints.unwrap_or_default(),
        };
        Some((name.clone(), constraints))
    }
}

/// Adds an advance to the advances of a response, which may be of several
/// cursors. Each cursor has at most two advances there: a complete one, and one
/// that is sent in part. Where two complete ones are joined, returns the
/// position between them, to which no cursor returns any more; else `None`.
pub(crate) fn merge_advance(advances: &mut Vec<Advance>, next: Advance) -> Option<Position> {
    let previous = advances
        .iter_mut()
        .rfind(|advance| advance.cursor == next.cursor);
    match previous {
        // The next part of the same advance.
        Some(previous) if previous.to == next.to => {
            previous.range.end = next.range.end;
            previous.excluded.extend(next.excluded);
            previous.is_last = next.is_last;
        }
        _ => advances.push(next.clone()),
    }

    let is_complete = |advance: &Advance| advance.cursor == next.cursor && advance.is_last;
    let mut complete_indexes = (0..advances.len()).filter(|index| is_complete(&advances[*index]));
    let (first_index, second_index) = (complete_indexes.next()?, complete_indexes.next()?);
    let second = advances.remove(second_index);
    advances[first_index].to = second.to;
    Some(second.from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Scope};
    use crate::params::Params;

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

    #[test]
    fn advances_of_two_cursors_stay_apart() {
        let mut db = Database::new();
        let params = db.intern_params(Params::default());
        let (stream, type_id) = (db.open_stream(), db.type_id(&"t".into()));
        let subscriber = db.add_subscriber(stream, type_id, params);
        let cursor = db.open_cursor(subscriber, &Scope::All);
        let of = |cursor, advance| Advance { cursor, ..advance };

        let mut advances = Vec::new();
        merge_advance(&mut advances, of(None, advance((0, 5), 0..1, true)));
        let next = of(Some(cursor), advance((5, 9), 0..1, true));
        assert_eq!(merge_advance(&mut advances, next), None);
        assert_eq!(advances.len(), 2);
        // One that is complete and one that is not are of one cursor.
        let next = of(Some(cursor), advance((9, 12), 0..1, false));
        assert_eq!(merge_advance(&mut advances, next), None);
        assert_eq!(advances.len(), 3);
    }
}
