//! What a peer holds: the only owner of that belief.
//!
//! Resources are known by name and variant, whatever subscription brought them
//! (S84), and outlive subscriptions. A client with a cursor costs its position;
//! what differs from the view, and what is subscribed to by name, is recorded
//! one by one.
//!
//! ```text
//!   now    = views at their positions, but for exceptions; records
//!   after  = now, changed by each response that has no answer yet
//!   may    = now, and all that those responses bring
//!
//!   send ─▶ flights ─┬─ ACK ──▶ records, positions
//!                    └─ NACK ─▶ records of what may have been taken all the same
//! ```
//!
//! ACK and NACK are the only ways in which the belief changes, beside what a
//! client says of itself when it comes back, and what it drops with its
//! subscriptions.

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
    Answer, PendingAck, Update, apply_item, error_mentions as error_names, merge_pending,
};

use crate::database::{CursorId, Database, Position, Scope, TypeId};
use crate::name::Name;
use crate::resource::{Nonce, Resource};

/// Responses without an answer that are kept apart: by then the peer has been
/// silent for more than a minute.
const MAX_PENDING_ACKS: usize = 16;

/// What they may say all together.
const MAX_PENDING_UPDATES: usize = 4096;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct ClientCache {
    type_id: TypeId,
    /// By name. A variant has at most one record of each state, but a few of what
    /// was rejected, which differ in their versions.
    records: HashTable<CachedResource>,
    hasher: DefaultHashBuilder,
    /// Names that a view covers and of which the records tell the truth.
    exceptions: BTreeSet<Name>,
    cursors: Vec<Cursor>,
    /// Responses without an answer: one, or more if the peer is silent for long.
    pending_acks: VecDeque<PendingAck>,
    /// The sum of the fingerprints of what was accepted and is recorded.
    fingerprint_sum: u128,
    /// How many records have no known body.
    unknown_bodies: usize,
}

impl ClientCache {
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

    // Questions.

    /// What it holds of a name, or may hold, as far as it answered.
    pub(crate) fn held(&self, db: &mut Database, name: &Name) -> Vec<CachedResource> {
        match self.deciding_cursor(name) {
            Some(view) => {
                let held = view.held_resource(db, self.type_id, name);
                held.into_iter().collect()
            }
            None => self.records_of(name).cloned().collect(),
        }
    }

    /// What it will hold of a name once it has accepted all that was sent.
    pub(crate) fn held_after_acks(&self, db: &mut Database, name: &Name) -> Vec<CachedResource> {
        let mut held = self.held(db, name);
        let cursor = self.covering_cursor(name).map(|view| view.id);
        for pending_ack in &self.pending_acks {
            pending_ack.apply(cursor, name, &mut held);
        }
        held
    }

    /// What it will hold of a name once it has accepted a draft, too.
    pub(crate) fn held_after_push(
        &self,
        db: &mut Database,
        name: &Name,
        (advances, updates): (&[Advance], &[Update]),
    ) -> Vec<CachedResource> {
        let mut held = self.held_after_acks(db, name);
        let cursor = self.covering_cursor(name).map(|view| view.id);
        pending_ack::apply_updates(advances, updates, cursor, name, &mut held);
        held
    }

    /// Everything of a name that it may hold and of which the body is known.
    pub(crate) fn maybe_held(&self, db: &mut Database, name: &Name) -> Vec<Arc<Resource>> {
        let now = self.held(db, name).into_iter();
        let now = now.filter(|held| !held.has_unknown_body());
        let mut may: Vec<_> = now.map(|held| held.resource).collect();
        for pending_ack in &self.pending_acks {
            for update in pending_ack.updates_of(name) {
                may.extend(
                    update
                        .earlier_resource
                        .iter()
                        .chain(&update.resource)
                        .cloned(),
                );
            }
            let items = pending_ack
                .advances
                .iter()
                .filter_map(|advance| advance.item(name));
            may.extend(items.flatten().cloned());
        }
        may
    }

    /// Whether a pending advance replaces another variant of the name than this
    /// one: the client keeps that one if it NACKs.
    pub(crate) fn may_keep_other_variant(&self, name: &Name, but: Option<&Arc<Resource>>) -> bool {
        let advances = self
            .pending_acks
            .iter()
            .flat_map(|pending_ack| &pending_ack.advances);
        let mut left = advances.filter_map(|advance| match advance.item(name)? {
            Some(_) => advance.replaced_variant_of(name),
            None => Some(advance.replaced_variant_of(name).unwrap_or(&None)),
        });
        left.any(|old| but.is_none_or(|new| new.constraints != *old))
    }

