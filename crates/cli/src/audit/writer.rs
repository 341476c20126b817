//! The thread that writes the audit log: a disk that is slow or hangs holds only
//! those who have to wait for it, and these not for ever.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::file::AuditFile;

/// The maximum of bytes that wait to be written, unless one change alone has
/// more.
pub(crate) const MOST_BYTES: usize = 16 << 20;
/// How long a change waits for room, or to be recorded.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Lines to be written together.
struct Job {
    lines: Vec<u8>,
    /// Whoever waits until they are on the disk, if somebody does.
    waiter: Option<Waiter>,
}

/// Whoever waits until lines are on the disk.
struct Waiter {
    recorded: SyncSender<Result<(), String>>,
    /// Set once, by the thread when the lines are written or by the waiter when
    /// it gives up: the first of them decides what has happened.
    is_decided: Arc<AtomicBool>,
    /// Written after the lines, if it has given up meanwhile.
    withdrawal: Vec<u8>,
}

/// Decides what has happened to lines, and returns whether nobody did so before.
fn decide(is_decided: &AtomicBool) -> bool {
    !is_decided.swap(true, Ordering::AcqRel)
}

/// Why lines were not written, which was logged and counted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unwritten {
    #[error("{0}")]
    Failed(String),
    #[error("it takes longer than {} seconds", PATIENCE.as_secs())]
    Late,
}

/// The jobs that are not done.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// The bytes of all jobs, the one under way among them.
    bytes: usize,
    /// Whether nothing was written since somebody waited in vain: others need
    /// not wait as long.
    is_stuck: bool,
}

/// Called with the number of lines that were not written, and the reason.
type OnFailure = Box<dyn Fn(u64, &str) + Send + Sync>;

/// Hands lines to the thread.
pub(super) struct Writer {
    queue: Arc<Queue>,
    on_failure: Arc<OnFailure>,
}

impl Writer {
    /// Starts the thread that writes to a file.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(file: AuditFile, on_failure: OnFailure) -> io::Result<Self> {
        let writer = Self {
            queue: Arc::default(),
            on_failure: Arc::new(on_failure),
        };
        let (queue, on_failure) = (Arc::clone(&writer.queue), Arc::clone(&writer.on_failure));
        let thread = std::thread::Builder::new().name("trunkline-audit".to_owned());
        thread.spawn(move || queue.write_to(file, &on_failure))?;
        Ok(writer)
    }

    /// Has lines written soon. Waits for room in the queue, but no longer than
    /// `patience`; lines without room are lost, and reported as a failure.
    pub(super) fn write(&self, lines: Vec<u8>, patience: Duration) {
        let count = count_lines(&lines);
        let waiter = None;
        if self.queue.push(Job { lines, waiter }, patience).is_err() {
            (self.on_failure)(count, "too many lines wait to be written");
        }
    }

    /// Writes lines, and returns when they are on the disk. If the wait ends
    /// while the lines are being written, the thread writes `withdrawal` after
    /// them; if it ends earlier, the lines are not written at all.
    ///
    /// # Errors
    /// The lines could not be written, or not in time.
    pub(super) fn record(&self, lines: Vec<u8>, withdrawal: Vec<u8>) -> Result<(), Unwritten> {
        let count = count_lines(&lines);
        let (result_sender, result_receiver) = sync_channel(1);
        let is_decided = Arc::<AtomicBool>::default();
        let waiter = Some(Waiter {
            recorded: result_sender,
            is_decided: Arc::clone(&is_decided),
            withdrawal,
        });

        let is_queued = self.queue.push(Job { lines, waiter }, PATIENCE).is_ok();
        let wait = self.queue.shorten(PATIENCE);
        let outcome = match is_queued {
            true => result_receiver.recv_timeout(wait).or_else(|_| {
                match decide(&is_decided) {
                    true => Err(RecvError),
                    // The thread decided first, and its result is about to come.
                    false => result_receiver.recv(),
                }
            }),
            false => Err(RecvError),
        };

        let Ok(result) = outcome else {
            self.queue.lock().is_stuck = true;
            (self.on_failure)(count, &Unwritten::Late.to_string());
            return Err(Unwritten::Late);
        };
        result.map_err(Unwritten::Failed)
    }

    /// Waits until all lines are written, but at most for `patience`.
    pub(super) fn flush(&self, patience: Duration) {
        let is_waiting = |state: &mut State| state.bytes > 0;
        let queue = &self.queue;
        let guard = queue
            .changed
            .wait_timeout_while(queue.lock(), patience, is_waiting);
        drop(guard);
    }
}

/// There is no room for lines.
struct Full;

impl Queue {
    /// Adds a job, when there is room for its lines. Marks the queue as stuck
    /// if no room comes in time.
    fn push(&self, job: Job, patience: Duration) -> Result<(), Full> {
        let bytes = job.lines.len();
        let has_no_room = |state: &mut State| state.bytes > 0 && state.bytes + bytes > MOST_BYTES;
        let patience = self.shorten(patience);
        let result = self
            .changed
            .wait_timeout_while(self.lock(), patience, has_no_room);
        let (mut state, _) = result.unwrap_or_else(PoisonError::into_inner);
        if has_no_room(&mut state) {
            state.is_stuck = true;
            return Err(Full);
        }

        state.bytes += bytes;
        state.jobs.push_back(job);
        self.changed.notify_all();
        Ok(())
    }

    /// Returns how long to wait: not at all, if somebody waited in vain and
    /// nothing was written since.
    fn shorten(&self, patience: Duration) -> Duration {
        match self.lock().is_stuck {
            true => Duration::ZERO,
            false => patience,
        }
    }

    /// Writes the lines of jobs for ever, and tells each waiter the result.
    fn write_to(&self, mut file: AuditFile, on_failure: &OnFailure) {
        loop {
            let Job { lines, waiter } = self.take_job();
            let has_given_up = |waiter: &Waiter| waiter.is_decided.load(Ordering::Acquire);
            if waiter.as_ref().is_some_and(has_given_up) {
                self.note_done(lines.len());
                continue;
            }

            let result = file.append(&lines, waiter.is_some());
            let result = result.map_err(|error| error.to_string());
            if let Err(error) = &result {
                on_failure(count_lines(&lines), error);
            }

            match waiter {
                None => {}
                // The send fails if nobody waits any more, which is no fault.
                Some(waiter) if decide(&waiter.is_decided) => {
                    let _ = waiter.recorded.send(result);
                }
                Some(waiter) if result.is_ok() => self.withdraw(waiter.withdrawal),
                Some(_) => {}
            }
            self.note_done(lines.len());
        }
    }

    /// Has the thread write that the change was not made for which it wrote last.
    fn withdraw(&self, lines: Vec<u8>) {
        let mut state = self.lock();
        state.bytes += lines.len();
        let waiter = None;
        state.jobs.push_front(Job { lines, waiter });
    }

    /// Takes the next job, and waits until there is one.
    fn take_job(&self) -> Job {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return job;
            }
            let result = self.changed.wait(state);
            state = result.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that a job is done with, written or not: its bytes make room, and
    /// waits are long again.
    fn note_done(&self, bytes: usize) {
        let mut state = self.lock();
        state.bytes -= bytes;
        state.is_stuck = false;
        self.changed.notify_all();
    }

    /// Locks the state of the queue. A panic of another thread does not spoil
    /// it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the lines of a text in which each line has its end.
fn count_lines(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}
