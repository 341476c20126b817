//! One file: its resources, those of it that are served, and its mistakes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

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

/// One file.
#[derive(Default)]
pub(crate) struct File {
    pub(crate) stamp: Option<Stamp>,
    /// The hash of the bytes that were last read.
    pub(crate) hash: Option<u128>,
    /// Since when it looks half written; after a while it counts as complete.
    pub(crate) suspect: Option<Instant>,
    /// Its new state, if that is not the one served.
    pub(crate) wish: Option<Wish>,
    /// Whether its new state was turned down before.
    pub(crate) lost: bool,
    /// Its last state without a mistake. In the index, except while files are
    /// settled.
    pub(crate) served: Option<Arc<Document>>,
    pub(crate) errors: Vec<Finding>,
    pub(crate) warnings: Vec<Finding>,
    pub(crate) dangling: Vec<Finding>,
    /// Values that no variant of a name in it serves.
    pub(crate) unserved: Vec<Finding>,
    pub(crate) since: Option<SystemTime>,
}

/// The new state of a file.
pub(crate) enum Wish {
    New(Arc<Document>),
    Gone,
}

impl File {
    /// Returns the contents that the file has now and that are not served yet;
    /// `None` if it did not change, or is gone.
    pub(crate) fn candidate(&self) -> Option<&Arc<Document>> {
        match &self.wish {
            Some(Wish::New(parsed)) => Some(parsed),
            _ => None,
        }
    }

    /// Marks the file as bad; the time stays, if it was bad before.
    pub(crate) fn fail(&mut self, errors: Vec<Finding>) {
        if self.errors.is_empty() {
            self.since = Some(SystemTime::now());
        }
        self.errors = errors;
    }

    /// Marks the file as good, with the contents that are served from now on.
    pub(crate) fn serve(&mut self, parsed: Arc<Document>) {
        self.served = Some(parsed);
        self.errors.clear();
        self.lost = false;
        self.since = Some(SystemTime::now());
    }
}
