//! The queue between the threads that log and the one that writes: nobody but
//! that thread waits for standard error.
//!
//! ```text
//! push ──▶ pending, at most MOST_BYTES ──▶ thread ──▶ standard error
//!   └─ no room: the line is lost, counted, and told when there is room again
//! ```

use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum of bytes that wait to be written, those under way among them.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// The part of them that only important lines may take: a flood of debug lines
/// leaves room for the error that explains it.
pub(super) const RESERVED: usize = MOST_BYTES / 4;

/// The lines that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines.
    pending: Vec<u8>,
    /// The number of bytes that the thread is writing.
    in_writing: usize,
    /// Lines that were lost and not told of.
    untold: u64,
    /// All lines that were lost.
    lost: u64,
}

impl State {
    /// Counts lines that are lost, and about which no line was written yet.
    fn lose(&mut self, lines: u64) {
        self.untold += lines;
        self.lost += lines;
    }

    /// Returns whether no line waits or is being written.
    fn is_drained(&self) -> bool {
        self.pending.is_empty() && self.in_writing == 0
    }
}

impl Queue {
    /// Adds a line if there is room, and never waits. An important line may use
    /// the whole queue; other lines leave [`RESERVED`] bytes for it.
    pub(super) fn push(&self, line: &[u8], is_important: bool) {
        let capacity = match is_important {
            true => MOST_BYTES,
            false => MOST_BYTES - RESERVED,
        };
        let mut state = self.lock();
        let total_bytes = state.pending.len() + state.in_writing + line.len();
        match total_bytes <= capacity {
            true => state.pending.extend_from_slice(line),
            false => state.lose(1),
        }
        self.changed.notify_all();
    }

    /// Returns the number of lines that were lost since the start.
    pub(super) fn lost_count(&self) -> u64 {
        self.lock().lost
    }

    /// Waits until all lines are written, but no longer than `patience`.
    pub(super) fn flush(&self, patience: Duration) {
        let is_waiting = |state: &mut State| !state.is_drained();
        let wait = self
            .changed
            .wait_timeout_while(self.lock(), patience, is_waiting);
        drop(wait);
    }

    /// Writes lines for ever. After a successful write, calls `report_loss`
    /// with the number of lines that were lost since the last call, if there
    /// were any; `report_loss` may push a line.
    pub(super) fn write_to(&self, mut output: impl Write, report_loss: impl Fn(u64)) {
        loop {
            let lines = self.take_pending();
            let result = output.write_all(&lines).and_then(|()| output.flush());
            let untold = self.note_written(&lines, result.is_ok());
            if untold > 0 {
                report_loss(untold);
            }
        }
    }

    /// Takes all pending lines. Waits until there are some.
    fn take_pending(&self) -> Vec<u8> {
        let is_empty = |state: &mut State| state.pending.is_empty();
        let result = self.changed.wait_while(self.lock(), is_empty);
        let mut state = result.unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut state.pending);
        state.in_writing = lines.len();
        lines
    }

    /// Notes that the lines which the thread took are written, or lost. Returns
    /// the number of lost lines that are to be reported now.
    fn note_written(&self, lines: &[u8], is_written: bool) -> u64 {
        let mut state = self.lock();
        state.in_writing = 0;
        self.changed.notify_all();
        if !is_written {
            let count = lines.iter().filter(|byte| **byte == b'\n').count();
            state.lose(count as u64);
            return 0;
        }
        std::mem::take(&mut state.untold)
    }

    /// Locks the state of the queue. A panic of another thread does not spoil
    /// it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, mpsc};

    /// A pipe that takes a write only when the test says so.
    struct Gate {
        open: mpsc::Receiver<()>,
        written: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let closed = |_| io::Error::other("the test is over");
            self.open.recv().map_err(closed)?;
            let _ = self.written.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_pipe_that_nobody_reads_costs_lines_and_no_time() {
        let queue = Arc::new(Queue::default());
        let (opener, open) = mpsc::channel();
        let (written, writes) = mpsc::channel();
        let (told, lost) = mpsc::channel();
        let thread = Arc::clone(&queue);
        std::thread::spawn(move || {
            let gate = Gate { open, written };
            thread.write_to(gate, |count| told.send(count).unwrap());
        });

        let line = [&[b'x'; 1023][..], b"\n"].concat();
        // More than there is room for, though the thread may have taken some.
        for _ in 0..2 * MOST_BYTES / line.len() {
            queue.push(&line, false);
        }
        let plain = (MOST_BYTES - RESERVED) / line.len();
        let many_lost = queue.lost_count();
        assert_eq!(many_lost as usize, 2 * MOST_BYTES / line.len() - plain);
        // An error still finds room.
        queue.push(b"error\n", true);
        assert_eq!(queue.lost_count(), many_lost);
        queue.flush(Duration::ZERO);

        opener.send(()).unwrap();
        assert_eq!(lost.recv().unwrap(), many_lost);
        // The thread may have taken all lines at once, or some before the rest.
        opener.send(()).unwrap();
        let mut all = Vec::new();
        while all.len() < plain * line.len() + b"error\n".len() {
            all.extend(writes.recv().unwrap());
        }
        assert!(all.ends_with(b"error\n"));
        queue.flush(Duration::from_secs(30));
        assert!(queue.lock().is_drained());
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let queue = Arc::new(Queue::default());
        let (_, open) = mpsc::channel();
        let (written, _writes) = mpsc::channel();
        let thread = Arc::clone(&queue);
        std::thread::spawn(move || thread.write_to(Gate { open, written }, |_| ()));
        queue.push(b"one\ntwo\n", false);
        queue.flush(Duration::from_secs(30));
        assert_eq!(queue.lost_count(), 2);
    }
}
