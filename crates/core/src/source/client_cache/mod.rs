//! The client cache: what the server believes a client to hold of one type.
//!
//! Resources are known by name and variant, whatever subscription they came by
//! (S84), and outlive subscriptions. A client with a cursor costs its position;
//! exceptions of the cursor, and names that are subscribed to one by one, have
//! records.
//!
//! ```text
//!   held            = views at the positions of cursors, without exceptions; records
//!   held after ACKs = held, changed by each response with a pending ACK
//!   maybe held      = held, and all resources of those responses
//!
//!   send ─▶ pending ACKs ─┬─ ACK ──▶ records, positions
//!                         └─ NACK ─▶ records of resources that may have been taken
//! ```
//!
//! Only ACKs and NACKs change the client cache, beside the versions that a
//! reconnecting client names, and the subscriptions that it ends.

mod advance;
mod cached;
mod check;
mod cursor;
mod pending_ack;
mod records;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

pub(crate) use advance::{Advance, PartialAdvance, merge_advance};
pub(crate) use cached::{CachedResource, Certainty, Variant, same_variant, variant_of};
pub(crate) use cursor::Cursor;
pub(crate) use pending_ack::{
    Answer, PendingAck, Update, apply_item, error_mentions, merge_pending, resources_of,
};

use crate::database::{CursorId, Database, Position, Scope, TypeId};
use crate::name::Name;
use crate::resource::{Nonce, Resource};

/// The number of pending ACKs that are kept apart: by then the client has been
/// silent for more than a minute.
const MAX_PENDING_ACKS: usize = 16;

/// The number of updates in all pending ACKs that are kept apart.
const MAX_PENDING_UPDATES: usize = 4096;

/// The resources of one type that the server believes a client to hold.
#[derive(Debug)]
pub(crate) struct ClientCache {
    type_id: TypeId,
    /// By name. A variant has at most one record of each certainty, but a few
    /// that are maybe taken, which differ in their versions.
    records: HashTable<CachedResource>,
    hasher: DefaultHashBuilder,
    /// Names that a cursor covers and whose records count instead.
    exceptions: BTreeSet<Name>,
    cursors: Vec<Cursor>,
    /// One, or more if the client is silent for long; the oldest first.
    pending_acks: VecDeque<PendingAck>,
    /// The sum of the fingerprints of all accepted records.
    fingerprint_sum: u128,
    /// The number of records of unknown body.
    unknown_bodies: usize,
}

impl ClientCache {
    /// Makes the cache of a client that holds nothing.
    pub(crate) fn new(type_id: TypeId) -> Self {
        Self {
            type_id,
            records: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            exceptions: BTreeSet::new(),
            cursors: Vec::new(),
            pending_acks: VecDeque::new(),
            fingerprint_sum: 0,
            unknown_bodies: 0,
        }
    }

    // Queries.

    /// Returns the resources of a name that the client holds, or may hold, by
    /// its acknowledgements so far: at most one if a cursor decides the name,
    /// else those of the records. Pending responses do not count.
    pub(crate) fn held(&self, db: &mut Database, name: &Name) -> Vec<CachedResource> {
        match self.deciding_cursor(name) {
            Some(cursor) => {
                let resource = cursor.held_resource(db, self.type_id, name);
                resource.into_iter().collect()
            }
            None => self.records_of(name).cloned().collect(),
        }
    }

    /// Returns the resources that the client will hold of a name once it has
    /// ACKed every response that was sent.
    pub(crate) fn held_after_acks(&self, db: &mut Database, name: &Name) -> Vec<CachedResource> {
        let mut held_resources = self.held(db, name);
        let cursor = self.covering_cursor(name).map(|cursor| cursor.id);
        for pending_ack in &self.pending_acks {
            pending_ack.apply(cursor, name, &mut held_resources);
        }
        held_resources
    }

    /// Returns the resources that the client will hold of a name once it has
    /// ACKed every response that was sent, and a push besides.
    pub(crate) fn held_after_push(
        &self,
        db: &mut Database,
        name: &Name,
        (advances, updates): (&[Advance], &[Update]),
    ) -> Vec<CachedResource> {
        let mut held_resources = self.held_after_acks(db, name);
        let cursor = self.covering_cursor(name).map(|cursor| cursor.id);
        pending_ack::apply_updates(advances, updates, cursor, name, &mut held_resources);
        held_resources
    }

