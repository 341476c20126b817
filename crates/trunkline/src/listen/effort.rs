//! The effort of an address: how much work its connections have been lately, as
//! an estimate by what they do.
//!
//! It is an allowance that fills up again. An address within it is served in
//! the front lane; one beyond it is served in the back lane until it has asked
//! for little for a while. Nothing is refused for it, and nothing waits but for
//! the others.
//!
//! The allowance is meant to be ample: a proxy has some requests in a minute.
//! A fleet behind one address may be beyond it, and then waits for clients of
//! other addresses, if there are any.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lanes::Lane;
use crate::bounds::{EFFORT_AT_ONCE, EFFORT_PER_SECOND};

/// The effort that an address has at once, in nanoseconds. As long as that,
/// others may have to wait for it.
pub(super) const BURST: u64 = EFFORT_AT_ONCE.as_nanos() as u64;

/// The effort that an address has in a second, in nanoseconds.
const PER_SECOND: u64 = EFFORT_PER_SECOND.as_nanos() as u64;

/// How long an address stays in the back lane at least.
const LEAST: Duration = Duration::from_secs(1);

/// The most that is counted: an address is back in the front lane some seconds
/// after it has stopped.
const MOST: u64 = BURST + 2 * PER_SECOND;

/// What things cost, in nanoseconds: about as much as was measured, rather
/// more.
pub(super) mod cost {
    /// A connection that is accepted.
    pub(in crate::listen) const CONNECTION: u64 = 60_000;
    /// A TLS handshake.
    pub(in crate::listen) const HANDSHAKE: u64 = 500_000;
    /// An HTTP request, or a stream.
    pub(in crate::listen) const REQUEST: u64 = 50_000;
    /// A message on a discovery stream.
    pub(in crate::listen) const MESSAGE: u64 = 15_000;
    /// Bytes that are read at once, and each of them: a name has some twenty.
    pub(in crate::listen) const READ: u64 = 5_000;
    pub(in crate::listen) const READ_BYTE: u64 = 10;
    /// Each byte that is written.
    pub(in crate::listen) const WRITTEN_BYTE: u64 = 1;
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Effort {
    /// The effort since the account was settled.
    unsettled: AtomicU64,
    is_greedy: AtomicBool,
    account: Mutex<Account>,
}

/// The effort of an address that is not paid for, until the last settlement.
#[derive(Debug)]
struct Account {
    spent: u64,
    /// When the account was settled last.
    settled_at: Instant,
    greedy_since: Option<Instant>,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            unsettled: AtomicU64::new(0),
            is_greedy: AtomicBool::new(false),
            account: Mutex::new(Account {
                spent: 0,
                settled_at: Instant::now(),
                greedy_since: None,
            }),
        }
    }
}

impl Effort {
    /// Returns the lane in which the address is served now.
    pub(super) fn lane(&self) -> Lane {
        if self.is_greedy.load(Ordering::Relaxed) {
            Lane::Back
        } else {
            Lane::Front
        }
    }

    /// Counts effort, in nanoseconds. The account is settled only now and then,
    /// because reading the clock for each charge would cost too much.
    pub(super) fn charge(&self, nanos: u64) {
        /// The part of a burst after which the clock is asked.
        const LOOK: u64 = BURST / 8;
        let unsettled = self.unsettled.fetch_add(nanos, Ordering::Relaxed) + nanos;
        if unsettled >= LOOK {
            self.settle_account(Instant::now());
        }
    }

    /// Returns whether nothing is left of what was spent: all of it has been
    /// earned since.
    pub(super) fn is_at_rest(&self) -> bool {
        self.settle_account(Instant::now()) == 0
    }

    /// Settles the account: subtracts what was earned since the last settlement
    /// from what was spent, and decides whether the address is greedy. Returns
    /// what is left, in nanoseconds.
    fn settle_account(&self, now: Instant) -> u64 {
        let mut account = self.lock();
        account.spent += self.unsettled.swap(0, Ordering::Relaxed);
        let elapsed = now.saturating_duration_since(account.settled_at);
        let allowance = elapsed.as_secs_f64() * PER_SECOND as f64;
        account.spent = account.spent.min(MOST).saturating_sub(allowance as u64);
        account.settled_at = now;

        let is_beyond = account.spent > BURST;
        let is_recent = |since: Instant| now.saturating_duration_since(since) < LEAST;
        account.greedy_since = match account.greedy_since {
            _ if is_beyond => Some(now),
            Some(since) if account.spent > 0 || is_recent(since) => Some(since),
            _ => None,
        };

        let is_greedy = account.greedy_since.is_some();
        self.is_greedy.store(is_greedy, Ordering::Relaxed);
        account.spent
    }

    /// Locks the account. Ignores poison: a request that panicked ends alone.
    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the address be at rest, as after a long time.
    #[cfg(test)]
    pub(super) fn forgive(&self) {
        self.settle_account(Instant::now() + Duration::from_secs(60));
        self.settle_account(Instant::now() + Duration::from_secs(120));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_beyond_its_allowance_is_behind_until_it_rests() {
        let effort = Effort::default();
        for _ in 0..8 {
            effort.charge(BURST / 10);
        }
        assert_eq!(effort.lane(), Lane::Front);
        effort.charge(BURST);
        assert_eq!(effort.lane(), Lane::Back);
        let now = Instant::now();
        assert!(effort.settle_account(now + LEAST / 2) < BURST);
        assert_eq!(effort.lane(), Lane::Back, "not at once");
        assert_eq!(effort.settle_account(now + 2 * LEAST), 0);
        assert_eq!(effort.lane(), Lane::Front);
    }

    #[test]
    fn however_much_was_spent_it_is_over_in_seconds() {
        let effort = Effort::default();
        effort.charge(u64::MAX / 2);
        let now = Instant::now();
        assert_eq!(effort.settle_account(now + Duration::from_secs(5)), 0);
        assert_eq!(effort.lane(), Lane::Front);
        assert!(effort.is_at_rest());
    }
}
