//! A thread that returns memory which nobody uses to the system.
//!
//! Free pages stay with the process until a thread purges them, so the memory of
//! a burst would stay for as long. mimalloc also has pages of its own for each
//! thread: if one thread frees what another has allocated, the page stays with
//! the other until that one allocates again, and a thread of a runtime may sleep
//! for hours. With that allocator the collector wakes each of them.
//!
//! ```text
//!   collector ── round 7 ──▶ every thread of a runtime, once in each round:
//!      │                     frees its pages
//!      └─ purges what is free
//! ```
//!
//! To purge takes longer than to collect, so this thread alone does it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::allocator;

/// The time from one round to the next. A thread that is not woken in a round
/// has the next one.
const EVERY: Duration = Duration::from_secs(2);

thread_local! {
    /// The last round of this thread.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// The number of the round, which all threads know. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds(Arc<AtomicU64>);

impl Rounds {
    /// Collects the pages of the calling thread, once in each round.
    pub(crate) fn attend(&self) {
        let round = self.0.load(Ordering::Relaxed);
        if LAST.replace(round) != round {
            allocator::collect();
        }
    }

    /// Starts the thread that collects memory from the threads of these
    /// runtimes, until the program ends. If the thread cannot be started,
    /// unused memory stays with the process.
    pub(crate) fn start(&self, runtimes: [Handle; 2]) {
        let rounds = self.clone();
        let thread = std::thread::Builder::new().name("trunkline-collector".to_owned());
        let result = thread.spawn(move || {
            loop {
                std::thread::sleep(EVERY);
                if allocator::IS_BY_THREAD {
                    rounds.begin(&runtimes);
                }
                allocator::purge();
            }
        });
        if let Err(error) = result {
            tracing::warn!(%error, "no thread returns unused memory");
        }
    }

    /// Begins a round, and wakes the sleeping threads. A runtime wakes a thread
    /// for a task, and a thread that takes a task wakes another, so as many
    /// tasks as threads reach all.
    fn begin(&self, runtimes: &[Handle]) {
        self.0.fetch_add(1, Ordering::Relaxed);
        for runtime in runtimes {
            for _ in 0..runtime.metrics().num_workers() {
                let rounds = self.clone();
                runtime.spawn(async move { rounds.attend() });
            }
        }
    }
}
