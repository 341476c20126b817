//! Steps along views: how what a wildcard or glob brings gets into responses.
//!
//! A step leads from where a peer stands to the head of its view. It is made
//! once and shared by all streams that stand there. A peer takes it as it is,
//! but for items that are exceptions for it; those are said one by one. A step
//! that is too large for one response is walked in parts.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::{Context, Conversation, Key, Selected};
use crate::database::{Batch, Choice, Database, Item, Scope, Seq, same};
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::Resource;

/// A step that is made in parts (S44). It is shared by all streams that make
/// it; a stream costs two numbers, however large the step is.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) batch: Arc<Batch>,
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
    pub(crate) cursor: usize,
    pub(crate) from: Seq,
    pub(crate) to: Seq,
    /// What the step brings, if the peer takes it as it is; otherwise its
    /// items are among the single names.
    pub(crate) batch: Option<Arc<Batch>>,
    /// Which items of the step this is about.
    pub(crate) part: Range<usize>,
    /// Items of the part that are among the single names, sorted.
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

    /// The same, if it is along the view of this cursor.
    pub(crate) fn brings(&self, cursor: usize, name: &Name) -> Option<&Option<Arc<Resource>>> {
        (self.cursor == cursor).then(|| self.item(name)).flatten()
    }

    fn says(&self, place: usize) -> bool {
        self.part.contains(&place) && self.except.binary_search(&place).is_err()
    }

    /// What it brings in place of something that refers to other resources,
    /// and that.
    pub(crate) fn replaces(&self) -> impl Iterator<Item = (Arc<Resource>, Choice)> + '_ {
        let batch = self.batch.iter();
        let referring = batch.flat_map(|batch| batch.referring.iter().map(move |r| (batch, r)));
        referring.filter_map(move |(batch, (place, old))| {
            let new = batch.items[*place].1.clone();
            self.says(*place)
                .then(|| (Arc::clone(old), new.map_or(Choice::Absent, Choice::Is)))
        })
    }

    /// The variants that it takes away in favour of others (TP2).
    pub(crate) fn left(&self) -> impl Iterator<Item = (Name, Option<Constraints>)> {
        let left = self.batch.iter().flat_map(|batch| &batch.left);
        left.filter(|(name, _)| self.item(name).is_some()).cloned()
    }
}

/// Adds a step to others, so that there are never more than two of one cursor:
/// one that ends, and one that does not. Returns the position to which nobody
/// will come back.
pub(super) fn join(steps: &mut Vec<Step>, next: Step) -> Option<Seq> {
    let before = steps.iter_mut().rfind(|step| step.cursor == next.cursor);
    match before {
        // Another part of the same step.
        Some(before) if before.to == next.to => {
            before.part.end = next.part.end;
            before.except.extend(next.except);
            before.last = next.last;
        }
        _ => steps.push(next.clone()),
    }
    let mut ended = (0..steps.len()).filter(|i| steps[*i].cursor == next.cursor && steps[*i].last);
    let (first, second) = (ended.next()?, ended.next()?);
    let second = steps.remove(second);
    steps[first].to = second.to;
    Some(second.from)
}

impl Conversation {
    /// One step along a view: as it is, if every stream could make it; name by
    /// name if this peer has exceptions; in parts if it is large (S44).
    pub(super) fn select_step(
        &mut self,
        db: &mut Database,
        context: &Context<'_>,
        index: usize,
        budget: &mut usize,
        selected: &mut Selected,
    ) {
        let Some(mut step) = self.next_part(db, index) else {
            return;
        };
        self.fill(db, context, &mut step, budget, selected);
        let (Some(batch), Some(cursor)) = (&step.batch, &mut self.cursors[index]) else {
            return;
        };
        step.last = step.part.end == batch.items.len();
        match cursor
            .walks
            .back_mut()
            .filter(|walk| Arc::ptr_eq(&walk.batch, batch))
        {
            Some(walk) => walk.sent = step.part.end,
            None if step.last => {}
            None => cursor.walks.push_back(Walk {
                batch: Arc::clone(batch),
                sent: step.part.end,
                answered: 0,
            }),
        }
        // Mostly it is the only one, and kept until it is answered.
        selected.steps.reserve_exact(1);
        selected.steps.push(step);
    }

