//! Advances of cursors: how the resources of a wildcard or glob get into
//! responses.
//!
//! An advance leads from the position of a cursor to the head of its view. Its
//! changes are worked out once and shared by all streams at that position. A
//! client is sent them as they are, but for items that are exceptions for it;
//! those become updates of their names. An advance that is too large for one
//! response is sent in parts.

use std::sync::Arc;

use super::client_cache::{Advance, PartialAdvance};
use super::{Push, PushContext, TypeStream};
use crate::database::{Choice, CursorId, Database, Item, same_resource};
use crate::name::Name;
use crate::order::Removal;

impl TypeStream {
    /// Adds the next advance of a cursor to a push, or as much of it as the
    /// budget of bytes has room for, and takes its size off the budget (S44).
    /// Adds nothing if the cursor is at the head of its view.
    pub(super) fn select_advance(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        cursor: CursorId,
        budget: &mut usize,
        push: &mut Push,
    ) {
        let Some(mut advance) = self.begin_advance(db, cursor) else {
            return;
        };
        self.fill_advance(db, context, &mut advance, budget, push);
        self.record_partial(&mut advance);
        // Mostly it is the only one, and kept until it is acknowledged.
        push.advances.reserve_exact(1);
        push.advances.push(advance);
    }

    /// Begins the next part of a cursor's advance, still without items: the
    /// part after one that was sent, or the first part of a new advance. A new
    /// advance moves the cursor's sent position to the head of its view, and
    /// pins the head. Returns `None` if the cursor is there already, or the
    /// scope is not complete.
    fn begin_advance(&mut self, db: &mut Database, id: CursorId) -> Option<Advance> {
        let cursor = self.client_cache.cursor_mut(id)?;
        let partial = cursor.partial_advances.back();
        let (changes, start) = match partial.filter(|partial| !partial.is_sent()) {
            Some(partial) => (Arc::clone(&partial.changes), partial.sent_count),
            None => {
                if !cursor.has_changes(db) || !db.is_complete(id) {
                    return None;
                }
                let changes = match cursor.unsent_resume_point() {
                    Some(point) => db.resumed_changes(id, point),
                    None => db.view_changes(id, cursor.sent_position),
                };
                cursor.is_resume_sent = true;
                db.pin(id, changes.to);
                cursor.sent_position = changes.to;
                (changes, 0)
            }
        };

        Some(Advance {
            cursor: Some(id),
            from: changes.from,
            to: changes.to,
            range: start..start,
            excluded: Vec::new(),
            is_last: false,
            changes: Some(changes),
        })
    }

    /// Marks an advance whose range ends with the last item, and records at the
    /// cursor how far it was sent, unless all of it fits into one response.
    fn record_partial(&mut self, advance: &mut Advance) {
        let cursor = advance.cursor;
        let cursor = cursor.and_then(|cursor| self.client_cache.cursor_mut(cursor));
        let (Some(changes), Some(cursor)) = (&advance.changes, cursor) else {
            return;
        };

        advance.is_last = advance.range.end == changes.items.len();
        let partial = cursor.partial_advances.back_mut();
        match partial.filter(|partial| Arc::ptr_eq(&partial.changes, changes)) {
            Some(partial) => partial.sent_count = advance.range.end,
            None if advance.is_last => {}
            None => cursor.partial_advances.push_back(PartialAdvance {
                changes: Arc::clone(changes),
                sent_count: advance.range.end,
                acknowledged_count: 0,
            }),
        }
    }

    /// Adds items to an advance while the budget of bytes has room. The first
    /// item of a push may exceed it. An item that the client cannot take as it
    /// is, or that has to wait, is left out: its name becomes an exception, and
    /// dirty.
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

        let takes_all = self.takes_all_items(db, advance);
        let is_push_empty = push.updates.is_empty() && push.answers.is_empty();
        for (index, item) in changes.items.iter().enumerate().skip(advance.range.start) {
            let (name, resource) = item;
            let size = resource.as_ref().map_or(0, |resource| resource.wire_size());
            let is_first = index == advance.range.start && is_push_empty;
            if size > *budget && !is_first {
                *budget = 0;
                return;
            }

            advance.range.end = index + 1;
            let is_withheld = resource
                .as_ref()
                .is_some_and(|resource| self.is_withheld(resource));
            let is_taken = !is_withheld && (takes_all || self.takes_item(db, cursor, item));
            if is_taken && !self.must_defer_item(db, context, item) {
                *budget = budget.saturating_sub(size);
                continue;
            }

            advance.excluded.push(index);
            // The name may have become an exception since the advance began.
            if self.is_covered_by(cursor, name) {
                self.client_cache.make_exception(db, name);
                self.dirty.insert(name.clone());
            }
        }
    }

    /// Returns whether this cursor decides a name: it is the first of those
    /// that cover it (S26).
    fn is_covered_by(&self, cursor: CursorId, name: &Name) -> bool {
        let covering = self.client_cache.covering_cursor(name);
        covering.is_some_and(|covering| covering.id == cursor)
    }

    /// Returns whether the client takes every item of an advance as it is: the
    /// advance leads to the head of the only view, and the client holds nothing
    /// from elsewhere. This is so for most clients, and saves the check of each
    /// item.
    fn takes_all_items(&self, db: &Database, advance: &Advance) -> bool {
        let [cursor] = self.client_cache.cursors() else {
            return false;
        };
        self.client_cache.exceptions().is_empty()
            && self.client_cache.pending_acks_only_add()
            && self.quarantine.is_empty()
            && self.subscriptions.is_empty()
            && db.head(cursor.id) == advance.to
            && db.is_complete(cursor.id)
    }

    /// Returns whether the client takes an item as it is: the name is no
    /// exception, the item is still current, and all variants that it replaces
    /// are removed with it.
    fn takes_item(&self, db: &mut Database, cursor: CursorId, (name, item): &Item) -> bool {
        let client_cache = &self.client_cache;
        if client_cache.exceptions().contains(name)
            || client_cache.may_keep_other_variant(name, item.as_ref())
            || !self.is_covered_by(cursor, name)
        {
            return false;
        }
        match (self.cursor_choice(db, name), item) {
            (Some(Choice::Resource(current)), Some(listed)) => same_resource(&current, listed),
            (Some(Choice::Absent), None) => true,
            _ => false,
        }
    }

    /// Returns whether an item of an advance has to wait for a resource of
    /// another type, as the order of types says (S73). A cursor's items have no
    /// timeout here: their names are evaluated instead.
    fn must_defer_item(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        (name, item): &Item,
    ) -> bool {
        match item {
            Some(resource) => context.order.must_defer_addition(db, &self.kind, resource),
            None => {
                let removal = Removal {
                    type_url: &self.type_url,
                    name,
                    by_name: false,
                    has_invalid_cluster: false,
                };
                context.order.must_defer_removal(db, removal)
            }
        }
    }
}
