//! Contents from files: read, checked as a set, and watched. Contents that are
//! kept: in a database file, or in memory.
//!
//! ```text
//! paths ── scan ──▶ which files ── read ──▶ resources with their places
//!            ▲                                   │
//!          watch                                 ▼
//!  (notify, and a slow rescan)       target: a server settles them with all
//!                                    other contents, as one transaction
//! ```
//!
//! | module | concern |
//! |---|---|
//! | `scan` | finds files, and those that changed |
//! | `read`, `read_all` | the resources of one file, or of several at once |
//! | `attachments`, `links` | the files that secrets name, and where they may change |
//! | `file`, `files`, `status` | good and bad files, and since when |
//! | `load` | all files, read once |
//! | `notifications`, `mailbox`, `watch` | when to scan again |
//! | `contents`, `target` | the way to a server |
//! | `recall` | what was served of files before a restart |
//! | `embedded`, `memory` | stores of contents that are not of files |
//! | `history` | what became of them between two revisions |
//!
//! The rules:
//!
//! - The files that changed are settled as one transaction.
//! - A file with a mistake changes nothing: its last good contents stay, and
//!   other files go on. A contradiction of two files is a mistake of one of
//!   them: of the one that changed, or else of the later one.
//! - A file is not read while somebody writes it, and a change that removes so
//!   much that it is hardly intended is held until it is confirmed.
//! - A file that is removed from a directory takes its resources with it. A
//!   configured path that does not exist is a mistake: a slip in a mount must
//!   not remove a fleet's configuration.
//! - A file that a secret names is a part of the file that it is written in: it
//!   is watched, and while the two of a certificate and its key are replaced one
//!   after the other, the last pair stays.
//! - Nothing is applied before every file has been good (S51), unless a store
//!   knows what was served of them before.
//!
//! A number in parentheses, such as S51 or TP2, names a rule of the protocol;
//! `docs/rules.md` in the repository lists them.
//!
//! ```
//! use trunkline_store::{Files, Options};
//!
//! let mut files = Files::new(["no/such/file.yaml"], Options::default());
//! let loaded = files.load();
//! assert_eq!(
//!     loaded.errors[0].to_string(),
//!     "no/such/file.yaml: does not exist; create it, or name another path",
//! );
//! ```
#![forbid(unsafe_code)]

mod attachments;
mod contents;
mod embedded;
mod file;
mod files;
mod history;
mod links;
mod load;
mod locate;
mod mailbox;
mod memory;
mod notifications;
mod options;
mod read;
mod read_all;
mod recall;
mod scan;
mod status;
#[cfg(test)]
mod suite;
mod target;
mod watch;

pub use contents::FileContents;
pub use embedded::{EmbeddedStore, restore_backup};
pub use files::{Files, ORIGIN};
pub use history::{HistoryError, changes_between};
pub use load::Loaded;
pub use memory::MemoryStore;
pub use options::Options;
pub use scan::find_files;
pub use status::{FileStatus, FilesStatus};
