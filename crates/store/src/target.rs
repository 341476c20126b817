//! Where files are settled: in a server, or in a set of their own.

use std::sync::Arc;

use trunkline::checked::{ContentSet, Proposal, Settlement};
use trunkline::{Applied, ApplyError, Writer};

use crate::files::ORIGIN;

/// The maximum of files that are named as the authors of a change.
const MOST_NAMED: usize = 3;

/// See the module's documentation.
pub(crate) enum Target {
    /// A set of their own: files are only checked.
    Set(Box<ContentSet>),
    /// A server, which serves them.
    Server(Writer),
}

impl Target {
    /// Settles a proposal of these files, which are named as the authors of the
    /// change.
    pub(crate) fn settle(
        &mut self,
        files: &[&Arc<str>],
        proposal: Proposal<'_>,
    ) -> Settlement<Applied> {
        match self {
            Self::Set(set) => set.settle(proposal, |_| Ok(Applied::default())),
            Self::Server(writer) => writer.settle(&describe_author(files), proposal),
        }
    }

    /// Applies the resources of all files in the server for the first time;
    /// does nothing in a set of their own.
    ///
    /// # Errors
    /// The server refuses one; none is applied then.
    pub(crate) fn apply_first(&mut self, files: &[&Arc<str>]) -> Result<(), ApplyError> {
        if let Self::Server(writer) = self {
            writer.apply_held(&describe_author(files), ORIGIN)?;
        }
        Ok(())
    }

    /// Tells the server that the files are loaded, so that it need not wait for
    /// them any more.
    pub(crate) fn declare_loaded(&self) {
        if let Self::Server(writer) = self {
            writer.loaded();
        }
    }

    /// Reads the set of contents, which is locked while `look` runs if it is a
    /// server's.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&ContentSet) -> T) -> T {
        match self {
            Self::Set(set) => look(set),
            Self::Server(writer) => writer.read_set(look),
        }
    }
}

/// Returns the names of files as the author of a change: the first
/// [`MOST_NAMED`], and the number of the others.
fn describe_author(files: &[&Arc<str>]) -> String {
    let names = files.iter().take(MOST_NAMED).map(|name| &***name);
    let names: Vec<&str> = names.collect();
    match files.len() - names.len() {
        0 => names.join(", "),
        other_count => format!("{} and {other_count} more", names.join(", ")),
    }
}
