//! A line on the terminal that says how far it is.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How often it is written.
const EVERY: Duration = Duration::from_millis(200);

/// The line; silent where nobody watches.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
    last: Option<Instant>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            shown: std::io::stderr().is_terminal(),
            last: None,
        }
    }

    /// So many of all are done.
    pub(crate) fn tell(&mut self, phase: &str, done: u64, all: u64) {
        let recent = |last: Instant| last.elapsed() < EVERY;
        if !self.shown || self.last.is_some_and(recent) {
            return;
        }
        self.last = Some(Instant::now());
        // A terminal that is gone is no reason to stop.
        let _ = write!(std::io::stderr(), "\r\x1b[K{phase}: {done} of {all}");
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if self.shown && self.last.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