    /// Returns all resources of known body that the client may hold of a name,
    /// whichever of the pending responses it ACKs.
    pub(crate) fn maybe_held(&self, db: &mut Database, name: &Name) -> Vec<Arc<Resource>> {
        let held_records = self.held(db, name).into_iter();
        let known_records = held_records.filter(|record| !record.has_unknown_body());
        let mut resources: Vec<_> = known_records.map(|record| record.resource).collect();

        for pending_ack in &self.pending_acks {
            for update in pending_ack.updates_of(name) {
                let sent_resources = update.earlier_resource.iter().chain(&update.resource);
                resources.extend(sent_resources.cloned());
            }
            let advances = pending_ack.advances.iter();
            let items = advances.filter_map(|advance| advance.item(name));
            resources.extend(items.flatten().cloned());
        }
        resources
    }

    /// Returns whether a pending advance removes another variant of the name
    /// than that of `resource`: the client keeps the other variant if it NACKs.
    /// `resource` is `None` for a removal, for which any variant counts as
    /// another.
    pub(crate) fn may_keep_other_variant(
        &self,
        name: &Name,
        resource: Option<&Arc<Resource>>,
    ) -> bool {
        let pending_acks = self.pending_acks.iter();
        let advances = pending_acks.flat_map(|pending_ack| &pending_ack.advances);
        let mut removed_variants = advances
            .filter_map(|advance| advance.removed_variant(name, advance.item(name)?.as_ref()));
        removed_variants.any(|(_, constraints)| {
            resource.is_none_or(|resource| resource.constraints != constraints)
        })
    }

    /// Returns whether no pending advance removes a variant.
    pub(crate) fn pending_acks_only_add(&self) -> bool {
        let pending_acks = self.pending_acks.iter();
        let mut advances = pending_acks.flat_map(|pending_ack| &pending_ack.advances);
        advances.all(|advance| {
            let changes = advance.changes.as_ref();
            let replaces = changes.is_some_and(|changes| !changes.replaced_variants.is_empty());
            !replaces && advance.items().all(|(_, item)| item.is_some())
        })
    }

    /// Returns whether the client holds a resource of unknown body.
    pub(crate) fn has_unknown_bodies(&self) -> bool {
        let mut points = self
            .cursors
            .iter()
            .filter_map(|cursor| cursor.resume_point.as_ref());
        self.unknown_bodies > 0 || points.any(|point| point.has_unknown_bodies())
    }

    /// Returns the sum of the fingerprints of all accepted records.
    pub(crate) fn fingerprint_sum(&self) -> u128 {
        self.fingerprint_sum
    }

    /// Returns all records, in no order.
    pub(crate) fn records(&self) -> impl Iterator<Item = &CachedResource> {
        self.records.iter()
    }

    /// Returns the number of records.
    pub(crate) fn record_count(&self) -> usize {
        self.records.len()
    }

    /// Returns the names that a cursor covers and whose records count instead.
    pub(crate) fn exceptions(&self) -> &BTreeSet<Name> {
        &self.exceptions
    }

    /// Returns the open cursors, in the order in which they were opened.
    pub(crate) fn cursors(&self) -> &[Cursor] {
        &self.cursors
    }

    /// Returns the sum of the heads of all views. It grows with each change of
    /// any of them, so two equal sums mean that nothing changed in between.
    pub(crate) fn heads_sum(&self, db: &Database) -> Position {
        self.cursors.iter().map(|cursor| db.head(cursor.id)).sum()
    }

    /// Returns an open cursor; `None` if it was closed.
    pub(crate) fn cursor(&self, id: CursorId) -> Option<&Cursor> {
        self.cursors.iter().find(|cursor| cursor.id == id)
    }

    /// Returns an open cursor, to be changed; `None` if it was closed.
    pub(crate) fn cursor_mut(&mut self, id: CursorId) -> Option<&mut Cursor> {
        self.cursors.iter_mut().find(|cursor| cursor.id == id)
    }

