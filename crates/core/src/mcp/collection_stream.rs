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
use super::held::HeldState;
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

/// The state of one conversation; see the module's documentation.
#[derive(Debug)]
pub(super) struct CollectionStream {
    subscriber: SubscriberId,
    cursor: CursorId,
    /// Whether the sink's last request asked for incremental updates (M6).
    is_incremental: bool,
    /// The state that the sink holds.
    held: HeldState,
    /// Bytes of the versions that the sink says it holds, until it has ACKed a
    /// response.
    claimed_bytes: usize,
    /// The comparison of these versions, while it goes on. Nothing is pending
    /// then.
    comparison: Option<Comparison>,
    /// The response without an acknowledgement; there is one at most (M2).
    pending: Option<Pending>,
    /// The nonce of the newest response.
    latest_nonce: Option<Nonce>,
    /// States that the sink rejected, as sums of fingerprints, and why (M5).
    rejections: VecDeque<(u128, String)>,
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
            is_incremental: request.incremental,
            held: HeldState::Claimed(request.initial_versions.clone()),
            claimed_bytes: weight(&request.initial_versions),
            comparison: None,
            pending: None,
            latest_nonce: None,
            rejections: VecDeque::new(),
        }
    }

    /// Begins the conversation anew, because the sink asked again without a
    /// nonce (M13). A state that it rejected is sent again: what was wrong at
    /// the sink may have been mended meanwhile.
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

        let claimed_state = HeldState::Claimed(request.initial_versions.clone());
        self.replace_held(db, claimed_state, outdated);
        self.claimed_bytes = weight(&request.initial_versions);
        self.latest_nonce = None;
        self.rejections.clear();
        self.is_incremental = request.incremental;
    }

    /// Returns whether a nonce is that of the newest response (M4).
    pub(super) fn is_latest(&self, nonce: &Nonce) -> bool {
        self.latest_nonce.as_ref() == Some(nonce)
    }

    /// Handles an ACK of the newest response: the sink holds its state. A
    /// second ACK only changes whether the sink asks for incremental updates.
    pub(super) fn handle_ack(
        &mut self,
        db: &mut Database,
        incremental: bool,
        outdated: &mut Outdated,
    ) {
        self.is_incremental = incremental;
        if let Some(Pending { position, sum }) = self.pending.take() {
            self.replace_held(db, HeldState::AtPosition { position, sum }, outdated);
        }
    }

    /// Handles a NACK of the newest response: the sink holds the state that it
    /// held before, and this one is not sent again (M5). Returns whether the
    /// response was still pending.
    pub(super) fn handle_nack(
        &mut self,
        db: &mut Database,
        incremental: bool,
        reason: &str,
    ) -> bool {
        self.is_incremental = incremental;
        let Some(Pending { position, sum }) = self.pending.take() else {
            return false;
        };

        db.unpin(self.cursor, position);
        if self.rejections.len() == MAX_REJECTED {
            self.rejections.pop_front();
        }
        let end = reason.floor_char_boundary(MAX_REASON);
        self.rejections.push_back((sum, reason[..end].to_owned()));
        true
    }

    /// Returns the next update, with the nonce and the version of its response;
    /// `None` if the sink holds the newest state, has rejected it, or has not
    /// acknowledged the last response. The update leads to the newest state, so
    /// that all changes in between are one (M2). Names that are compared are
    /// subtracted from the budget; see [`Self::is_comparing`].
    pub(super) fn poll(
        &mut self,
        db: &mut Database,
        budget: &mut usize,
        make_nonce: impl FnOnce() -> Nonce,
    ) -> Option<(Nonce, Version, ResourcesUpdate)> {
        let (Pending { position, sum }, update) = self.make_update(db, budget)?;
        self.pending = Some(Pending { position, sum });
        let nonce = make_nonce();
        self.latest_nonce = Some(nonce.clone());
        Some((nonce, Version::of_hash(sum), update))
    }

    /// Makes the next update, whose position is pinned. `None` if there is
    /// nothing to send, or not all claimed versions are compared.
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
        if self.is_incremental
            && let Some(versions) = self.held.claimed_versions()
        {
            self.comparison = Some(Comparison::new(versions, position, sum));
            return self.compare(db, budget);
        }

        let update = match self.is_incremental {
            true => self.held.changes(db, self.cursor),
            false => ResourcesUpdate::FullState(db.list(self.cursor)),
        };
        Some((Pending { position, sum }, update))
    }

    /// Compares a slice of the versions that the sink says it holds. Returns
    /// the update after the last slice; `None` if more are to be compared.
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

    /// Returns whether a further poll goes on with a comparison.
    pub(super) fn is_comparing(&self) -> bool {
        self.comparison.is_some()
    }

    /// Returns the number of bytes of the versions that the sink says it holds.
    pub(super) fn claimed_bytes(&self) -> usize {
        self.claimed_bytes
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

    /// Returns whether an acknowledgement is awaited.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the reason why the sink rejected the newest state; `None` if it
    /// did not.
    pub(super) fn rejection(&self, db: &Database) -> Option<&str> {
        self.find_rejection(db.fingerprint_sum(self.cursor))
    }

    /// Returns the reason why the sink rejected the state with this sum of
    /// fingerprints; `None` if it did not.
    fn find_rejection(&self, sum: u128) -> Option<&str> {
        let mut rejections = self.rejections.iter();
        let rejection = rejections.find(|(rejected_sum, _)| *rejected_sum == sum);
        rejection.map(|(_, reason)| reason.as_str())
    }

    /// Returns whether the sink holds the newest state.
    pub(super) fn is_current(&self, db: &Database) -> bool {
        self.held.is_state(db.fingerprint_sum(self.cursor))
    }

    /// Replaces the state that the sink holds, and unpins the position of the
    /// one that it held before.
    fn replace_held(&mut self, db: &mut Database, held: HeldState, outdated: &mut Outdated) {
        self.claimed_bytes = 0;
        let old_state = std::mem::replace(&mut self.held, held);
        if let HeldState::AtPosition { position, .. } = old_state {
            db.unpin(self.cursor, position);
        }
        outdated.add_held(old_state);
    }

    /// Drops the pending response, if there is one, and unpins its position.
    fn unpin_pending(&mut self, db: &mut Database) {
        if let Some(Pending { position, .. }) = self.pending.take() {
            db.unpin(self.cursor, position);
        }
    }
}

/// Returns the number of bytes that a sink's versions take, about.
pub(super) fn weight(versions: &InitialVersions) -> usize {
    versions.text_bytes() + versions.len() * ENTRY
}

/// The conversations of a stream, by collection.
pub(super) type Collections = std::collections::BTreeMap<TypeUrl, CollectionStream>;
