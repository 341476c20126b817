//! One file: its resources, those of it that are served, and its mistakes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::attachments::Attachments;
use crate::locate::Located;
use crate::read::Known;
use crate::scan::Stamp;
use trunkline::checked::{Document, Finding};

/// The key of a file: the order is that of the paths, then by name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileKey {
    pub(crate) root: usize,
    pub(crate) path: PathBuf,
    pub(crate) name: Arc<str>,
}

pub(crate) type FileId = Arc<FileKey>;

/// The state of one file.
#[derive(Default)]
pub(crate) struct File {
    pub(crate) stamp: Option<Stamp>,
    /// The hash of the bytes that were last read, with those of the attachments.
    pub(crate) hash: Option<u128>,
    /// The files that its secrets name.
    pub(crate) attachments: Attachments,
    /// Since when it looks half written; after a while it counts as complete.
    pub(crate) half_written_since: Option<Instant>,
    /// Its last change, if it was not read since.
    pub(crate) unread_since: Option<Instant>,
    /// Since when it is missing; after a while it counts as removed.
    pub(crate) missing_since: Option<Instant>,
    /// Its new state, if that is not the one served.
    pub(crate) new_state: Option<NewState>,
    /// While it is settled, its new state in short; `None` if it is removed.
    pub(crate) settled: Option<Settled>,
    /// Whether its new state was turned down before.
    pub(crate) was_turned_down: bool,
    /// The number of its resources that are served: those of its last state
    /// without a mistake. `None` if it had none so far.
    pub(crate) served: Option<usize>,
    /// The hash of that state as the store has it.
    pub(crate) kept_hash: Option<u64>,
    /// Whether that state is a text that ends in a newline.
    pub(crate) ends_line: bool,
    pub(crate) errors: Vec<Finding>,
    pub(crate) warnings: Vec<Finding>,
    pub(crate) dangling: Vec<Finding>,
    /// The dangling references, at their own places.
    pub(crate) located_dangling: Located,
    /// The mistakes, those about references at their own places.
    pub(crate) located_errors: Located,
    /// Values that no variant of a name in it serves.
    pub(crate) unserved: Vec<Finding>,
    /// Since when it is bad, or when the contents of a good file were taken.
    pub(crate) since: Option<SystemTime>,
}

/// The new state of a file, in short.
#[derive(Clone, Copy)]
pub(crate) struct Settled {
    /// The number of its resources.
    pub(crate) resources: usize,
    /// Whether it is a text that ends in a newline.
    pub(crate) ends_line: bool,
}

/// The new state of a file.
pub(crate) enum NewState {
    Contents(Document),
    /// The file does not exist any more.
    Removed,
}

impl File {
    /// Records the stamp of the file, and those of its attachments. If one of
    /// them has changed, or the system told of a change, the file is unread
    /// since then. `last_touch` is the time of the change that it told of.
    pub(crate) fn note_stamp(&mut self, stamp: Stamp, last_touch: Option<Instant>) {
        let any_attached_changed = self.attachments.update_stamps();
        let is_same = self.stamp.as_ref() == Some(&stamp) && !any_attached_changed;
        self.stamp = Some(stamp);
        match last_touch {
            Some(touch) => self.unread_since = Some(touch),
            // Without a notification, the time of the change is unknown, and
            // now is the safe assumption.
            None if !is_same => self.unread_since = Some(Instant::now()),
            None => {}
        }
    }

    /// Forgets the contents that were read of the file, because it has changed
    /// since, unless they are served already.
    pub(crate) fn forget_read(&mut self) {
        if self.new_state.take().is_some() {
            self.hash = None;
        }
    }

    /// Returns the contents that were last read of the file; `None` if it has
    /// to be read in any case.
    pub(crate) fn known(&self) -> Option<Known> {
        let attachments = self.attachments.clone();
        self.hash.map(|hash| Known { hash, attachments })
    }

    /// Marks the file as bad, with these mistakes. Its served contents stay,
    /// and so does the time since which it is bad, if it was bad before.
    pub(crate) fn mark_bad(&mut self, errors: Vec<Finding>) {
        if self.errors.is_empty() {
            self.since = Some(SystemTime::now());
        }
        self.errors = errors;
    }

    /// Marks the file as good: its new state is served from now on.
    pub(crate) fn mark_good(&mut self, settled: Settled) {
        self.served = Some(settled.resources);
        self.ends_line = settled.ends_line;
        self.errors.clear();
        self.was_turned_down = false;
        self.since = Some(SystemTime::now());
    }
}
