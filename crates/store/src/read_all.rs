//! Several files at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use trunkline_proto::text;

use crate::file::FileId;
use crate::read::{Known, Outcome, read};

/// More threads than this would wait for the disk and for memory.
const MOST_THREADS: usize = 4;

/// A file, and what was read of it before.
pub(crate) type Job = (FileId, Option<Known>);

/// Reads files, on several threads if there are several files. Returns their
/// outcomes in any order, with `None` for an unchanged file.
///
/// # Panics
/// If a thread panics. Its panic goes on here.
pub(crate) fn read_all(jobs: Vec<Job>, options: &text::Options) -> Vec<(FileId, Option<Outcome>)> {
    let read_one = |(id, known): &Job| {
        let outcome = read(&id.path, &id.name, known.as_ref(), options);
        (id.clone(), outcome)
    };

    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(MOST_THREADS).min(jobs.len());
    if threads <= 1 {
        return jobs.iter().map(read_one).collect();
    }

    // Each thread takes the next job when it has finished one, so that a large
    // file occupies only one thread.
    let next_index = AtomicUsize::new(0);
    let read_jobs = || {
        let next_job = || jobs.get(next_index.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(next_job)
            .map(read_one)
            .collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(read_jobs)).collect();
        let outcomes = workers.into_iter().map(|worker| match worker.join() {
            Ok(outcomes) => outcomes,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        outcomes.flatten().collect()
    })
}
