//! The runtimes of a server: one in front for pushes, changes and the clients
//! that ask for little, and one behind it for those that ask for much
//! ([`Lanes`]). On a machine with one core too, the threads of the first get it
//! when they need it.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use trunkline::listen::Lanes;

use crate::allocator;
use crate::collector::Rounds;
use crate::failure::{Failure, Result};

/// How much nicer the threads of the runtime behind are than the others.
const NICE: i32 = 5;

/// The threads of a runtime for work that takes long. Questions, texts and long
/// requests have bounds of their own below this; what is let go when many
/// clients leave at once waits for its turn.
const MOST_BLOCKING: usize = 12;

/// How long such a thread is kept without work. Memory that others have freed
/// since it was allocated there goes back when the thread ends. Work that comes
/// again and again goes to each thread in turn, so ten changes in a second keep
/// all threads of a burst that are kept for a second.
const KEPT: Duration = Duration::from_millis(50);

/// How long work on other threads may go on after a server has stopped.
pub(crate) const LAST_WORK: Duration = Duration::from_secs(1);

/// See the module's documentation.
pub(crate) struct Runtimes {
    pub(crate) front: Runtime,
    back: Runtime,
}

impl Runtimes {
    /// Starts both runtimes, each with as many threads for tasks as the machine
    /// has cores. The threads of the back runtime, and those that its tasks
    /// start, have a lower priority.
    pub(crate) fn start() -> Result<Self> {
        allocator::set_up();
        let nice = niceness() + NICE;
        let mut back = Builder::new_multi_thread();
        back.on_thread_start(move || give_way(nice));
        let rounds = Rounds::default();
        let runtimes = Self {
            front: start_runtime(
                "trunkline-front",
                &mut Builder::new_multi_thread(),
                rounds.clone(),
            )?,
            back: start_runtime("trunkline-back", &mut back, rounds.clone())?,
        };
        let Lanes { front, back } = runtimes.lanes();
        rounds.start([front, back]);
        Ok(runtimes)
    }

    /// Returns the handles of both, as the library takes them.
    pub(crate) fn lanes(&self) -> Lanes {
        Lanes {
            front: self.front.handle().clone(),
            back: self.back.handle().clone(),
        }
    }

    /// Ends both runtimes, and waits for work on other threads, at most for
    /// `patience` each.
    pub(crate) fn shut_down(self, patience: Duration) {
        self.back.shutdown_timeout(patience);
        self.front.shutdown_timeout(patience);
    }
}

/// Starts a runtime, whose idle threads attend to the rounds of the collector.
fn start_runtime(name: &str, builder: &mut Builder, rounds: Rounds) -> Result<Runtime> {
    builder.enable_all().thread_name(name);
    builder.on_thread_park(move || rounds.attend());
    builder
        .max_blocking_threads(MOST_BLOCKING)
        .thread_keep_alive(KEPT);
    let runtime = builder.build();
    runtime.map_err(|error| Failure::wrong(format!("the runtime cannot start: {error}")))
}

/// Returns the niceness of this thread, and of those that it starts.
fn niceness() -> i32 {
    rustix::process::getpriority_process(None).unwrap_or_default()
}

/// Gives the calling thread this niceness. A system that refuses it, or that has
/// one niceness for all threads, shares evenly.
fn give_way(nice: i32) {
    if cfg!(target_os = "linux") {
        let _ = rustix::process::setpriority_process(None, nice);
    }
}
