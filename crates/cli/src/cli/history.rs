//! Flags of commands about what a server keeps: revisions, backups.

use std::path::PathBuf;

use clap::Args;

use super::{Remote, Types, Wait};

/// Flags of `history`.
#[derive(Debug, Args)]
pub(crate) struct History {
    /// A type such as cds, and a name, or both as TYPE/NAME: only the revisions that changed it
    #[arg(value_name = "TYPE NAME", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    /// The most revisions that are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Only revisions before this one
    #[arg(long, value_name = "REVISION")]
    pub(crate) before: Option<u64>,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `rollback`.
#[derive(Debug, Args)]
pub(crate) struct Rollback {
    /// The revision whose contents are restored, as `history` shows it
    #[arg(value_name = "REVISION")]
    pub(crate) revision: u64,
    /// Only say what would change
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do it even if it removes most of the origin's resources of a type
    #[arg(long)]
    pub(crate) yes: bool,
    /// Only if the contents are at this revision, which a change prints
    #[arg(long, value_name = "NUMBER")]
    pub(crate) if_revision: Option<u64>,
    #[command(flatten)]
    pub(crate) wait: Wait,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `backup`.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write, which must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `restore`.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// A file that `backup` wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The directory of `serve --data`, which must have no contents
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
}
