//! Which files and environment variables a control plane may name.
//!
//! A bootstrap is written by who runs the client, and may name any. A resource
//! comes from a control plane: without a bound, that could have the client
//! read any file of its machine, and send it to a server.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The files and environment variables that control planes may name in
/// resources; by default none.
///
/// ```
/// use trunkline::client::DataSourcePolicy;
///
/// let policy = DataSourcePolicy::default()
///     .allow_path("/etc/certs")
///     .allow_variable("CA");
/// assert!(policy.allows_file("/etc/certs/ca.pem".as_ref()));
/// assert!(!policy.allows_file("/etc/certs/../shadow".as_ref()));
/// assert!(!policy.allows_variable("HOME"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataSourcePolicy {
    paths: Vec<PathBuf>,
    variables: BTreeSet<String>,
}

impl DataSourcePolicy {
    /// Allows a file, or all files below a directory. Links inside of it are
    /// followed, wherever they lead.
    #[must_use]
    pub fn allow_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Allows an environment variable.
    #[must_use]
    pub fn allow_variable(mut self, name: impl Into<String>) -> Self {
        self.variables.insert(name.into());
        self
    }

    /// Returns whether a control plane may name this file. A path with `..` is
    /// never allowed, because it may lead out of the allowed ones.
    #[must_use]
    pub fn allows_file(&self, file: &Path) -> bool {
        let goes_up = file.components().any(|part| part == Component::ParentDir);
        // Every path starts with the empty one.
        let mut allowed_paths = self
            .paths
            .iter()
            .filter(|path| !path.as_os_str().is_empty());
        !goes_up && allowed_paths.any(|allowed| file.starts_with(allowed))
    }

    /// Returns whether a control plane may name this environment variable.
    #[must_use]
    pub fn allows_variable(&self, name: &str) -> bool {
        self.variables.contains(name)
    }
}

/// Who named a file or a variable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Author<'a> {
    /// Who runs the client.
    Bootstrap,
    /// A control plane, which the policy binds.
    ControlPlane(&'a DataSourcePolicy),
}

impl Author<'_> {
    /// Returns whether the author may name this file.
    pub(super) fn may_name_file(self, path: &Path) -> bool {
        match self {
            Self::Bootstrap => true,
            Self::ControlPlane(policy) => policy.allows_file(path),
        }
    }

    /// Returns whether the author may name this environment variable.
    pub(super) fn may_name_variable(self, name: &str) -> bool {
        match self {
            Self::Bootstrap => true,
            Self::ControlPlane(policy) => policy.allows_variable(name),
        }
    }
}
