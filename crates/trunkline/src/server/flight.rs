//! How much is on its way to transports at once.
//!
//! What a peer does not take within [`PATIENCE`] does not count any more: it is
//! one message, it shares its bytes, and others do not wait for it (S69).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::hooks::Limit;

/// How long a message counts, and how long one waits for others.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Flight {
    max_pushes: usize,
    max_bytes: usize,
    pushes: AtomicUsize,
    bytes: AtomicUsize,
    freed: Notify,
    /// How many wait for that. With nobody to tell, telling costs a lock.
    waiting: AtomicUsize,
}

impl Flight {
    /// Zero is no bound.
    pub(super) fn new(max_pushes: usize, max_bytes: usize) -> Self {
        let bound = |max: usize| if max == 0 { usize::MAX } else { max };
        Self {
            max_pushes: bound(max_pushes),
            max_bytes: bound(max_bytes),
            pushes: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            freed: Notify::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits until one more message may go, and says what it waited for.
    pub(super) async fn room(&self) -> Option<Limit> {
        let limit = self.full()?;
        let free = async {
            loop {
                // Before it is looked at, so that nothing is missed.
                let freed = self.freed.notified();
                if self.full().is_none() {
                    break;
                }
                freed.await;
            }
        };
        let _waiting = Waiting::new(&self.waiting);
        // Others may be slow; that is no reason to wait longer.
        let _ = tokio::time::timeout(PATIENCE, free).await;
        Some(limit)
    }

    /// Which limit is met, if one is.
    pub(super) fn full(&self) -> Option<Limit> {
        if self.pushes.load(Ordering::SeqCst) >= self.max_pushes {
            Some(Limit::Pushes)
        } else if self.bytes.load(Ordering::SeqCst) >= self.max_bytes {
            Some(Limit::Bytes)
        } else {
            None
        }
    }

    /// A message goes out.
    pub(super) fn start(self: &Arc<Self>, bytes: usize) -> Ticket {
        self.pushes.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ticket {
            flight: Arc::clone(self),
            bytes,
        }
    }
}

/// A message, which counts until this is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    flight: Arc<Flight>,
    bytes: usize,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let flight = &self.flight;
        flight.pushes.fetch_sub(1, Ordering::SeqCst);
        flight.bytes.fetch_sub(self.bytes, Ordering::SeqCst);
        if flight.waiting.load(Ordering::SeqCst) > 0 {
            flight.freed.notify_waiters();
        }
    }
}

/// One who waits, counted before looking whether there is room: whoever makes
/// some after that look sees that somebody waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_waits_for_the_other_and_not_for_ever() {
        let flight = Arc::new(Flight::new(1, 0));
        assert_eq!(flight.room().await, None);
        let ticket = flight.start(10);
        let waiting = tokio::spawn({
            let flight = Arc::clone(&flight);
            async move { flight.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(ticket);
        assert_eq!(waiting.await.unwrap(), Some(Limit::Pushes));
        assert_eq!(flight.room().await, None);
        let stuck = flight.start(1);
        // Time passes by itself when nothing else can happen.
        assert_eq!(flight.room().await, Some(Limit::Pushes));
        drop(stuck);
        assert_eq!(flight.room().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_bounded_too() {
        let flight = Arc::new(Flight::new(0, 100));
        let first = flight.start(60);
        assert_eq!(flight.room().await, None);
        let second = flight.start(60);
        assert_eq!(flight.room().await, Some(Limit::Bytes));
        drop((first, second));
        assert_eq!(flight.room().await, None);
    }
}
