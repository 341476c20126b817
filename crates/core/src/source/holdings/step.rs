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
pub(crate) struct Walk {
    pub(crate) batch: Arc<ViewChanges>,
    /// Items before this one were sent.
    pub(crate) sent: usize,
    /// Items before this one have been answered.
    pub(crate) answered: usize,
}

impl Walk {
    /// Whether all of it was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent == self.batch.items.len()
    }
}

/// One step along a view, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The view; `None` if it is followed no longer.
    pub(crate) follow: Option<CursorId>,
    pub(crate) from: Position,
    pub(crate) to: Position,
    /// What the step brings, if the peer takes it as it is; otherwise its
    /// items are among what is said name by name.
    pub(crate) batch: Option<Arc<ViewChanges>>,
    /// Which items of the step this is about.
    pub(crate) part: Range<usize>,
    /// Items of the part that are said name by name, sorted.
    pub(crate) except: Vec<usize>,
    /// Whether the step ends here.
    pub(crate) last: bool,
}

impl Step {
    /// Whether it brings nothing that has to be said.
    pub(crate) fn is_silent(&self) -> bool {
        self.items().next().is_none()
    }

    /// What it brings.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        let part = self
            .batch
            .as_ref()
            .map_or(&[][..], |b| &b.items[self.part.clone()]);
        let places = self.part.clone().zip(part);
        let said = |(place, _): &(usize, _)| self.except.binary_search(place).is_err();
        places.filter(said).map(|(_, item)| item)
    }

    /// What it brings under a name; `None` if it does not speak of it.
    pub(crate) fn item(&self, name: &Name) -> Option<&Option<Arc<Resource>>> {
        let batch = self.batch.as_ref()?;
        let place = batch.find(name).filter(|place| self.says(*place))?;
        Some(&batch.items[place].1)
    }

    fn says(&self, place: usize) -> bool {
        self.part.contains(&place) && self.except.binary_search(&place).is_err()
    }

    /// What it brings in place of something that refers to other resources,
    /// beside that.
    pub(crate) fn replaces(
        &self,
    ) -> impl Iterator<Item = (&Arc<Resource>, Option<&Arc<Resource>>)> {
        let batch = self.batch.iter();
        let referring =
            batch.flat_map(|batch| batch.replaced_referrers.iter().map(move |r| (batch, r)));
        referring.filter_map(move |(batch, (place, old))| {
            let new = batch.items[*place].1.as_ref();
            self.says(*place).then_some((old, new))
        })
    }

    /// The variants that it takes away in favour of others (TP2).
    pub(crate) fn left(&self) -> impl Iterator<Item = (Name, Option<Constraints>)> {
        let left = self.batch.iter().flat_map(|batch| &batch.replaced_variants);
        left.filter(|(name, _)| self.item(name).is_some()).cloned()
    }

    /// The constraints of the variant of a name that it takes away.
    pub(crate) fn left_of(&self, name: &Name) -> Option<&Option<Constraints>> {
        let mut left = self.batch.iter().flat_map(|batch| &batch.replaced_variants);
        left.find(|(other, _)| other == name).map(|(_, old)| old)
    }
}

/// Adds a step to others, so that there are never more than two of one view:
/// one that ends, and one that does not. Returns the position to which nobody
/// will come back.
pub(crate) fn join(steps: &mut Vec<Step>, next: Step) -> Option<Position> {
    let before = steps.iter_mut().rfind(|step| step.follow == next.follow);
    match before {
        // Another part of the same step.
        Some(before) if before.to == next.to => {
            before.part.end = next.part.end;
            before.except.extend(next.except);
            before.last = next.last;
        }
        _ => steps.push(next.clone()),
    }
    let mut ended = (0..steps.len()).filter(|i| steps[*i].follow == next.follow && steps[*i].last);
    let (first, second) = (ended.next()?, ended.next()?);
    let second = steps.remove(second);
    steps[first].to = second.to;
    Some(second.from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step((from, to): (Position, Position), part: Range<usize>, last: bool) -> Step {
        Step {
            follow: None,
            from,
            to,
            batch: None,
            part,
            except: Vec::new(),
            last,
        }
    }

    #[test]
    fn parts_of_a_step_become_one_and_so_do_steps_that_end() {
        let mut steps = Vec::new();
        assert_eq!(join(&mut steps, step((0, 5), 0..2, false)), None);
        assert_eq!(join(&mut steps, step((0, 5), 2..4, true)), None);
        assert_eq!((steps.len(), steps[0].part.clone()), (1, 0..4));
        assert!(steps[0].last);
        let between = join(&mut steps, step((5, 9), 0..1, true));
        assert_eq!(
            (between, steps.len()),
            (Some(5), 1),
            "nobody goes back to 5"
        );
        assert_eq!((steps[0].from, steps[0].to), (0, 9));
    }
}
