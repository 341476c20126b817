//! Steps along views: how what a wildcard or glob brings gets into responses.
//!
//! A step leads from where a peer stands to the head of its view. It is made
//! once and shared by all streams that stand there. A peer takes it as it is,
//! but for items that are exceptions for it; those are said one by one. A step
//! that is too large for one response is walked in parts.

use std::sync::Arc;

use super::client_cache::{Advance, PartialAdvance};
use super::{Push, PushContext, TypeStream};
use crate::database::{Choice, CursorId, Database, Item, Scope, same_resource};

impl TypeStream {
    /// One step along a view: as it is, if every stream could make it; name by
    /// name if this peer has exceptions; in parts if it is large (S44).
    pub(super) fn select_advance(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        cursor: CursorId,
        budget: &mut usize,
        push: &mut Push,
    ) {
        let Some(mut advance) = self.next_advance(db, cursor) else {
            return;
        };
        self.fill_advance(db, context, &mut advance, budget, push);
        let (Some(changes), Some(view)) = (&advance.changes, self.client_cache.cursor_mut(cursor))
        else {
            return;
        };
        advance.is_last = advance.range.end == changes.items.len();
        match view
            .partial_advances
            .back_mut()
            .filter(|partial_advance| Arc::ptr_eq(&partial_advance.changes, changes))
        {
            Some(partial_advance) => partial_advance.sent = advance.range.end,
            None if advance.is_last => {}
            None => view.partial_advances.push_back(PartialAdvance {
                changes: Arc::clone(changes),
                sent: advance.range.end,
                acknowledged: 0,
            }),
        }
        // Mostly it is the only one, and kept until it is answered.
        push.advances.reserve_exact(1);
        push.advances.push(advance);
    }

    /// Where the next part begins: in a step that is under way, or in a new one.
    fn next_advance(&mut self, db: &mut Database, cursor: CursorId) -> Option<Advance> {
        let view = self.client_cache.cursor_mut(cursor)?;
        let under_way = view
            .partial_advances
            .back()
            .filter(|partial_advance| !partial_advance.is_sent());
        let (changes, start) = match under_way {
            Some(partial_advance) => (Arc::clone(&partial_advance.changes), partial_advance.sent),
            None => {
                if !view.has_changes(db) || !db.is_complete(cursor) {
                    return None;
                }
                let changes = match view.unsent_resume_point() {
                    Some(point) => db.resumed_changes(cursor, point),
                    None => db.view_changes(cursor, view.sent_position),
                };
                view.is_resume_sent = true;
                db.pin(cursor, changes.to);
                view.sent_position = changes.to;
                (changes, 0)
            }
        };
        Some(Advance {
            cursor: Some(cursor),
            from: changes.from,
            to: changes.to,
            range: start..start,
            excluded: Vec::new(),
            is_last: false,
            changes: Some(changes),
        })
    }

    /// Adds items to a part while there is room. An item that this peer cannot
    /// take as it is becomes an exception, and is looked at by its name.
    fn fill_advance(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        advance: &mut Advance,
        budget: &mut usize,
        push: &Push,
    ) {
        let (Some(changes), Some(cursor)) = (advance.changes.clone(), advance.cursor) else {
            return;
        };
        let regular = self.takes_all_items(db, advance);
        for (place, item) in changes.items.iter().enumerate().skip(advance.range.start) {
            let size = item.1.as_ref().map_or(0, |r| r.wire_size());
            let first =
                place == advance.range.start && push.updates.is_empty() && push.answers.is_empty();
            if size > *budget && !first {
                *budget = 0;
                return;
            }
            advance.range.end = place + 1;
            let plain = regular || self.takes_item(db, cursor, item);
            if plain && !self.must_defer_item(db, context, item) {
                *budget = budget.saturating_sub(size);
                continue;
            }
            advance.excluded.push(place);
            let name = &item.0;
            let own = self
                .client_cache
                .covering_cursor(name)
                .is_some_and(|view| view.id == cursor);
            // It may have become an exception since the step began.
            if own {
                self.client_cache.make_exception(db, name);
                self.dirty.insert(name.clone());
            }
        }
    }

    /// Whether every item of a step is one that this peer takes as it is: the
    /// step leads to where the view is, and there is nothing else that could
    /// say otherwise. So it is for most peers, and saves looking at each item.
    fn takes_all_items(&self, db: &Database, advance: &Advance) -> bool {
        let [view] = self.client_cache.cursors() else {
            return false;
        };
        view.scope == Scope::All
            && self.client_cache.exceptions().is_empty()
            && self.client_cache.pending_acks_only_add()
            && self.quarantine.is_empty()
            && self.subscriptions.is_empty()
            && db.head(view.id) == advance.to
            && db.is_complete(view.id)
    }

    /// Whether this peer takes an item just as it is: it is no exception, it is
    /// still current, and all that it takes the place of goes with it.
    fn takes_item(&self, db: &mut Database, cursor: CursorId, (name, item): &Item) -> bool {
        if self.client_cache.exceptions().contains(name)
            || self
                .client_cache
                .may_keep_other_variant(name, item.as_ref())
        {
            return false;
        }
        let own = self.client_cache.covering_cursor(name);
        if own.is_none_or(|view| view.id != cursor) {
            return false;
        }
        match (self.cursor_choice(db, name), item) {
            (Some(Choice::Resource(now)), Some(then)) => same_resource(&now, then),
            (Some(Choice::Absent), None) => true,
            _ => false,
        }
    }

    /// Whether something has to come before an item.
    fn must_defer_item(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        (name, item): &Item,
    ) -> bool {
        match item {
            Some(resource) => context.order.must_defer_addition(db, &self.kind, resource),
            None => context
                .order
                .must_defer_removal(db, &self.type_url, name, (false, false)),
        }
    }
}
