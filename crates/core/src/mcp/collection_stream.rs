//! One collection on one stream, at the source: a conversation of its own (M1).
//!
//! ```text
//!   first request ─▶ held: claimed ─▶ poll ─▶ pending ─┬─ ACK ──▶ held: at position
//!        ▲                              ▲              └─ NACK ─▶ rejected, held as before
//!        └── asked again without nonce  └── the state is neither held nor rejected
//! ```
//!
//! Polls compare a long list of claimed versions in slices, and send nothing
//! before the last of them (S85).

use std::collections::VecDeque;

use super::comparison::Comparison;
use super::held::Held;
use super::message::{ENTRY, RequestResources, ResourcesUpdate};
use super::outdated::Outdated;
use crate::database::{CursorId, Database, Position, Scope, StreamId, SubscriberId};
use crate::message::InitialVersions;
use crate::params::ParamsId;
use crate::resource::{Nonce, TypeUrl, Version};

/// Rejected states that are remembered. A collection that swings between more
/// of them is sent again.
const MAX_REJECTED: usize = 64;

/// Bytes of a rejection's reason that are remembered: people read them.
const MAX_REASON: usize = 1024;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct CollectionStream {
    subscriber: SubscriberId,
    cursor: CursorId,
    /// The sink's last request asked for incremental updates (M6).
    incremental: bool,
    held: Held,
    /// Bytes of what the sink says it holds, until it holds what was sent.
    claimed: usize,
    /// What the sink says it holds is being compared; then nothing is pending.
    comparison: Option<Comparison>,
    /// The response without an acknowledgement; there is one at most (M2).
    pending: Option<Pending>,
    /// The nonce of the newest response.
    latest: Option<Nonce>,
    /// States that the sink rejected, as sums of fingerprints, and why (M5).
    rejected: VecDeque<(u128, String)>,
}

/// A response without an acknowledgement, whose position is pinned.
#[derive(Debug)]
struct Pending {
    position: Position,
    sum: u128,
}

impl CollectionStream {
    /// Begins a conversation with a sink's first request.
    pub(super) fn new(db: &mut Database, stream: StreamId, request: &RequestResources) -> Self {
        let type_id = db.subscribed_type_id(&request.collection);
        let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
        let cursor = db.open_cursor(subscriber, &Scope::All);
        // A sink that holds nothing, or says what it holds, gets a list: no
        // resource of the past is needed for that.
        db.unpin(cursor, 0);
        Self {
            subscriber,
            cursor,
            incremental: request.incremental,
            held: Held::Claimed(request.initial_versions.clone()),
            claimed: weight(&request.initial_versions),
            comparison: None,
            pending: None,
            latest: None,
            rejected: VecDeque::new(),
        }
    }

    /// Begins anew: the sink asked again without a nonce (M13). A state that it
    /// rejected is sent again, since it may have been mended meanwhile.
    pub(super) fn restart(
        &mut self,
        db: &mut Database,
        request: &RequestResources,
        outdated: &mut Outdated,
    ) {
        self.unpin_pending(db);
        if let Some(comparison) = self.comparison.take() {
            db.unpin(self.cursor, comparison.position);
            outdated.add_comparison(comparison);
        }
        let claimed = Held::Claimed(request.initial_versions.clone());
        self.replace_held(db, claimed, outdated);
        self.claimed = weight(&request.initial_versions);
        self.latest = None;
        self.rejected.clear();
        self.incremental = request.incremental;
    }

    /// Whether a request acknowledges the newest response (M4).
    pub(super) fn is_latest(&self, nonce: &Nonce) -> bool {
        self.latest.as_ref() == Some(nonce)
    }

    /// Takes an ACK of the newest response. A second one changes nothing but
    /// what the sink wishes.
    pub(super) fn handle_ack(
        &mut self,
        db: &mut Database,
        incremental: bool,
        outdated: &mut Outdated,
    ) {
        self.incremental = incremental;
        if let Some(Pending { position, sum }) = self.pending.take() {
            self.replace_held(db, Held::At { position, sum }, outdated);
        }
    }

    /// Takes a NACK of the newest response: the sink holds what it held before,
    /// and this state is not sent again (M5). Returns whether it was news.
    pub(super) fn handle_nack(
        &mut self,
        db: &mut Database,
        incremental: bool,
        reason: &str,
    ) -> bool {
        self.incremental = incremental;
        let Some(Pending { position, sum }) = self.pending.take() else {
            return false;
        };
        db.unpin(self.cursor, position);
        if self.rejected.len() == MAX_REJECTED {
            self.rejected.pop_front();
        }
        let end = reason.floor_char_boundary(MAX_REASON);
        self.rejected.push_back((sum, reason[..end].to_owned()));
        true
    }

