//! What the thread that reads files is told while it is busy or waits.
//!
//! Whatever happens in between becomes one letter, so nothing piles up.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trunkline::ApplyError;

/// Paths that are remembered; beyond them every file is looked at by its stamp.
const MOST_PATHS: usize = 10_000;

/// What was told since the last look.
#[derive(Default)]
pub(crate) struct Mail {
    /// Where something happened.
    pub(crate) touched: HashSet<PathBuf>,
    /// Something happened, nobody knows where.
    pub(crate) somewhere: bool,
    /// What became of the last update.
    verdict: Option<Result<(), ApplyError>>,
    stop: bool,
    /// Grows with every change that is told.
    count: u64,
}

#[derive(Default)]
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    bell: Condvar,
}

/// Nobody listens any more.
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

    /// Waits for what becomes of an update.
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

    /// Waits until something happened and then nothing more for `quiet`, though
    /// not longer than `patience`; or until the deadline.
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

    /// Sleeps until a time; or, while nothing has happened, until something does.
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
