//! Certificates that resources name by an instance of a provider (C5).

use std::path::PathBuf;
use std::time::Duration;

/// Certificates in files, which are read anew when they change: the provider
/// `file_watcher`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWatcher {
    /// A certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The authorities that are trusted.
    pub ca: Option<PathBuf>,
    /// The time between two looks at the files.
    pub refresh: Duration,
}
