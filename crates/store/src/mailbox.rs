//! Messages to the thread that reads files, which may be busy or waiting.
//!
//! All events in between are merged into one message, so nothing piles up.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum of remembered paths; beyond it every file is checked by its
/// stamp.
const MOST_PATHS: usize = 10_000;

/// The events since the last call.
#[derive(Default)]
pub(crate) struct Mail {
    /// Paths of changes.
    pub(crate) touched: HashSet<PathBuf>,
    /// Whether there were changes at unknown paths.
    pub(crate) at_unknown_path: bool,
    stop: bool,
    /// Grows with every change.
    count: u64,
}

/// The events for the thread, and how it is woken up.
#[derive(Default)]
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    bell: Condvar,
}

/// The contents were dropped.
pub(crate) struct Stopped;

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the mail, and wakes the thread up.
    fn update(&self, write: impl FnOnce(&mut Mail)) {
        write(&mut self.lock());
        self.bell.notify_all();
    }

    /// Records a change at some paths; no path means a change at an unknown
    /// one. Beyond [`MOST_PATHS`] the paths are forgotten, and count as
    /// unknown.
    pub(crate) fn add_change(&self, paths: Vec<PathBuf>) {
        self.update(|mail| {
            mail.count += 1;
            mail.at_unknown_path |= paths.is_empty();
            if mail.touched.len() + paths.len() > MOST_PATHS {
                mail.touched.clear();
                mail.at_unknown_path = true;
            } else {
                mail.touched.extend(paths);
            }
        });
    }

    /// Makes the thread stop: every wait of it ends with [`Stopped`].
    pub(crate) fn stop(&self) {
        self.update(|mail| mail.stop = true);
    }

    /// Waits for an event, at most until the deadline; then until no event
    /// comes during `quiet`, though not longer than `patience` after the first.
    /// Takes the events out, of which there may be none.
    pub(crate) fn wait_for_events(
        &self,
        deadline: Instant,
        quiet: Duration,
        patience: Duration,
    ) -> Result<Mail, Stopped> {
        let mut mail = self.sleep(self.lock(), deadline, true);

        // Every round in which the count grew is followed by another.
        let patience_end = Instant::now() + patience;
        let mut seen_count = 0;
        while mail.count != seen_count && Instant::now() < patience_end && !mail.stop {
            seen_count = mail.count;
            let quiet_end = Instant::now() + quiet;
            mail = self.sleep(mail, quiet_end.min(patience_end), false);
        }
        if mail.stop {
            return Err(Stopped);
        }

        Ok(std::mem::take(&mut *mail))
    }

    /// Sleeps until a time or until the contents are dropped; if `wake_on_event`,
    /// not longer than until there is an event, and not at all if there is one.
    /// The mail is unlocked meanwhile.
    fn sleep<'a>(
        &'a self,
        mut mail: MutexGuard<'a, Mail>,
        until: Instant,
        wake_on_event: bool,
    ) -> MutexGuard<'a, Mail> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let woken = wake_on_event && mail.count > 0;
            if left.is_zero() || woken || mail.stop {
                return mail;
            }
            let slept = self.bell.wait_timeout(mail, left);
            mail = slept.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
