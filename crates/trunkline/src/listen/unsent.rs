//! The unsent bytes of a connection: messages that were built for its streams
//! and that its client has not taken.
//!
//! A client with many streams that reads none of them would pin a message for
//! each. Beyond a bound the connection's streams build no further message
//! until one is taken. They wait for their own client and for nobody else:
//! connections have no bound in common, so a client that does not read delays
//! no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The unsent bytes of one connection; see the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    bytes: AtomicUsize,
    taken: Notify,
    /// The number of streams that wait for `taken`. Notifying costs a lock, so
    /// it is done only if there are any.
    waiting: AtomicUsize,
}

impl Unsent {
    /// Returns whether one more message may be built, with fewer than
    /// `max_bytes` on their way. A connection that has no message on its way
    /// always may, however long the message is.
    pub(crate) fn has_room(&self, max_bytes: usize) -> bool {
        let bytes = self.bytes.load(Ordering::SeqCst);
        bytes == 0 || bytes < max_bytes
    }

    /// Waits until one more message may be built. A message that is taken wakes
    /// one stream, and each that finds room wakes the next: if each message
    /// woke all, a client with many streams could keep the server busy.
    pub(crate) async fn wait_for_room(&self, max_bytes: usize) {
        let _waiting = Waiting::new(&self.waiting);
        while !self.has_room(max_bytes) {
            // A notification between the check and this call is not lost.
            self.taken.notified().await;
        }
        self.taken.notify_one();
    }

    /// Adds a message of `bytes` bytes, which counts until the result is
    /// dropped. The bound is not checked: [`Self::has_room`] was asked before
    /// the message was built, when nobody knew its length.
    pub(crate) fn add_message(self: &Arc<Self>, bytes: usize) -> UnsentMessage {
        // `Relaxed` is enough: only a message that is taken wakes a stream, so
        // only its subtraction is ordered with `waiting`. A stream that does
        // not see this addition yet is one that asked a moment earlier.
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        UnsentMessage {
            unsent: Arc::clone(self),
            bytes,
        }
    }
}

/// A message that the client has not taken. It counts until this is dropped.
#[derive(Debug)]
#[must_use = "the message counts only until this is dropped"]
pub(crate) struct UnsentMessage {
    unsent: Arc<Unsent>,
    bytes: usize,
}

impl Drop for UnsentMessage {
    /// Counts the message no longer, and wakes a stream that waits for room.
    fn drop(&mut self) {
        let unsent = &self.unsent;
        unsent.bytes.fetch_sub(self.bytes, Ordering::SeqCst);
        if unsent.waiting.load(Ordering::SeqCst) > 0 {
            unsent.taken.notify_one();
        }
    }
}

/// A waiting stream, counted before it checks for room: a message that is
/// taken after the check sees the count.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    /// Counts a stream as waiting, until the value is dropped.
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

    #[tokio::test]
    async fn a_stream_waits_for_the_others_of_its_connection() {
        let unsent = Arc::<Unsent>::default();
        let first = unsent.add_message(60);
        assert!(unsent.has_room(100));
        let second = unsent.add_message(60);
        assert!(!unsent.has_room(100));
        let waiting = [(); 3].map(|()| {
            let unsent = Arc::clone(&unsent);
            tokio::spawn(async move { unsent.wait_for_room(100).await })
        });
        tokio::task::yield_now().await;
        assert!(!waiting.iter().any(tokio::task::JoinHandle::is_finished));
        waiting[0].abort();
        drop(first);
        for waiting in waiting.into_iter().skip(1) {
            waiting.await.unwrap();
        }
        drop(second);
        // A message is sent although it is beyond the bound by itself.
        assert!(unsent.has_room(0));
    }
}
