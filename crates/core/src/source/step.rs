//! Steps along views: how what a wildcard or glob brings gets into responses.
//!
//! A step leads from where a peer stands to the head of its view. It is made
//! once and shared by all streams that stand there. A peer takes it as it is,
//! but for items that are exceptions for it; those are said one by one. A step
//! that is too large for one response is walked in parts.

use std::sync::Arc;

use super::holdings::{Step, Walk};
use super::{Context, Conversation, Selected};
use crate::database::{Choice, CursorId, Database, Item, Scope, same_resource};

impl Conversation {
    /// One step along a view: as it is, if every stream could make it; name by
    /// name if this peer has exceptions; in parts if it is large (S44).
    pub(super) fn select_step(
        &mut self,
        db: &mut Database,
        context: &Context<'_>,
        follow: CursorId,
        budget: &mut usize,
        selected: &mut Selected,
    ) {
        let Some(mut step) = self.next_part(db, follow) else {
            return;
        };
        self.fill(db, context, &mut step, budget, selected);
        let (Some(batch), Some(view)) = (&step.batch, self.holdings.view_mut(follow)) else {
            return;
        };
        step.last = step.part.end == batch.items.len();
        match view
            .walks
            .back_mut()
            .filter(|walk| Arc::ptr_eq(&walk.batch, batch))
        {
            Some(walk) => walk.sent = step.part.end,
            None if step.last => {}
            None => view.walks.push_back(Walk {
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
    fn next_part(&mut self, db: &mut Database, follow: CursorId) -> Option<Step> {
        let view = self.holdings.view_mut(follow)?;
        let under_way = view.walks.back().filter(|walk| !walk.is_sent());
        let (batch, start) = match under_way {
            Some(walk) => (Arc::clone(&walk.batch), walk.sent),
            None => {
                let from = view.reached;
                if db.head(follow) == from || !db.is_complete(follow) {
                    return None;
                }
                let batch = db.view_changes(follow, from);
                db.pin(follow, batch.to);
                view.reached = batch.to;
                (batch, 0)
            }
        };
        Some(Step {
            follow: Some(follow),
            from: batch.from,
            to: batch.to,
            part: start..start,
            except: Vec::new(),
            last: false,
            batch: Some(batch),
        })
    }

    /// Adds items to a part while there is room. An item that this peer cannot
    /// take as it is becomes an exception, and is looked at by its name.
    fn fill(
        &mut self,
        db: &mut Database,
        context: &Context<'_>,
        step: &mut Step,
        budget: &mut usize,
        selected: &Selected,
    ) {
        let (Some(batch), Some(follow)) = (step.batch.clone(), step.follow) else {
            return;
        };
        let regular = self.is_regular(db, step);
        for (place, item) in batch.items.iter().enumerate().skip(step.part.start) {
            let size = item.1.as_ref().map_or(0, |r| r.wire_size());
            let first =
                place == step.part.start && selected.says.is_empty() && selected.answers.is_empty();
            if size > *budget && !first {
                *budget = 0;
                return;
            }
            step.part.end = place + 1;
            let plain = regular || self.is_plain(db, follow, item);
            if plain && !self.item_waits(db, context, item) {
                *budget = budget.saturating_sub(size);
                continue;
            }
            step.except.push(place);
            let name = &item.0;
            let own = self
                .holdings
                .covering(name)
                .is_some_and(|view| view.follow == follow);
            // It may have become an exception since the step began.
            if own {
                self.holdings.except(db, name);
                self.pending.insert(name.clone());
            }
        }
    }

    /// Whether every item of a step is one that this peer takes as it is: the
    /// step leads to where the view is, and there is nothing else that could
    /// say otherwise. So it is for most peers, and saves looking at each item.
    fn is_regular(&self, db: &Database, step: &Step) -> bool {
        let [view] = self.holdings.views() else {
            return false;
        };
        view.scope == Scope::All
            && self.holdings.exceptions().is_empty()
            && self.holdings.steps_are_plain()
            && self.parked.is_empty()
            && self.wants.is_empty()
            && db.head(view.follow) == step.to
            && db.is_complete(view.follow)
    }

    /// Whether this peer takes an item just as it is: it is no exception, it is
    /// still current, and all that it takes the place of goes with it.
    fn is_plain(&self, db: &mut Database, follow: CursorId, (name, item): &Item) -> bool {
        if self.holdings.exceptions().contains(name)
            || self.holdings.may_keep_other(name, item.as_ref())
        {
            return false;
        }
        let own = self.holdings.covering(name);
        if own.is_none_or(|view| view.follow != follow) {
            return false;
        }
        match (self.brought(db, name), item) {
            (Some(Choice::Resource(now)), Some(then)) => same_resource(&now, then),
            (Some(Choice::Absent), None) => true,
            _ => false,
        }
    }

    /// Whether something has to come before an item.
    fn item_waits(&self, db: &mut Database, context: &Context<'_>, (name, item): &Item) -> bool {
        match item {
            Some(resource) => context.order.addition_waits(db, &self.kind, resource),
            None => context
                .order
                .removal_waits(db, &self.url, name, (false, false)),
        }
    }
}
