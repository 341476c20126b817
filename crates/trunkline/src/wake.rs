//! Wake flags: a task that waits for many events, most of them rare, learns
//! which of them woke it.
//!
//! ```text
//!   a future that is rarely ready ── its waker ──▶ raise BY_WAKER ─┐
//!   another thread with news ──▶ raise a flag of its own ──────────┴▶ wakes the task
//!   the task, whatever woke it ── take ──▶ the raised flags, mostly none
//! ```
//!
//! A future that is polled on every wake of its task costs as much as the work
//! that the task was woken for. Polled with a waker of these flags, it is
//! polled again only after it raised its flag.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// The flag that the waker of [`WakeFlags`] raises.
pub(crate) const BY_WAKER: u8 = 1;

/// The flags that were raised, and the task to wake. The waker is only
/// replaced, never taken out, so a task that registered once is woken by every
/// flag.
#[derive(Debug)]
pub(crate) struct WakeFlags {
    raised: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl WakeFlags {
    /// Makes flags of which [`BY_WAKER`] is raised: a future that waits for its
    /// waker has to be polled once first.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            raised: AtomicU8::new(BY_WAKER),
            waker: Mutex::new(None),
        })
    }

    /// Raises a flag and wakes the task, if one is registered.
    pub(crate) fn raise(&self, flag: u8) {
        self.raised.fetch_or(flag, Ordering::AcqRel);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = &*waker {
            waker.wake_by_ref();
        }
    }
}

impl Wake for WakeFlags {
    fn wake(self: Arc<Self>) {
        self.raise(BY_WAKER);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise(BY_WAKER);
    }
}

/// The one task that waits for wake flags.
#[derive(Debug)]
pub(crate) struct WakeListener {
    flags: Arc<WakeFlags>,
    /// Raises [`BY_WAKER`].
    waker: Waker,
    /// The task's waker, as it is registered.
    registered: Option<Waker>,
}

impl WakeListener {
    /// Returns the listener of these flags. Its task is registered at the first
    /// [`Self::take_raised`].
    pub(crate) fn new(flags: Arc<WakeFlags>) -> Self {
        Self {
            waker: Waker::from(Arc::clone(&flags)),
            flags,
            registered: None,
        }
    }

    /// Returns the flags that were raised since the last call, and lowers them.
    /// Registers the task of `cx`, which the next flag wakes.
    pub(crate) fn take_raised(&mut self, cx: &Context<'_>) -> u8 {
        let wakes_task = |known: &Waker| known.will_wake(cx.waker());
        if !self.registered.as_ref().is_some_and(wakes_task) {
            // Registered before the flags are read, so that none is missed.
            let waker = self.flags.waker.lock();
            *waker.unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
            self.registered = Some(cx.waker().clone());
        }

        // A read costs less than a swap, and most calls find no flag raised.
        match self.flags.raised.load(Ordering::Acquire) {
            0 => 0,
            _ => self.flags.raised.swap(0, Ordering::AcqRel),
        }
    }

    /// Returns the context in which to poll a future whose waker is to raise
    /// [`BY_WAKER`].
    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_listens_is_woken_and_told_why() {
        let flags = WakeFlags::new();
        let mut listener = WakeListener::new(Arc::clone(&flags));
        let counts = [(); 2].map(|()| Arc::<Count>::default());
        let wakers = counts.clone().map(Waker::from);
        let [first, second] = wakers.each_ref().map(Context::from_waker);
        let woken = || counts.each_ref().map(|c| c.0.load(Ordering::Relaxed));

        assert_eq!(listener.take_raised(&first), BY_WAKER);
        assert_eq!(listener.take_raised(&first), 0);
        flags.raise(2);
        listener.context().waker().wake_by_ref();
        assert_eq!(woken(), [2, 0]);
        assert_eq!(listener.take_raised(&first), 2 | BY_WAKER);
        // A task stays registered without a second call.
        flags.raise(4);
        assert_eq!(woken(), [3, 0]);
        assert_eq!(listener.take_raised(&second), 4);
        flags.raise(4);
        assert_eq!(woken(), [3, 1]);
    }
}
