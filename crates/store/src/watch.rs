//! Watched files: a thread of its own scans them and settles those that
//! changed.
//!
//! ```text
//! the system tells ─┐                            ┌─▶ status
//! time to look again┴─▶ quiet ─▶ scan, read, settle
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use trunkline::Writer;

use crate::files::Files;
use crate::mailbox::{Mail, Mailbox, Stopped, Touched};
use crate::notifications::Notifications;
use crate::scan::{Places, scan};
use crate::status::FilesStatus;
use crate::target::Target;

/// How often directories are scanned again because new ones appear in them.
const MOST_RESCANS: usize = 8;

/// The thread that reads and watches files.
pub(crate) struct Watching {
    files: Files,
    notifications: Notifications,
    /// The directories of the last scan.
    places: Places,
    mailbox: Arc<Mailbox>,
    report: watch::Sender<Arc<FilesStatus>>,
}

impl Watching {
    /// Makes the watch of these files. Nothing is read yet.
    pub(crate) fn new(
        files: Files,
        mailbox: Arc<Mailbox>,
        report: watch::Sender<Arc<FilesStatus>>,
    ) -> Self {
        Self {
            notifications: Notifications::open(&mailbox, files.options.notify),
            files,
            places: Places::default(),
            mailbox,
            report,
        }
    }

    /// Settles the files in the server of `writer` at the start and at each
    /// event of the file system. Returns when the
    /// [`FileContents`](crate::FileContents) of these files are dropped, which
    /// closes the mailbox.
    pub(crate) fn run(mut self, writer: Writer) {
        self.files.target = Target::Server(writer);
        self.files.recall();
        // At the start a file that looks half written is reported at once:
        // there are no last good contents that could be served meanwhile.
        let mut recheck_delay = self.refresh(&Touched::new(), true);
        loop {
            self.publish();
            let pause = recheck_delay.unwrap_or(self.files.options.rescan);
            let Ok(mail) = self.wait_for_change(Instant::now() + pause) else {
                return;
            };
            recheck_delay = self.refresh(&mail.touched, false);
        }
    }

    /// Waits for events of which one may concern a file, or for the deadline.
    /// Other events are dropped.
    fn wait_for_change(&self, deadline: Instant) -> Result<Mail, Stopped> {
        let Files { options, roots, .. } = &self.files;
        loop {
            let mail = self
                .mailbox
                .wait_for_events(deadline, options.quiet, options.patience)?;
            let mut touched = mail.touched.keys();
            let may_concern =
                mail.at_unknown_path || touched.any(|path| self.places.concerns_file(path, roots));
            if may_concern || Instant::now() >= deadline {
                return Ok(mail);
            }
        }
    }

    /// Scans and reads the files, watches their directories, and settles the
    /// changes. Files at `touched` are read even if they look unchanged. On the
    /// last try nothing is put off. Returns after how long to read files again,
    /// if something was put off.
    fn refresh(&mut self, touched: &Touched, last_try: bool) -> Option<Duration> {
        let mailbox = &self.mailbox;
        let notifications = &mut self.notifications;
        let places = &mut self.places;
        let roots = self.files.roots.clone();

        let mut scan_and_watch = |attachments: &[PathBuf]| {
            let scan_all = || {
                let mut scanned = scan(&roots);
                scanned.places.add_attachments(attachments.iter());
                scanned
            };
            let mut scanned = scan_all();
            // Another scan sees changes in a directory that were made before
            // its watch started.
            for _ in 0..MOST_RESCANS {
                let any_new = notifications.watch_only(scanned.places.all());
                if !any_new {
                    break;
                }
                scanned = scan_all();
            }
            *places = std::mem::take(&mut scanned.places);
            scanned.open = mailbox.open_files();
            scanned
        };
        self.files.refresh(&mut scan_and_watch, touched, last_try)
    }

    /// Publishes the status of all files, with the directories that cannot be
    /// watched. An unchanged status wakes no reader.
    fn publish(&self) {
        let mut status = self.files.status();
        status
            .unwatched
            .extend(self.notifications.unwatched.iter().cloned());
        self.report.send_if_modified(|published| {
            let is_changed = **published != status;
            if is_changed {
                *published = Arc::new(status);
            }
            is_changed
        });
    }
}
