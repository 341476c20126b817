//! Messages to the thread that reads files, which may be busy or waiting.
//!
//! All events in between are merged into one message, so nothing piles up.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum of remembered paths; beyond it every file is checked by its
/// stamp.
const MOST_PATHS: usize = 10_000;

/// How long a file counts as open without a modification: a file that is cut
/// short by its path is modified, and never closed.
const LONGEST_OPEN: Duration = Duration::from_secs(60);

/// Paths of changes, and the last change of each.
pub(crate) type Touched = HashMap<PathBuf, Instant>;

/// An event at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathEvent {
    /// A file was modified, and whoever did so has not closed it yet.
    Modified,
    /// A file was closed after it was written, or replaced, or removed: it is
    /// complete, or gone.
    Completed,
    /// Anything else.
    Other,
}

/// The events since the last call.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// Paths of changes.
    pub(crate) touched: Touched,
    /// Whether there were changes at unknown paths.
    pub(crate) at_unknown_path: bool,
    stop: bool,
    /// Grows with every change.
    count: u64,
}

/// The events for the thread, and how it is woken up.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    bell: Condvar,
    /// Files that are open for writing, and their last modification.
    open: Mutex<HashMap<PathBuf, Instant>>,
}

/// The contents were dropped.
pub(crate) struct Stopped;

impl Mailbox {
    /// Locks the mail. A panic of another thread does not keep this one from
    /// it.
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the mail, and wakes the thread up.
    fn update(&self, write: impl FnOnce(&mut Mail)) {
        write(&mut self.lock());
        self.bell.notify_all();
    }

    /// Records a change at some paths. No path means a change at an unknown
    /// path. Beyond [`MOST_PATHS`] the paths are dropped, and count as unknown.
    pub(crate) fn add_change(&self, event: PathEvent, paths: Vec<PathBuf>) {
        self.note_open(event, &paths);
        let now = Instant::now();
        self.update(|mail| {
            mail.count += 1;
            mail.at_unknown_path |= paths.is_empty();
            if mail.touched.len() + paths.len() > MOST_PATHS {
                mail.touched.clear();
                mail.at_unknown_path = true;
            } else {
                mail.touched
                    .extend(paths.into_iter().map(|path| (path, now)));
            }
        });
    }

    /// Records a change at an unknown path. Which files are open is not known
    /// any more.
    pub(crate) fn add_unknown_change(&self) {
        self.add_change(PathEvent::Other, Vec::new());
    }

    /// Records which files are open after an event. Without a path, or beyond
    /// [`MOST_PATHS`], no file counts as open.
    fn note_open(&self, event: PathEvent, paths: &[PathBuf]) {
        let mut open = self.lock_open();
        if paths.is_empty() || open.len() + paths.len() > MOST_PATHS {
            open.clear();
        }
        for path in paths {
            match event {
                PathEvent::Modified => _ = open.insert(path.clone(), Instant::now()),
                PathEvent::Completed => _ = open.remove(path),
                PathEvent::Other => {}
            }
        }
    }

    /// Returns the files that are open for writing.
    pub(crate) fn open_files(&self) -> HashSet<PathBuf> {
        let mut open = self.lock_open();
        open.retain(|_, modified| modified.elapsed() < LONGEST_OPEN);
        open.keys().cloned().collect()
    }

    /// Locks the files that are open for writing, as [`Self::lock`] does the
    /// mail.
    fn lock_open(&self) -> MutexGuard<'_, HashMap<PathBuf, Instant>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the thread stop: every wait of it ends with [`Stopped`].
    pub(crate) fn stop(&self) {
        self.update(|mail| mail.stop = true);
    }

    /// Waits for an event, at most until the deadline, and then until no event
    /// comes during `quiet`, at most for `patience`. Returns the events, of
    /// which there may be none.
    pub(crate) fn wait_for_events(
        &self,
        deadline: Instant,
        quiet: Duration,
        patience: Duration,
    ) -> Result<Mail, Stopped> {
        let mut mail = self.sleep(self.lock(), deadline, true);

        // The wait goes on as long as every round brings new events.
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

    /// Sleeps until `end`, or until the contents are dropped. With
    /// `wake_on_event`, an event ends the sleep too, and an earlier event
    /// prevents it. The mail is unlocked during the sleep.
    fn sleep<'a>(
        &'a self,
        mut mail: MutexGuard<'a, Mail>,
        end: Instant,
        wake_on_event: bool,
    ) -> MutexGuard<'a, Mail> {
        loop {
            let remaining = end.saturating_duration_since(Instant::now());
            let is_woken = wake_on_event && mail.count > 0;
            if remaining.is_zero() || is_woken || mail.stop {
                return mail;
            }
            let result = self.bell.wait_timeout(mail, remaining);
            mail = result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
