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
    /// Makes a line that is silent unless standard error is a terminal.
    pub(crate) fn new() -> Self {
        Self {
            shown: std::io::stderr().is_terminal(),
            last: None,
        }
    }

    /// Shows that `done` of `all` are done, unless the line was written a
    /// moment ago.
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
