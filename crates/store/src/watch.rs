//! Files that are watched: a thread of its own looks at them and hands out one
//! update at a time.
//!
//! ```text
//! the system tells ─┐                 ┌─▶ status
//! time to look again┴─▶ quiet ─▶ refresh ─▶ update ─▶ next() … applied or refused
//!                                   ▲                              │
//!                                   └──────────────────────────────┘
//! ```
//!
//! Nothing further is handed out before it is known what became of the last
//! update. So whoever takes them slowly gets the newest state next.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use trunkline::{ApplyError, Change};

use crate::eyes::Eyes;
use crate::files::{Files, Refresh};
use crate::mailbox::{Mail, Mailbox, Stopped};
use crate::scan::{Places, scan};
use crate::status::FilesStatus;

/// How often directories are looked at again because new ones appear in them.
const MOST_LOOKS: usize = 8;

/// One transaction: what files changed since the update before.
#[derive(Debug)]
pub struct Update {
    /// The changes; they belong together.
    pub changes: Vec<Change>,
    /// The files that they come from, those that are gone among them.
    pub files: Vec<Arc<str>>,
    /// These are the whole contents: every file is good, for the first time.
    /// Once they are applied, loading is done (S51).
    pub first: bool,
}

/// Watches files until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    updates: mpsc::Receiver<Update>,
    status: watch::Receiver<Arc<FilesStatus>>,
    mailbox: Handle,
    /// An update was handed out, and nobody said what became of it.
    open: bool,
}

/// Stops the thread when it is dropped.
struct Handle(Arc<Mailbox>);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Watcher {
    /// The next update. Asking for it says that the one before was applied.
    /// `None` if files are watched no longer.
    ///
    /// May be dropped and called again at any time.
    pub async fn next(&mut self) -> Option<Update> {
        if std::mem::take(&mut self.open) {
            self.mailbox.0.judge(Ok(()));
        }
        let update = self.updates.recv().await?;
        self.open = true;
        Some(update)
    }

    /// Says that the last update was not applied. The files that are to blame
    /// are bad from now on, with this reason, until they change; what the
    /// others say comes again.
    pub fn refused(&mut self, error: ApplyError) {
        if std::mem::take(&mut self.open) {
            self.mailbox.0.judge(Err(error));
        }
    }

    /// What is known of all files, now and whenever it changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Arc<FilesStatus>> {
        self.status.clone()
    }
}

impl Files {
    /// Reads the files and goes on watching them, in a thread of its own.
    ///
    /// # Errors
    /// If the system does not give another thread.
    pub fn watch(self) -> std::io::Result<Watcher> {
        let (updates, receiver) = mpsc::channel(1);
        let (report, status) = watch::channel(Arc::default());
        let mailbox = Arc::new(Mailbox::default());
        let eyes = Eyes::open(&mailbox, self.options.notify);
        let watching = Watching {
            files: self,
            eyes,
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
            mailbox: Handle(mailbox),
            open: false,
        })
    }
}

struct Watching {
    files: Files,
    eyes: Eyes,
    /// Of the last look.
    places: Places,
    mailbox: Arc<Mailbox>,
    updates: mpsc::Sender<Update>,
    report: watch::Sender<Arc<FilesStatus>>,
}

impl Watching {
    fn run(mut self) {
        let mut refresh = self.refresh(&HashSet::new(), true);
        loop {
            let Ok(again) = self.hand_out(&mut refresh) else {
                return;
            };
            let options = &self.files.options;
            let pause = match (again, refresh.retry) {
                (true, _) => Duration::ZERO,
                (false, true) => options.retry,
                (false, false) => options.rescan,
            };
            let Ok(mail) = self.wait(Instant::now() + pause) else {
                return;
            };
            refresh = self.refresh(&mail.touched, false);
        }
    }

    /// Waits until something happened that may concern a file, or for a time.
    fn wait(&self, deadline: Instant) -> Result<Mail, Stopped> {
        let Files { options, roots, .. } = &self.files;
        loop {
            let mail = self
                .mailbox
                .wait(deadline, options.quiet, options.patience)?;
            let mut touched = mail.touched.iter();
            if mail.somewhere
                || touched.any(|path| self.places.concern(path, roots))
                || Instant::now() >= deadline
            {
                return Ok(mail);
            }
        }
    }

    fn refresh(&mut self, touched: &HashSet<PathBuf>, last_try: bool) -> Refresh {
        let (eyes, places) = (&mut self.eyes, &mut self.places);
        let roots = self.files.roots.clone();
        let mut look = || {
            let mut found = scan(&roots);
            // Until all directories are watched.
            for _ in 0..MOST_LOOKS {
                if !eyes.turn_to(found.places.all()) {
                    break;
                }
                found = scan(&roots);
            }
            *places = std::mem::take(&mut found.places);
            found
        };
        self.files.refresh(&mut look, touched, last_try)
    }

    /// Tells what was found; whether it was refused, so that files have to be
    /// looked at again.
    fn hand_out(&mut self, refresh: &mut Refresh) -> Result<bool, Stopped> {
        self.publish();
        let Some(changes) = refresh.changes.take() else {
            return Ok(false);
        };
        let first = refresh.first;
        let files = std::mem::take(&mut refresh.files);
        let update = Update {
            changes,
            files,
            first,
        };
        if self.updates.blocking_send(update).is_err() {
            return Err(Stopped);
        }
        match self.mailbox.verdict()? {
            Ok(()) => Ok(false),
            Err(error) => {
                self.files.refused(&error, first);
                self.publish();
                Ok(true)
            }
        }
    }

    fn publish(&self) {
        let mut status = self.files.status();
        status.unwatched.clone_from(&self.eyes.blind);
        self.report.send_if_modified(|known| {
            let changed = **known != status;
            if changed {
                *known = Arc::new(status);
            }
            changed
        });
    }
}
