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

    fn tell(&self, write: impl FnOnce(&mut Mail)) {
        write(&mut self.lock());
        self.bell.notify_all();
    }

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
    /// than `patience`; or until the deadline.
    pub(crate) fn wait(
        &self,
        deadline: Instant,
        quiet: Duration,
        patience: Duration,
    ) -> Result<Mail, Stopped> {
        let mut mail = self.lock();
        let mut latest: Option<(Instant, u64)> = None;
        loop {
            if mail.stop {
                return Err(Stopped);
            }
            let now = Instant::now();
            let until = match latest {
                None if mail.count > 0 => {
                    latest = Some((now + patience, mail.count));
                    (now + quiet).min(now + patience)
                }
                None if now >= deadline => break,
                None => deadline,
                Some((latest, count)) if now >= latest || count == mail.count => break,
                Some((end, _)) => {
                    latest = Some((end, mail.count));
                    (now + quiet).min(end)
                }
            };
            mail = self.sleep(mail, until, latest.map(|(_, count)| count));
        }
        let verdict = mail.verdict.take();
        let told = std::mem::take(&mut *mail);
        mail.verdict = verdict;
        Ok(told)
    }

    /// Sleeps until a time; or, while there is no event, until there is one.
    fn sleep<'a>(
        &'a self,
        mut mail: MutexGuard<'a, Mail>,
        until: Instant,
        count: Option<u64>,
    ) -> MutexGuard<'a, Mail> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let news = count.is_none() && mail.count > 0;
            if left.is_zero() || news || mail.stop {
                return mail;
            }
            let slept = self.bell.wait_timeout(mail, left);
            mail = slept.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
