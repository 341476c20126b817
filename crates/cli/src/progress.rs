//! Progress of long work, on standard error.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// The interval of progress lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shows progress on standard error, once in an interval.
pub(crate) struct Progress {
    /// What is done, such as `sent`.
    verb: &'static str,
    total: usize,
    shown_at: Instant,
    /// On a terminal, one line is written over and over.
    is_terminal: bool,
    has_shown: bool,
}

impl Progress {
    /// Begins the progress through `total` resources. The first line is shown
    /// after one interval, so a short work shows none.
    pub(crate) fn new(verb: &'static str, total: usize) -> Self {
        Self {
            verb,
            total,
            shown_at: Instant::now(),
            is_terminal: std::io::stderr().is_terminal(),
            has_shown: false,
        }
    }

    /// Shows the number of resources that are done, unless a line was shown
    /// less than [`INTERVAL`] ago.
    pub(crate) fn show(&mut self, count: usize) {
        if self.shown_at.elapsed() < INTERVAL {
            return;
        }
        let percent = count * 100 / self.total.max(1);
        let (verb, total) = (self.verb, self.total);
        self.print(&format!("{verb} {count} of {total} resources ({percent}%)"));
    }

    /// Shows how much is done of what has no known end, as seldom.
    pub(crate) fn show_text(&mut self, text: impl FnOnce() -> String) {
        if self.shown_at.elapsed() >= INTERVAL {
            self.print(&text());
        }
    }

    /// Prints a line. On a terminal, the line replaces the one before.
    fn print(&mut self, line: &str) {
        self.shown_at = Instant::now();
        self.has_shown = true;
        match self.is_terminal {
            // The escape sequence clears the end of a longer line before.
            true => eprint!("\r{line}\x1b[K"),
            false => eprintln!("{line}"),
        }
    }

    /// Ends the line of a terminal.
    pub(crate) fn end(&self) {
        if self.is_terminal && self.has_shown {
            eprintln!();
        }
    }
}
