//! A bell for a task that waits for many things, most of which seldom happen.
//!
//! ```text
//!   what seldom happens ── its waker ──▶ rings: BY_WAKER ─┐
//!   who has something to tell ───────▶ rings: its own ────┴▶ wakes the task
//!   the task, whatever it was woken by ── heard? ──▶ what rang, mostly nothing
//! ```
//!
//! A future that is polled whenever its task is costs as much as what the task
//! is woken for. Polled with the bell's waker, it is polled again when it rang.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// What rings a bell through its waker.
pub(crate) const BY_WAKER: u8 = 1;

/// What has rung, and whom to wake. The waker is only replaced, never taken
/// out, so who is registered once hears of everything.
#[derive(Debug)]
pub(crate) struct Bell {
    rung: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    /// Has rung by its waker: what waits for it is to be polled once.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            rung: AtomicU8::new(BY_WAKER),
            waker: Mutex::new(None),
        })
    }

    /// Rings, and says why.
    pub(crate) fn ring(&self, why: u8) {
        self.rung.fetch_or(why, Ordering::AcqRel);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = &*waker {
            waker.wake_by_ref();
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring(BY_WAKER);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring(BY_WAKER);
    }
}

/// The one task that hears a bell.
#[derive(Debug)]
pub(crate) struct Listener {
    bell: Arc<Bell>,
    /// Rings it.
    ringing: Waker,
    /// Who is registered.
    registered: Option<Waker>,
}

impl Listener {
    pub(crate) fn new(bell: Arc<Bell>) -> Self {
        Self {
            ringing: Waker::from(Arc::clone(&bell)),
            bell,
            registered: None,
        }
    }

    /// What rang since this was last asked; who asks is woken when it rings.
    pub(crate) fn heard(&mut self, cx: &Context<'_>) -> u8 {
        let same = |known: &Waker| known.will_wake(cx.waker());
        if !self.registered.as_ref().is_some_and(same) {
            // Before it is looked at, so that nothing is missed.
            let waker = self.bell.waker.lock();
            *waker.unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
            self.registered = Some(cx.waker().clone());
        }
        match self.bell.rung.load(Ordering::Acquire) {
            0 => 0,
            _ => self.bell.rung.swap(0, Ordering::AcqRel),
        }
    }

    /// For polling what is to ring the bell.
    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.ringing)
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
        let bell = Bell::new();
        let mut listener = Listener::new(Arc::clone(&bell));
        let counts = [(); 2].map(|()| Arc::<Count>::default());
        let wakers = counts.clone().map(Waker::from);
        let [first, second] = wakers.each_ref().map(Context::from_waker);
        let woken = || counts.each_ref().map(|c| c.0.load(Ordering::Relaxed));

        assert_eq!(listener.heard(&first), BY_WAKER);
        assert_eq!(listener.heard(&first), 0);
        bell.ring(2);
        listener.context().waker().wake_by_ref();
        assert_eq!(woken(), [2, 0]);
        assert_eq!(listener.heard(&first), 2 | BY_WAKER);
        // It goes on being woken without asking anew.
        bell.ring(4);
        assert_eq!(woken(), [3, 0]);
        assert_eq!(listener.heard(&second), 4);
        bell.ring(4);
        assert_eq!(woken(), [3, 1]);
    }
}
