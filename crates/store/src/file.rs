//! One file: what it says, what of it is served, and what is wrong.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::item::Parsed;
use crate::problem::Problem;
use crate::scan::Stamp;

/// Which file: the order is that of the paths, then by name.
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
    /// Of what was last read.
    pub(crate) hash: Option<u128>,
    /// Since when it looks half written; after a while that counts.
    pub(crate) suspect: Option<Instant>,
    /// What it says, if that is not what is served.
    pub(crate) wish: Option<Wish>,
    /// Its wish was turned down before.
    pub(crate) lost: bool,
    /// What it last said without a mistake. In the index, except while files
    /// are settled.
    pub(crate) served: Option<Arc<Parsed>>,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    pub(crate) dangling: Vec<Problem>,
    /// Values that no variant of a name in it serves.
    pub(crate) unserved: Vec<Problem>,
    pub(crate) since: Option<SystemTime>,
}

/// What a file wants to become.
pub(crate) enum Wish {
    New(Arc<Parsed>),
    Gone,
}

impl File {
    /// What is to be served instead.
    pub(crate) fn candidate(&self) -> Option<&Arc<Parsed>> {
        match &self.wish {
            Some(Wish::New(parsed)) => Some(parsed),
            _ => None,
        }
    }

    /// It is bad; since when stays, if it was.
    pub(crate) fn fail(&mut self, errors: Vec<Problem>) {
        if self.errors.is_empty() {
            self.since = Some(SystemTime::now());
        }
        self.errors = errors;
    }

    /// It is good.
    pub(crate) fn take(&mut self, parsed: Arc<Parsed>) {
        self.served = Some(parsed);
        self.errors.clear();
        self.lost = false;
        self.since = Some(SystemTime::now());
    }
}
