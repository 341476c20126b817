//! The lock around a database, and how long threads wait for it.
//!
//! Most threads find it free. Large work is done in slices (S85), and between
//! two slices the threads that wait get the lock first: a lock of the standard
//! library goes to the fastest thread, which is the one that just released it.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Engine<T> {
    state: Mutex<T>,
    /// Threads that wait now.
    waiting: AtomicUsize,
    /// How many times a thread that had waited got the lock.
    served: AtomicUsize,
    /// The longest wait, in nanoseconds.
    longest: AtomicU64,
}

/// The locked engine. Its drop ends a slice.
#[derive(Debug)]
pub(crate) struct EngineGuard<'a, T: Sliced>(MutexGuard<'a, T>);

/// What is used a slice at a time.
pub(crate) trait Sliced {
    /// The engine is about to be free for others.
    fn end_slice(&mut self);
}

impl<T: Sliced> Engine<T> {
    /// Makes a lock around a state; nobody waits yet.
    pub(crate) fn new(state: T) -> Self {
        Self {
            state: Mutex::new(state),
            waiting: AtomicUsize::new(0),
            served: AtomicUsize::new(0),
            longest: AtomicU64::new(0),
        }
    }

    /// Locks the database, and waits for that if need be. Ignores poison: a
    /// stream whose task panicked does not end the others.
    pub(crate) fn lock(&self) -> EngineGuard<'_, T> {
        match self.state.try_lock() {
            Ok(state) => EngineGuard(state),
            Err(TryLockError::Poisoned(poisoned)) => EngineGuard(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => self.lock_after_wait(),
        }
    }

    /// Waits for the lock, and notes the time if it is the longest wait so far.
    /// The clock is read only here, because most calls of [`Self::lock`] do not
    /// wait.
    #[cold]
    fn lock_after_wait(&self) -> EngineGuard<'_, T> {
        let start = Instant::now();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.served.fetch_add(1, Ordering::SeqCst);
        self.waiting.fetch_sub(1, Ordering::SeqCst);

        let waited = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.longest.fetch_max(waited, Ordering::Relaxed);
        EngineGuard(state)
    }

    /// Lets each thread that waits now have the lock once. To be called between
    /// two slices, without the lock.
    pub(crate) fn give_way(&self) {
        let waiting_at_start = self.waiting.load(Ordering::SeqCst);
        let served_at_start = self.served.load(Ordering::SeqCst);
        let served_since = || {
            let served = self.served.load(Ordering::SeqCst);
            served.wrapping_sub(served_at_start)
        };
        // A thread that got the lock between the two reads above is never
        // counted as served; the loop also ends when nobody waits.
        while self.waiting.load(Ordering::SeqCst) > 0 && served_since() < waiting_at_start {
            std::thread::yield_now();
        }
    }

    /// Returns the longest wait of a thread, since the start or since
    /// [`Self::take_longest_wait`].
    pub(super) fn longest_wait(&self) -> Duration {
        Duration::from_nanos(self.longest.load(Ordering::Relaxed))
    }

    /// Resets the longest wait, and returns it.
    pub(super) fn take_longest_wait(&self) -> Duration {
        Duration::from_nanos(self.longest.swap(0, Ordering::Relaxed))
    }
}

impl<T: Sliced> Deref for EngineGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Sliced> DerefMut for EngineGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Sliced> Drop for EngineGuard<'_, T> {
    fn drop(&mut self) {
        self.0.end_slice();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use trunkline_core::database::Database;

    use super::*;

    struct State(Database, usize);

    impl Sliced for State {
        fn end_slice(&mut self) {
            self.0.end_slice();
        }
    }

    #[test]
    fn s85_who_waits_has_the_engine_before_who_gives_way() {
        let engine = Arc::new(Engine::new(State(Database::new(), 0)));
        assert_eq!(engine.longest_wait(), Duration::ZERO);
        for round in 1..=20 {
            let held = engine.lock();
            let other = Arc::clone(&engine);
            let other = thread::spawn(move || other.lock().1 += 1);
            while engine.waiting.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            drop(held);
            engine.give_way();
            assert_eq!(engine.lock().1, round);
            other.join().unwrap();
        }
        assert!(engine.longest_wait() > Duration::ZERO);
        assert!(engine.take_longest_wait() > Duration::ZERO);
        assert_eq!(engine.longest_wait(), Duration::ZERO);
        // Nobody waits.
        engine.give_way();
    }
}