    /// Returns the cursor of this very scope; `None` if the client is not
    /// subscribed to the scope.
    pub(crate) fn cursor_of(&self, scope: &Scope) -> Option<&Cursor> {
        self.cursors.iter().find(|cursor| cursor.scope == *scope)
    }

    /// Returns the first cursor that covers a name; others leave it to that one
    /// (S26).
    pub(crate) fn covering_cursor(&self, name: &Name) -> Option<&Cursor> {
        self.cursors.iter().find(|cursor| cursor.covers(name))
    }

    /// Returns the cursor by which a name is held; `None` if records decide.
    fn deciding_cursor(&self, name: &Name) -> Option<&Cursor> {
        let cursor = self.covering_cursor(name)?;
        (!self.exceptions.contains(name)).then_some(cursor)
    }

    /// Returns the pending ACKs, the oldest first.
    pub(crate) fn pending_acks(&self) -> &VecDeque<PendingAck> {
        &self.pending_acks
    }

    /// Returns the pending ACK of a response; `None` if it was merged into
    /// another.
    pub(crate) fn pending_ack(&self, nonce: &Nonce) -> Option<&PendingAck> {
        self.pending_acks
            .iter()
            .find(|pending_ack| pending_ack.nonce == *nonce)
    }

    /// Returns the last answer to a subscription among those whose ACK is
    /// pending; `None` if there is none.
    pub(crate) fn pending_answer(&self, subscription: super::SubscriptionKey) -> Option<&Answer> {
        let mut pending_acks = self.pending_acks.iter().rev();
        pending_acks.find_map(|pending_ack| pending_ack.answer_to(subscription))
    }

    /// Returns whether the ACK of a response is pending: its own, or that of a
    /// later response that it was merged into.
    pub(crate) fn is_pending(&self, nonce: &Nonce) -> bool {
        let mut pending_acks = self.pending_acks.iter();
        pending_acks.any(|pending_ack| {
            pending_ack.nonce == *nonce || pending_ack.merged_nonces.contains(nonce)
        })
    }

    /// Takes all updates and answers out of the pending ACK that the response
    /// with this nonce was merged into, since it is not recorded which of its
    /// responses had which. `None` if the response was not merged. The pending
    /// ACK itself stays.
    pub(super) fn take_merged(&mut self, nonce: &Nonce) -> Option<(Vec<Update>, Vec<Answer>)> {
        let mut pending_acks = self.pending_acks.iter_mut();
        let pending_ack =
            pending_acks.find(|pending_ack| pending_ack.merged_nonces.contains(nonce))?;
        pending_ack.merged_nonces.clear();
        let updates = std::mem::take(&mut pending_ack.updates);
        Some((updates, std::mem::take(&mut pending_ack.answers)))
    }

    // Cursors.

    /// Adds a cursor that was opened in the database.
    pub(super) fn add_cursor(&mut self, cursor: Cursor) {
        self.cursors.push(cursor);
    }

    /// Closes a cursor. Its pending advances stay, without it: the client holds
    /// their resources if it subscribes again before it acknowledges them.
    /// Returns the exceptions that no cursor covers any more.
    pub(super) fn close_cursor(&mut self, db: &mut Database, id: CursorId) -> BTreeSet<Name> {
        db.close_cursor(id);
        self.cursors.retain(|cursor| cursor.id != id);
        for pending_ack in &mut self.pending_acks {
            let advances = pending_ack.advances.iter_mut();
            for advance in advances.filter(|advance| advance.cursor == Some(id)) {
                advance.cursor = None;
            }
        }

        let exceptions = std::mem::take(&mut self.exceptions);
        let (covered_names, uncovered_names) = exceptions
            .into_iter()
            .partition(|name| self.covering_cursor(name).is_some());
        self.exceptions = covered_names;
        uncovered_names
    }

    /// Moves a cursor along an advance that the client has acknowledged, or
    /// need not acknowledge. Of a partial advance only the progress is
    /// recorded: the cursor moves with its last part. A closed cursor is not
    /// moved.
    pub(super) fn advance_cursor(&mut self, db: &mut Database, advance: &Advance) {
        let Some(cursor) = advance.cursor.and_then(|id| self.cursor_mut(id)) else {
            return;
        };
        if advance.is_last {
            cursor.move_to(advance.to);
            db.unpin(cursor.id, advance.from);
        } else if let Some(partial_advance) = cursor.partial_advances.front_mut() {
            partial_advance.acknowledged_count = advance.range.end;
        }
    }

