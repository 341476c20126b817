//! The driver: an operator who changes one of the victim's clusters every 100 ms.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use crate::contents::{self, CLUSTERS};
use crate::door::Door;
use crate::ledger::Ledger;

/// How often something changes.
const TICK: Duration = Duration::from_millis(100);

/// A driver that runs until this is dropped, or is told to stop.
#[derive(Debug)]
pub(crate) struct Driver {
    stopped: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Driver {
    pub(crate) fn start(admin: Door, ledger: Arc<Ledger>) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(drive(admin, ledger, Arc::clone(&stopped)));
        Self { stopped, task }
    }

    /// Makes no more changes, and waits for those under way.
    pub(crate) async fn stop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = (&mut self.task).await;
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Makes a change at each tick, also while earlier ones are not answered: a
/// server that stalls is asked no less. Changes of one cluster do not overlap.
async fn drive(admin: Door, ledger: Arc<Ledger>, stopped: Arc<AtomicBool>) {
    let busy: Arc<[AtomicBool; CLUSTERS]> = Arc::default();
    let mut changes = JoinSet::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for revision in 1.. {
        ticks.tick().await;
        while changes.try_join_next().is_some() {}
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let index = revision as usize % CLUSTERS;
        if busy[index].swap(true, Ordering::Relaxed) {
            ledger.blame(|faults| faults.skipped += 1);
            continue;
        }
        let (admin, ledger, busy) = (admin.clone(), Arc::clone(&ledger), Arc::clone(&busy));
        changes.spawn(async move {
            ledger.send(revision);
            match contents::change_cluster(&admin, index, revision).await {
                Ok(()) => ledger.accept(index, revision),
                Err(error) => ledger.fail(&error),
            }
            busy[index].store(false, Ordering::Relaxed);
        });
    }
    changes.join_all().await;
}