    /// Where the next part begins: in a step that is under way, or in a new one.
    fn next_part(&mut self, db: &mut Database, index: usize) -> Option<Step> {
        let cursor = self.cursors[index].as_mut()?;
        let under_way = cursor.walks.back().filter(|walk| !walk.is_sent());
        let (batch, start) = match under_way {
            Some(walk) => (Arc::clone(&walk.batch), walk.sent),
            None => {
                let (follow, from) = (cursor.follow, cursor.reached);
                if db.head(follow) == from || !db.knows_all(follow) {
                    return None;
                }
                let batch = db.batch(follow, from);
                db.hold(follow, batch.to);
                cursor.reached = batch.to;
                (batch, 0)
            }
        };
        Some(Step {
            cursor: index,
            from: batch.from,
            to: batch.to,
            part: start..start,
            except: Vec::new(),
            last: false,
            batch: Some(batch),
        })
    }

    /// Adds items to a part while there is room.
    fn fill(
        &mut self,
        db: &mut Database,
        context: &Context<'_>,
        step: &mut Step,
        budget: &mut usize,
        selected: &mut Selected,
    ) {
        let Some(batch) = step.batch.clone() else {
            return;
        };
        let said: BTreeSet<_> = selected.keys.iter().map(|(key, _)| key.clone()).collect();
        let regular = self.is_regular(db, step);
        for (place, item) in batch.items.iter().enumerate().skip(step.part.start) {
            let size = item.1.as_ref().map_or(0, |r| r.wire_size());
            let first = place == step.part.start && selected.keys.is_empty();
            if size > *budget && !first {
                *budget = 0;
                return;
            }
            step.part.end = place + 1;
            let plain = regular || self.is_plain(db, step.cursor, item);
            if plain && !self.item_waits(db, context, item) {
                *budget = budget.saturating_sub(size);
                continue;
            }
            step.except.push(place);
            let key = Key::Member(step.cursor, item.0.clone());
            let other = self.has_ask(db, &item.0, self.params)
                || self.cursor_over(&item.0) != Some(step.cursor);
            if !other
                && !said.contains(&key)
                && self.member_slot(db, step.cursor, &item.0).is_some()
            {
                self.select_key(db, context, key, budget, selected);
            }
        }
    }

    /// Whether every item of a step is one that this peer takes as it is: the
    /// step leads to where the view is, and there is nothing else that could
    /// say otherwise. So it is for most peers, and saves looking at each item.
    fn is_regular(&self, db: &Database, step: &Step) -> bool {
        let [Some(cursor)] = &self.cursors[..] else {
            return false;
        };
        cursor.scope == Scope::All
            && cursor.members.is_empty()
            && self.parked.is_empty()
            && self.asks.is_empty()
            && db.head(cursor.follow) == step.to
            && db.knows_all(cursor.follow)
    }

    /// Whether this peer takes an item just as it is: it is no exception, and
    /// it is still current.
    fn is_plain(&self, db: &mut Database, index: usize, (name, item): &Item) -> bool {
        let Some(cursor) = &self.cursors[index] else {
            return false;
        };
        let current = match (self.target(db, &Key::Member(index, name.clone())), item) {
            (Choice::Is(now), Some(then)) => same(&now, then),
            (Choice::Absent, None) => true,
            _ => false,
        };
        current
            && self.cursor_over(name) == Some(index)
            && !cursor.members.contains_key(name)
            && !self.parked.contains_key(name)
            && (self.asks.is_empty() || !self.has_ask(db, name, self.params))
    }

    /// Whether something has to come before an item.
    fn item_waits(&self, db: &mut Database, context: &Context<'_>, (name, item): &Item) -> bool {
        match item {
            Some(resource) => context.order.addition_waits(db, &self.kind, resource),
            None => context.order.removal_waits(db, &self.url, name),
        }
    }
}
