//! The push budget: how many responses, and how many bytes of them, may be on
//! their way to transports at once.
//!
//! A message that a client does not read within [`TIMEOUT`] no longer counts:
//! it is one message, it shares its bytes, and other clients do not wait for it
//! (S69).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::hooks::Limit;

/// How long a message counts, and the longest that one waits for others.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct PushBudget {
    max_pushes: usize,
    max_bytes: usize,
    pushes: AtomicUsize,
    bytes: AtomicUsize,
    freed: Notify,
    /// The number of tasks that wait for `freed`. Notifying costs a lock, so it
    /// is done only if there are any.
    waiting: AtomicUsize,
}

impl PushBudget {
    /// A budget of which nothing is used. Zero is no bound.
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

    /// Waits until one more message may be sent, or for [`TIMEOUT`]. Returns
    /// the limit that it waited for; `None` if there was room.
    pub(super) async fn wait_for_room(&self) -> Option<Limit> {
        let limit = self.reached_limit()?;
        let room = async {
            loop {
                // Registered before the check, so that no notification is
                // missed.
                let freed = self.freed.notified();
                if self.reached_limit().is_none() {
                    break;
                }
                freed.await;
            }
        };

        let _waiting = Waiting::new(&self.waiting);
        // Slow clients are no reason to wait longer.
        let _ = tokio::time::timeout(TIMEOUT, room).await;
        Some(limit)
    }

    /// The limit that is reached; `None` if there is room for a message.
    pub(super) fn reached_limit(&self) -> Option<Limit> {
        if self.pushes.load(Ordering::SeqCst) >= self.max_pushes {
            Some(Limit::Pushes)
        } else if self.bytes.load(Ordering::SeqCst) >= self.max_bytes {
            Some(Limit::Bytes)
        } else {
            None
        }
    }

    /// Counts a message of so many bytes until the permit is dropped. A message
    /// counts even if it is beyond the limits.
    pub(super) fn count_push(self: &Arc<Self>, bytes: usize) -> PushPermit {
        self.pushes.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        PushPermit {
            budget: Arc::clone(self),
            bytes,
        }
    }
}

/// A message on its way, which counts until this is dropped.
#[derive(Debug)]
pub(super) struct PushPermit {
    budget: Arc<PushBudget>,
    bytes: usize,
}

impl Drop for PushPermit {
    /// Counts the message no longer, and wakes the tasks that wait for room.
    fn drop(&mut self) {
        let budget = &self.budget;
        budget.pushes.fetch_sub(1, Ordering::SeqCst);
        budget.bytes.fetch_sub(self.bytes, Ordering::SeqCst);
        if budget.waiting.load(Ordering::SeqCst) > 0 {
            budget.freed.notify_waiters();
        }
    }
}

/// A waiting task, counted before it checks for room: a permit that is dropped
/// after the check sees the count.
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
        let budget = Arc::new(PushBudget::new(1, 0));
        assert_eq!(budget.wait_for_room().await, None);
        let permit = budget.count_push(10);
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.wait_for_room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(permit);
        assert_eq!(waiting.await.unwrap(), Some(Limit::Pushes));
        assert_eq!(budget.wait_for_room().await, None);
        let stuck = budget.count_push(1);
        // Paused time advances when nothing else can happen.
        assert_eq!(budget.wait_for_room().await, Some(Limit::Pushes));
        drop(stuck);
        assert_eq!(budget.wait_for_room().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_bounded_too() {
        let budget = Arc::new(PushBudget::new(0, 100));
        let first = budget.count_push(60);
        assert_eq!(budget.wait_for_room().await, None);
        let second = budget.count_push(60);
        assert_eq!(budget.wait_for_room().await, Some(Limit::Bytes));
        drop((first, second));
        assert_eq!(budget.wait_for_room().await, None);
    }
}
