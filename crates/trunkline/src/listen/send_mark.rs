//! The mark of a send: whether something waits to be taken by a peer, and
//! whether it is the same as before.
//!
//! A transport that waits for its peer polls nothing, so no timer of a stream
//! runs meanwhile. A mark is looked at from outside, again and again, and
//! costs the sender two stores and no clock.

use std::sync::atomic::{AtomicU32, Ordering};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct SendMark {
    /// The number of the send, twice, and one more while it waits. Written by
    /// the sender only.
    state: AtomicU32,
    /// The state at the last check. Written by checks only, as is the next.
    seen: AtomicU32,
    /// The number of checks in which the same send waited.
    checks: AtomicU32,
}

const WAITS: u32 = 1;
const NEXT: u32 = 2;

impl SendMark {
    /// Notes that something new waits for the peer.
    pub(crate) fn note_new(&self) {
        let state = self.state.load(Ordering::Relaxed);
        let next = state.wrapping_add(NEXT) | WAITS;
        self.state.store(next, Ordering::Relaxed);
    }

    /// Notes that nothing waits any more.
    pub(crate) fn note_taken(&self) {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state & !WAITS, Ordering::Relaxed);
    }

    /// Notes that something waits. If something did before, it counts as the
    /// same.
    pub(crate) fn note_waiting(&self) {
        let state = self.state.load(Ordering::Relaxed);
        if state & WAITS == 0 {
            self.note_new();
        }
    }

    /// Returns whether one send has waited for more than `most_checks` checks
    /// in a row. Each call counts as a check.
    pub(super) fn is_stalled(&self, most_checks: u32) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        let is_same = state == self.seen.swap(state, Ordering::Relaxed);
        if state & WAITS == 0 || !is_same {
            self.checks.store(0, Ordering::Relaxed);
            return false;
        }
        self.checks.fetch_add(1, Ordering::Relaxed) >= most_checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_send_that_waits_through_all_checks_is_stalled() {
        let mark = SendMark::default();
        for _ in 0..10 {
            assert!(!mark.is_stalled(2), "nothing waits");
        }
        for _ in 0..10 {
            mark.note_new();
            assert!(!mark.is_stalled(2), "another one each time");
            mark.note_taken();
            assert!(!mark.is_stalled(2), "taken");
        }
        mark.note_new();
        let stalled = [(); 5].map(|()| mark.is_stalled(2));
        assert_eq!(stalled, [false, false, false, true, true]);
        mark.note_waiting();
        assert!(mark.is_stalled(2), "still the same");
        mark.note_taken();
        assert!(!mark.is_stalled(2));
    }
}
