//! Messages to the thread that reads files, which may be busy or waiting.
//!
//! All events in between are merged into one message, so nothing piles up.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trunkline::ApplyError;

/// The maximum of remembered paths; beyond it every file is checked by its
/// stamp.
const MOST_PATHS: usize = 10_000;

/// The events since the last call.
#[derive(Default)]
pub(crate) struct Mail {
    /// Paths of changes.
    pub(crate) touched: HashSet<PathBuf>,
    /// Whether there were changes at unknown paths.
    pub(crate) somewhere: bool,
    /// The result of the last update.
    verdict: Option<Result<(), ApplyError>>,
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

/// The watcher was dropped.
pub(crate) struct Stopped;

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the mail, and wakes the thread up.
    fn tell(&self, write: impl FnOnce(&mut Mail)) {
        write(&mut self.lock());
        self.bell.notify_all();
    }

    /// Records a change at some paths; none means a change at an unknown path.
    pub(crate) fn touch(&self, paths: Vec<PathBuf>) {
        self.tell(|mail| {
            mail.count += 1;
            mail.somewhere |= paths.is_empty();
            if mail.touched.len() + paths.len() > MOST_PATHS {
                mail.touched.clear();
                mail.somewhere = true;
            } else {
                mail.touched.extend(paths);
            }
        });
    }

    /// Records the result of the last update.
    pub(crate) fn judge(&self, verdict: Result<(), ApplyError>) {
        self.tell(|mail| mail.verdict = Some(verdict));
    }

    pub(crate) fn stop(&self) {
        self.tell(|mail| mail.stop = true);
    }

    /// Waits for the result of an update.
    pub(crate) fn verdict(&self) -> Result<Result<(), ApplyError>, Stopped> {
        let mut mail = self.lock();
        loop {
            if mail.stop {
                return Err(Stopped);
            }
            if let Some(verdict) = mail.verdict.take() {
                return Ok(verdict);
            }
            mail = self.bell.wait(mail).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for an event and then for none during `quiet`, though not longer
    /// than `patience`; or until the deadline. Takes the events out; a verdict
    /// stays for [`verdict`](Self::verdict).
    pub(crate) fn wait(
        &self,
        deadline: Instant,
        quiet: Duration,
        patience: Duration,
    ) -> Result<Mail, Stopped> {
        let mut mail = self.lock();
        // After the first event: when patience ends, and the count of events.
        let mut started: Option<(Instant, u64)> = None;
        loop {
            if mail.stop {
                return Err(Stopped);
            }
            let now = Instant::now();
            let until = match started {
                None if mail.count > 0 => {
                    started = Some((now + patience, mail.count));
                    (now + quiet).min(now + patience)
                }
                None if now >= deadline => break,
                None => deadline,
                Some((end, count)) if now >= end || count == mail.count => break,
                Some((end, _)) => {
                    started = Some((end, mail.count));
                    (now + quiet).min(end)
                }
            };
            mail = self.sleep(mail, until, started.is_none());
        }
        let verdict = mail.verdict.take();
        let events = std::mem::take(&mut *mail);
        mail.verdict = verdict;
        Ok(events)
    }

    /// Sleeps until a time or until the watcher is dropped; if `wake_on_event`,
    /// not longer than until there is an event.
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