    /// Returns the next update, if there is one and the sink may have it: a
    /// state that it neither holds nor has rejected. It is made of the newest
    /// state, so that changes meanwhile are one (M2). Names that are compared
    /// are subtracted from the budget; see [`Self::is_comparing`].
    pub(super) fn poll(
        &mut self,
        db: &mut Database,
        budget: &mut usize,
        make_nonce: impl FnOnce() -> Nonce,
    ) -> Option<(Nonce, Version, ResourcesUpdate)> {
        let (Pending { position, sum }, update) = self.make_update(db, budget)?;
        self.pending = Some(Pending { position, sum });
        let nonce = make_nonce();
        self.latest = Some(nonce.clone());
        Some((nonce, Version::of_hash(sum), update))
    }

    /// Makes the next update, whose position is pinned; `None` also if there is
    /// more to compare before.
    fn make_update(
        &mut self,
        db: &mut Database,
        budget: &mut usize,
    ) -> Option<(Pending, ResourcesUpdate)> {
        if self.comparison.is_some() {
            return self.compare(db, budget);
        }
        let sum = db.fingerprint_sum(self.cursor);
        if self.pending.is_some() || self.held.is_state(sum) || self.find_rejection(sum).is_some() {
            return None;
        }
        let position = db.head(self.cursor);
        db.pin(self.cursor, position);
        if self.incremental
            && let Some(claimed) = self.held.claimed()
        {
            self.comparison = Some(Comparison::new(claimed, position, sum));
            return self.compare(db, budget);
        }
        let update = match self.incremental {
            true => self.held.changes(db, self.cursor),
            false => ResourcesUpdate::FullState(db.list(self.cursor)),
        };
        Some((Pending { position, sum }, update))
    }

    /// Compares a slice of what the sink says it holds. Returns the update after
    /// the last one.
    fn compare(
        &mut self,
        db: &mut Database,
        budget: &mut usize,
    ) -> Option<(Pending, ResourcesUpdate)> {
        let comparison = self.comparison.as_mut()?;
        if !comparison.advance(db, self.cursor, budget) {
            return None;
        }
        let comparison = self.comparison.take()?;
        let Comparison { position, sum, .. } = comparison;
        Some((Pending { position, sum }, comparison.into_update()))
    }

    /// Whether a further poll goes on with a comparison.
    pub(super) fn is_comparing(&self) -> bool {
        self.comparison.is_some()
    }

    /// Bytes of what the sink says it holds.
    pub(super) fn claimed(&self) -> usize {
        self.claimed
    }

    /// Ends the conversation, and what the database keeps for it.
    pub(super) fn close(self, db: &mut Database, outdated: &mut Outdated) {
        db.close_cursor(self.cursor);
        db.remove_subscriber(self.subscriber);
        outdated.add_held(self.held);
        if let Some(comparison) = self.comparison {
            outdated.add_comparison(comparison);
        }
    }

    /// What people see: whether an acknowledgement is awaited, and whether the
    /// newest state is one that the sink rejected.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Why the sink rejected the newest state; `None` if it did not.
    pub(super) fn rejection(&self, db: &Database) -> Option<&str> {
        self.find_rejection(db.fingerprint_sum(self.cursor))
    }

    fn find_rejection(&self, sum: u128) -> Option<&str> {
        let mut rejected = self.rejected.iter();
        let found = rejected.find(|(rejected, _)| *rejected == sum);
        found.map(|(_, reason)| reason.as_str())
    }

    /// Whether the sink holds the newest state.
    pub(super) fn is_current(&self, db: &Database) -> bool {
        self.held.is_state(db.fingerprint_sum(self.cursor))
    }

    /// Keeps what the sink holds; the position of what it held before is no
    /// longer needed.
    fn replace_held(&mut self, db: &mut Database, held: Held, outdated: &mut Outdated) {
        self.claimed = 0;
        let before = std::mem::replace(&mut self.held, held);
        if let Held::At { position, .. } = before {
            db.unpin(self.cursor, position);
        }
        outdated.add_held(before);
    }

    fn unpin_pending(&mut self, db: &mut Database) {
        if let Some(Pending { position, .. }) = self.pending.take() {
            db.unpin(self.cursor, position);
        }
    }
}

/// The bytes that a sink's versions take, about.
pub(super) fn weight(versions: &InitialVersions) -> usize {
    versions.text_bytes() + versions.len() * ENTRY
}

/// The conversations of a stream, by collection.
pub(super) type Collections = std::collections::BTreeMap<TypeUrl, CollectionStream>;