    // Pending ACKs.

    /// Adds the pending ACK of a response that is sent. Each response has its
    /// own, since an acknowledgement covers the responses before it and not
    /// those after it. If the client is silent for so long that a limit is
    /// exceeded, the oldest ones are merged.
    pub(super) fn add_pending_ack(&mut self, db: &mut Database, pending_ack: PendingAck) {
        // Mostly it is the only one.
        self.pending_acks.reserve_exact(1);
        self.pending_acks.push_back(pending_ack);
        while self.pending_acks.len() > 2 && self.exceeds_limits() {
            self.merge_oldest(db);
        }
    }

    /// Returns whether the pending ACKs, or the updates in them, exceed their
    /// limits.
    fn exceeds_limits(&self) -> bool {
        let pending_acks = self.pending_acks.iter();
        let update_count: usize = pending_acks
            .map(|pending_ack| pending_ack.updates.len())
            .sum();
        self.pending_acks.len() > MAX_PENDING_ACKS || update_count > MAX_PENDING_UPDATES
    }

    /// Merges the oldest pending ACK into the one after it. The names of the
    /// merged advances become exceptions: they are updates now.
    fn merge_oldest(&mut self, db: &mut Database) {
        let (Some(oldest), Some(next)) =
            (self.pending_acks.pop_front(), self.pending_acks.front_mut())
        else {
            return;
        };
        for (cursor, position) in merge_pending(next, oldest) {
            db.unpin(cursor, position);
        }

        let updates = self.pending_acks[0].updates.iter();
        let names: Vec<Name> = updates.map(|update| update.name().clone()).collect();
        for name in names {
            self.make_exception(db, &name);
        }
    }

    /// Adds updates of a NACKed SotW response to the later pending responses,
    /// which contain the same resources, up to the first that changes the
    /// variant itself. A whole set contains every name, another response only
    /// the names of its updates.
    pub(super) fn repeat_in_later_pending(&mut self, updates: &[Update], is_whole_set: bool) {
        for update in updates {
            for pending_ack in &mut self.pending_acks {
                if !is_whole_set && pending_ack.updates_of(update.name()).is_empty() {
                    continue;
                }

                let mut advances = pending_ack.advances.iter();
                let is_advanced = advances.any(|advance| advance.item(update.name()).is_some());
                let slot = pending_ack
                    .updates
                    .binary_search_by(|other| other.variant.cmp(&update.variant));
                match slot {
                    Err(index) if !is_advanced => {
                        pending_ack.updates.insert(index, update.clone());
                    }
                    _ => break,
                }
            }
        }
    }

    /// Removes and returns the oldest response without an acknowledgement, or
    /// `None` if there is none. The queue's memory is released with the last
    /// one: most streams wait for nothing most of the time, and their next
    /// response finds memory that is in the processor's cache.
    pub(super) fn take_oldest_pending(&mut self) -> Option<PendingAck> {
        let oldest = self.pending_acks.pop_front();
        if self.pending_acks.is_empty() {
            self.pending_acks = VecDeque::new();
        }
        oldest
    }

    /// Records advances that need no response. They take effect once the last
    /// response before them is acknowledged, or at once if none is pending.
    pub(crate) fn advance_silently(&mut self, db: &mut Database, advances: Vec<Advance>) {
        for advance in advances {
            let Some(last_pending) = self.pending_acks.back_mut() else {
                self.advance_cursor(db, &advance);
                continue;
            };
            let cursor = advance.cursor;
            let position = merge_advance(&mut last_pending.advances, advance);
            if let (Some(cursor), Some(position)) = (cursor, position) {
                db.unpin(cursor, position);
            }
        }
    }

    /// Forgets the pending answers to a subscription that ended.
    pub(super) fn forget_answers(&mut self, subscription: super::SubscriptionKey) {
        for pending_ack in &mut self.pending_acks {
            pending_ack
                .answers
                .retain(|answer| answer.subscription != subscription);
        }
    }
}

#[cfg(test)]
mod tests;
