//! The shares of addresses. An address without questions has no entry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use super::Peer;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Table(Mutex<Shares>);

#[derive(Default)]
struct Shares {
    by_peer: HashMap<Peer, Share>,
    /// Bytes of all of them.
    bytes: usize,
}

/// The share of an address.
struct Share {
    questions: usize,
    waiting: usize,
    bytes: usize,
    turns: Arc<Semaphore>,
}

/// A question that waits, until this is dropped.
pub(super) struct Waiting<'a> {
    table: &'a Table,
    peer: Peer,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(share) = self.table.lock().by_peer.get_mut(&self.peer) {
            share.waiting = share.waiting.saturating_sub(1);
        }
    }
}

impl Table {
    /// Locks the shares. Ignores poison: a question that panicked ends alone.
    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of all answers that are not read yet.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Counts one more question of an address. Only the first question of an
    /// address decides how many are worked on `at_once`.
    pub(super) fn enter(&self, peer: Peer, at_once: usize) {
        let mut shares = self.lock();
        let new_share = || Share {
            questions: 0,
            waiting: 0,
            bytes: 0,
            turns: Arc::new(Semaphore::new(at_once)),
        };
        shares
            .by_peer
            .entry(peer)
            .or_insert_with(new_share)
            .questions += 1;
    }

    /// Counts one question less of an address, and forgets an address without
    /// questions.
    pub(super) fn leave(&self, peer: Peer) {
        let mut shares = self.lock();
        let Some(share) = shares.by_peer.get_mut(&peer) else {
            return;
        };
        share.questions -= 1;
        if share.questions == 0 {
            shares.by_peer.remove(&peer);
        }
    }

    /// Counts a question that waits for its turn, until the result is dropped.
    /// Returns `None` if `max_waiting` questions of its address wait already.
    pub(super) fn wait(&self, peer: Peer, max_waiting: usize) -> Option<Waiting<'_>> {
        let mut shares = self.lock();
        let share = shares.by_peer.get_mut(&peer)?;
        if share.waiting >= max_waiting {
            return None;
        }
        share.waiting += 1;
        Some(Waiting { table: self, peer })
    }

    /// Returns the turns of an address. It has a question, and so an entry; the
    /// turn of one without is never contended.
    pub(super) fn turns(&self, peer: Peer) -> Arc<Semaphore> {
        let shares = self.lock();
        let turns = shares.by_peer.get(&peer).map(|share| &share.turns);
        turns.map_or_else(|| Arc::new(Semaphore::new(1)), Arc::clone)
    }

    /// Counts bytes of an answer. Returns `false` without counting them if they
    /// exceed `bounds`: the limit of the address, and that of all addresses
    /// together.
    pub(super) fn hold(&self, peer: Peer, bytes: usize, bounds: (usize, usize)) -> bool {
        let mut shares = self.lock();
        let all_bytes = shares.bytes.saturating_add(bytes);
        let Some(share) = shares.by_peer.get_mut(&peer) else {
            return false;
        };
        let peer_bytes = share.bytes.saturating_add(bytes);
        let (max_per_peer, max_in_all) = bounds;
        if peer_bytes > max_per_peer || all_bytes > max_in_all {
            return false;
        }
        share.bytes = peer_bytes;
        shares.bytes = all_bytes;
        true
    }

    /// Stops counting bytes of an answer.
    pub(super) fn release(&self, peer: Peer, bytes: usize) {
        let mut shares = self.lock();
        shares.bytes = shares.bytes.saturating_sub(bytes);
        if let Some(share) = shares.by_peer.get_mut(&peer) {
            share.bytes = share.bytes.saturating_sub(bytes);
        }
    }
}