    /// Whether no step without an answer takes a variant away.
    pub(crate) fn pending_acks_only_add(&self) -> bool {
        let mut advances = self
            .pending_acks
            .iter()
            .flat_map(|pending_ack| &pending_ack.advances);
        advances.all(|advance| {
            let changes = advance.changes.as_ref();
            let stay = changes.is_none_or(|changes| changes.replaced_variants.is_empty());
            stay && advance.items().all(|(_, item)| item.is_some())
        })
    }

    /// Whether it holds something of which nothing is known but its name.
    pub(crate) fn has_unknown_bodies(&self) -> bool {
        let points = self.cursors.iter().filter_map(|c| c.resume_point.as_ref());
        self.unknown_bodies > 0 || points.into_iter().any(|point| point.has_unknown_bodies())
    }

    /// The sum of the fingerprints of all records that were accepted.
    pub(crate) fn fingerprint_sum(&self) -> u128 {
        self.fingerprint_sum
    }

    /// All records.
    pub(crate) fn records(&self) -> impl Iterator<Item = &CachedResource> {
        self.records.iter()
    }

    /// The names whose records tell the truth although a view covers them.
    pub(crate) fn exceptions(&self) -> &BTreeSet<Name> {
        &self.exceptions
    }

    pub(crate) fn cursors(&self) -> &[Cursor] {
        &self.cursors
    }

    /// How far the views are, all together: it grows with each change.
    pub(crate) fn heads_sum(&self, db: &Database) -> Position {
        self.cursors.iter().map(|view| db.head(view.id)).sum()
    }

    pub(crate) fn cursor(&self, cursor: CursorId) -> Option<&Cursor> {
        self.cursors.iter().find(|view| view.id == cursor)
    }

    pub(crate) fn cursor_mut(&mut self, cursor: CursorId) -> Option<&mut Cursor> {
        self.cursors.iter_mut().find(|view| view.id == cursor)
    }

    pub(crate) fn cursor_of(&self, scope: &Scope) -> Option<&Cursor> {
        self.cursors.iter().find(|view| view.scope == *scope)
    }

    /// The first view that covers a name; others leave it to that one (S26).
    pub(crate) fn covering_cursor(&self, name: &Name) -> Option<&Cursor> {
        self.cursors.iter().find(|view| view.covers(name))
    }

    /// The view that tells what is held of a name, if one does.
    fn deciding_cursor(&self, name: &Name) -> Option<&Cursor> {
        let view = self.covering_cursor(name)?;
        (!self.exceptions.contains(name)).then_some(view)
    }

    pub(crate) fn pending_acks(&self) -> &VecDeque<PendingAck> {
        &self.pending_acks
    }

    /// Whether a nonce names a response without an answer.
    pub(crate) fn pending_ack(&self, nonce: &Nonce) -> Option<&PendingAck> {
        self.pending_acks
            .iter()
            .find(|pending_ack| pending_ack.nonce == *nonce)
    }

    /// Whether a response without an answer, or one that became part of it, has
    /// this nonce.
    pub(crate) fn is_pending(&self, nonce: &Nonce) -> bool {
        let mut pending_acks = self.pending_acks.iter();
        pending_acks.any(|pending_ack| {
            pending_ack.nonce == *nonce || pending_ack.merged_nonces.contains(nonce)
        })
    }

    /// Takes the updates out of a pending response that an earlier one with
    /// this nonce was merged into: it is not known which of them was in which.
    pub(super) fn take_merged(&mut self, nonce: &Nonce) -> Option<(Vec<Update>, Vec<Answer>)> {
        let mut pending_acks = self.pending_acks.iter_mut();
        let pending_ack =
            pending_acks.find(|pending_ack| pending_ack.merged_nonces.contains(nonce))?;
        pending_ack.merged_nonces.clear();
        let updates = std::mem::take(&mut pending_ack.updates);
        Some((updates, std::mem::take(&mut pending_ack.answers)))
    }

    // Views.

    pub(super) fn add_cursor(&mut self, view: Cursor) {
        self.cursors.push(view);
    }

