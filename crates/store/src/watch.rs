//! Watched files: a thread of its own scans them and hands out one update at a
//! time.
//!
//! ```text
//! the system tells ─┐                 ┌─▶ status
//! time to look again┴─▶ quiet ─▶ refresh ─▶ update ─▶ next() … applied or refused
//!                                   ▲                              │
//!                                   └──────────────────────────────┘
//! ```
//!
//! The next update is handed out after the result of the last one is known. So
//! a slow consumer gets the newest state next.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use trunkline::{ApplyError, Change};

use crate::files::{Files, Refresh};
use crate::mailbox::{Mail, Mailbox, Stopped};
use crate::notifications::Notifications;
use crate::scan::{Places, scan};
use crate::status::FilesStatus;

/// How often directories are scanned again because new ones appear in them.
const MOST_RESCANS: usize = 8;

/// One transaction: the changes of files since the update before.
#[derive(Debug)]
pub struct Update {
    /// The changes; they belong together.
    pub changes: Vec<Change>,
    /// The files that changed, removed ones included.
    pub files: Vec<Arc<str>>,
    /// Whether this is the whole first contents: every file is good, for the
    /// first time. Once it is applied, loading is done (S51).
    pub first: bool,
}

/// Watches files until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    updates: mpsc::Receiver<Update>,
    status: watch::Receiver<Arc<FilesStatus>>,
    mailbox: StopOnDrop,
    /// Whether an update was handed out and its result is not known.
    open: bool,
}

/// The mailbox of the thread, which stops the thread when it is dropped.
struct StopOnDrop(Arc<Mailbox>);

impl std::fmt::Debug for StopOnDrop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StopOnDrop")
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Watcher {
    /// Waits for the next update. A call means that the one before was applied,
    /// unless [`refused`](Self::refused) said otherwise. Returns `None` if
    /// files are no longer watched.
    ///
    /// Cancel safe: a call that is dropped loses no update.
    pub async fn next(&mut self) -> Option<Update> {
        if std::mem::take(&mut self.open) {
            self.mailbox.0.set_result(Ok(()));
        }
        let update = self.updates.recv().await?;
        self.open = true;
        Some(update)
    }

    /// Reports that the last update was not applied. The files at fault are bad
    /// from now on, with this reason, until they change; the changes of the
    /// others come again. Without an update whose result is open, this does
    /// nothing.
    pub fn refused(&mut self, error: ApplyError) {
        if std::mem::take(&mut self.open) {
            self.mailbox.0.set_result(Err(error));
        }
    }

    /// Returns the status of all files, now and whenever it changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Arc<FilesStatus>> {
        self.status.clone()
    }
}

impl Files {
    /// Reads the files and watches them, in a thread of its own, until the
    /// watcher is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn watch(self) -> std::io::Result<Watcher> {
        let (updates, receiver) = mpsc::channel(1);
        let (report, status) = watch::channel(Arc::default());
        let mailbox = Arc::new(Mailbox::default());
        let notifications = Notifications::open(&mailbox, self.options.notify);

        let watching = Watching {
            files: self,
            notifications,
            places: Places::default(),
            mailbox: Arc::clone(&mailbox),
            updates,
            report,
        };

        thread::Builder::new()
            .name("trunkline-files".to_owned())
            .spawn(move || watching.run())?;
        Ok(Watcher {
            updates: receiver,
            status,
            mailbox: StopOnDrop(mailbox),
            open: false,
        })
    }
}

/// The thread that reads and watches files.
struct Watching {
    files: Files,
    notifications: Notifications,
    /// The directories of the last scan.
    places: Places,
    mailbox: Arc<Mailbox>,
    updates: mpsc::Sender<Update>,
    report: watch::Sender<Arc<FilesStatus>>,
}

impl Watching {
    /// Reads the files, hands out their changes and waits for the next event,
    /// again and again, until the watcher is dropped.
    fn run(mut self) {
        // At the start a file that looks half written is reported at once.
        let mut refresh = self.refresh(&HashSet::new(), true);
        loop {
            let Ok(refused) = self.hand_out(&mut refresh) else {
                return;
            };
            let pause = self.pause_after(refused, refresh.retry);
            let Ok(mail) = self.wait_for_change(Instant::now() + pause) else {
                return;
            };
            refresh = self.refresh(&mail.touched, false);
        }
    }

    /// Returns the longest time until files are scanned again: none after an
    /// update that was refused, and a short one if a file looks half written.
    fn pause_after(&self, refused: bool, retry: bool) -> Duration {
        let options = &self.files.options;
        if refused {
            Duration::ZERO
        } else if retry {
            options.retry
        } else {
            options.rescan
        }
    }

    /// Waits for events of which one may concern a file, or for the deadline.
    /// Events that concern none are dropped.
    fn wait_for_change(&self, deadline: Instant) -> Result<Mail, Stopped> {
        let Files { options, roots, .. } = &self.files;
        loop {
            let mail = self
                .mailbox
                .wait_for_events(deadline, options.quiet, options.patience)?;
            let mut touched = mail.touched.iter();
            let may_concern =
                mail.at_unknown_path || touched.any(|path| self.places.concerns_file(path, roots));
            if may_concern || Instant::now() >= deadline {
                return Ok(mail);
            }
        }
    }

    /// Scans and reads the files, and watches their directories. Those at
    /// `touched` are read even if they look the same; on the last try, a file
    /// that looks half written is bad.
    fn refresh(&mut self, touched: &HashSet<PathBuf>, last_try: bool) -> Refresh {
        let notifications = &mut self.notifications;
        let places = &mut self.places;
        let roots = self.files.roots.clone();

        let mut scan_and_watch = || {
            let mut found = scan(&roots);
            // A change in a directory before it was watched is seen by another
            // scan.
            for _ in 0..MOST_RESCANS {
                let any_new = notifications.watch_only(found.places.all());
                if !any_new {
                    break;
                }
                found = scan(&roots);
            }
            *places = std::mem::take(&mut found.places);
            found
        };
        self.files.refresh(&mut scan_and_watch, touched, last_try)
    }

    /// Publishes the status, hands out the changes, if there are any, and waits
    /// for their result. Returns whether they were refused: then they are
    /// undone, and files have to be scanned again.
    ///
    /// # Errors
    /// The watcher was dropped.
    fn hand_out(&mut self, refresh: &mut Refresh) -> Result<bool, Stopped> {
        self.publish();
        let Some(changes) = refresh.changes.take() else {
            return Ok(false);
        };

        let first = refresh.first;
        let update = Update {
            changes,
            files: std::mem::take(&mut refresh.files),
            first,
        };
        if self.updates.blocking_send(update).is_err() {
            return Err(Stopped);
        }

        match self.mailbox.wait_for_result()? {
            Ok(()) => Ok(false),
            Err(error) => {
                self.files.undo_update(&error, first);
                self.publish();
                Ok(true)
            }
        }
    }

    /// Publishes the status of all files, with the directories that cannot be
    /// watched. A status that did not change wakes nobody.
    fn publish(&self) {
        let mut status = self.files.status();
        status.unwatched.clone_from(&self.notifications.unwatched);
        self.report.send_if_modified(|published| {
            let changed = **published != status;
            if changed {
                *published = Arc::new(status);
            }
            changed
        });
    }
}
