//! The status of all files at one time: for `status` and for metrics.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use crate::file::{File, FileId};
use crate::files::Files;
use trunkline::checked::{Dangling, Finding, sort_findings};

/// All files; cheap to share, never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesStatus {
    /// Whether every file has been good once, so that the first update was
    /// handed out.
    pub loaded: bool,
    /// In the order of the configured paths, then by path. Configured paths
    /// that do not exist, and directories that cannot be read, are included.
    pub files: Vec<FileStatus>,
    /// Whether it was known at the start what was served of them before.
    pub recalled: bool,
    /// The reasons why changes are not seen at once, or why the next start will
    /// not know what is served.
    pub unwatched: Vec<Finding>,
}

/// The status of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Its path, as configured or found.
    pub path: Arc<str>,
    /// The moment since which a bad file is bad, or at which the contents of a
    /// good file were last taken.
    pub since: SystemTime,
    /// How many of its resources are served; of a bad file, those that were
    /// last good.
    pub resources: usize,
    /// Its mistakes in the order of their lines; a file without any is good.
    pub errors: Arc<[Finding]>,
    /// Its warnings, in the same order.
    pub warnings: Arc<[Finding]>,
}

impl FileStatus {
    /// Returns whether the file has no mistake, so that its current contents
    /// are served.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns the hash of its change, if that is held.
    #[must_use]
    pub fn held(&self) -> Option<&str> {
        let mut errors = self.errors.iter();
        errors.find_map(|error| error.fault.held_hash())
    }
}

impl FilesStatus {
    /// Returns the bad files.
    pub fn bad(&self) -> impl Iterator<Item = &FileStatus> {
        self.files.iter().filter(|file| !file.is_good())
    }

    /// Returns the hashes of changes that are held, in order, each once: one
    /// change may be of several files.
    #[must_use]
    pub fn held(&self) -> BTreeSet<&str> {
        self.files.iter().filter_map(FileStatus::held).collect()
    }

    /// Returns the mistakes of all files.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.files.iter().flat_map(|file| file.errors.iter())
    }

    /// Returns the warnings of all files, then those about changes that are not
    /// seen at once.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        let file_warnings = self.files.iter().flat_map(|file| file.warnings.iter());
        file_warnings.chain(&self.unwatched)
    }

    /// Returns the number of resources that are served, or will be once all
    /// files are good.
    #[must_use]
    pub fn resources(&self) -> usize {
        self.files.iter().map(|file| file.resources).sum()
    }
}

impl Files {
    /// Returns the mistakes of a file. Where dangling references are refused,
    /// they are mistakes too, but only of a file that has no others.
    pub(crate) fn errors<'a>(&self, file: &'a File) -> &'a [Finding] {
        match self.options.dangling {
            Dangling::Refuse if file.errors.is_empty() => &file.dangling,
            _ => &file.errors,
        }
    }

    /// Returns the warnings of a file: those of reading it, dangling references
    /// unless they are mistakes, and values that no variant serves.
    fn warnings(&self, file: &File) -> Vec<Finding> {
        let dangling = match self.options.dangling {
            Dangling::Warn => &file.dangling[..],
            Dangling::Refuse => &[],
        };
        [&file.warnings, dangling, &file.unserved].concat()
    }

    /// Returns the status of all files, and of paths that could not be scanned.
    /// Only the watcher knows the directories that it cannot watch, so
    /// `unwatched` has none of them.
    pub(crate) fn status(&self) -> FilesStatus {
        let files = self
            .files
            .iter()
            .map(|(id, file)| self.file_status(id, file));
        let failures = self.failures.values().map(|(finding, since)| FileStatus {
            path: Arc::clone(&finding.place.file),
            since: *since,
            resources: 0,
            errors: [finding.clone()].into(),
            warnings: [].into(),
        });
        let keeper = self.keeper.iter();
        let problem = keeper.filter_map(|keeper| keeper.problem.as_ref());
        FilesStatus {
            loaded: self.loaded,
            files: files.chain(failures).collect(),
            recalled: self.is_recalled(),
            unwatched: problem.cloned().collect(),
        }
    }

    /// Returns the status of one file. A file that was neither good nor bad so
    /// far has the present time as the start of its state.
    fn file_status(&self, id: &FileId, file: &File) -> FileStatus {
        FileStatus {
            path: Arc::clone(&id.name),
            since: file.since.unwrap_or_else(SystemTime::now),
            resources: file.served.unwrap_or_default(),
            errors: sorted(self.errors(file).to_vec()),
            warnings: sorted(self.warnings(file)),
        }
    }
}

/// Sorts the findings of a file.
fn sorted(mut findings: Vec<Finding>) -> Arc<[Finding]> {
    sort_findings(&mut findings);
    findings.into()
}