    /// Ends following a view. What was sent along it and has no answer is the
    /// peer's all the same if it asks for it again before it answers. Returns
    /// the exceptions that no view covers now.
    pub(super) fn close_cursor(&mut self, db: &mut Database, cursor: CursorId) -> BTreeSet<Name> {
        db.close_cursor(cursor);
        self.cursors.retain(|view| view.id != cursor);
        for pending_ack in &mut self.pending_acks {
            let own = pending_ack.advances.iter_mut();
            own.filter(|advance| advance.cursor == Some(cursor))
                .for_each(|advance| advance.cursor = None);
        }
        let exceptions = std::mem::take(&mut self.exceptions);
        let (covered, bare) = exceptions
            .into_iter()
            .partition(|name| self.covering_cursor(name).is_some());
        self.exceptions = covered;
        bare
    }

    /// The peer answered a step, or never has to.
    pub(super) fn advance_cursor(&mut self, db: &mut Database, advance: &Advance) {
        let Some(view) = advance.cursor.and_then(|cursor| self.cursor_mut(cursor)) else {
            return;
        };
        if advance.is_last {
            view.move_to(advance.to);
            db.unpin(view.id, advance.from);
        } else if let Some(partial_advance) = view.partial_advances.front_mut() {
            partial_advance.acknowledged = advance.range.end;
        }
    }

    // Responses without an answer.

    /// A response goes out. Each is remembered by itself, for an answer tells of
    /// those before it what it does not tell of those after it. Where a peer is
    /// silent for very long, the oldest ones become one.
    pub(super) fn add_pending_ack(&mut self, db: &mut Database, pending_ack: PendingAck) {
        self.pending_acks.push_back(pending_ack);
        while self.pending_acks.len() > 2 && self.exceeds_limits() {
            self.merge_oldest(db);
        }
    }

    /// Whether responses without an answer are more than are kept apart.
    fn exceeds_limits(&self) -> bool {
        let updates: usize = self
            .pending_acks
            .iter()
            .map(|pending_ack| pending_ack.updates.len())
            .sum();
        self.pending_acks.len() > MAX_PENDING_ACKS || updates > MAX_PENDING_UPDATES
    }

    fn merge_oldest(&mut self, db: &mut Database) {
        let (Some(first), Some(second)) =
            (self.pending_acks.pop_front(), self.pending_acks.front_mut())
        else {
            return;
        };
        for (cursor, between) in merge_pending(second, first) {
            db.unpin(cursor, between);
        }
        let merged: Vec<Name> = self.pending_acks[0]
            .updates
            .iter()
            .map(|update| update.name().clone())
            .collect();
        for name in merged {
            self.make_exception(db, &name);
        }
    }

    /// SotW: a pending response after a NACKed one contains the same updates,
    /// unless it changes them itself. A `whole` set contains every name,
    /// another response only the names of its updates.
    pub(super) fn repeat_in_later_pending(&mut self, updates: &[Update], whole: bool) {
        for update in updates {
            for pending_ack in &mut self.pending_acks {
                if !whole && pending_ack.updates_of(update.name()).is_empty() {
                    continue;
                }
                let mut advances = pending_ack.advances.iter();
                let place = pending_ack
                    .updates
                    .binary_search_by(|s| s.variant.cmp(&update.variant));
                match place {
                    Err(place)
                        if !advances.any(|advance| advance.item(update.name()).is_some()) =>
                    {
                        pending_ack.updates.insert(place, update.clone());
                    }
                    _ => break,
                }
            }
        }
    }

    pub(super) fn take_oldest_pending(&mut self) -> Option<PendingAck> {
        self.pending_acks.pop_front()
    }

    /// Makes steps that bring nothing to say.
    pub(crate) fn advance_silently(&mut self, db: &mut Database, advances: Vec<Advance>) {
        for advance in advances {
            let Some(last) = self.pending_acks.back_mut() else {
                self.advance_cursor(db, &advance);
                continue;
            };
            let cursor = advance.cursor;
            let between = merge_advance(&mut last.advances, advance);
            if let (Some(cursor), Some(between)) = (cursor, between) {
                db.unpin(cursor, between);
            }
        }
    }

    /// A want ended: an answer to it is nobody's.
    pub(super) fn forget_answers(&mut self, subscription: super::SubscriptionKey) {
        for pending_ack in &mut self.pending_acks {
            pending_ack
                .answers
                .retain(|answer| answer.subscription != subscription);
        }
    }
}
