//! Contents from files: read, checked as a set, and watched.
//!
//! ```text
//! paths ── scan ──▶ which files ── read ──▶ resources with their places
//!            ▲                                   │
//!          watch                               settle: all files together
//!  (notify, and a slow rescan)                   │
//!                                                ▼
//!                     status ◀── files ──▶ update: one transaction
//! ```
//!
//! | module | question it answers |
//! |---|---|
//! | `scan` | which files count, and did one change |
//! | `read`, `binary`, `item` | what does one file say |
//! | `index`, `domains`, `slots` | who has this name, or this domain; do two resources exclude each other |
//! | `coverage` | which values of a key does no variant serve |
//! | `settle` | which files can be taken together, and which reference leads nowhere |
//! | `file`, `files` | what is served, what is bad and since when |
//! | `steps`, `diff` | what has to change, and how is it taken back |
//! | `eyes`, `mailbox`, `watch` | when to look again |
//! | `contents` | how does it reach a server |
//!
//! The rules:
//!
//! - An update is one transaction, from what is served to what the files say.
//! - A file with a mistake changes nothing: its last good contents stay, and
//!   other files go on. Also what two files contradict each other about is a
//!   mistake of one of them: of the one that changed, or else of the later one.
//! - A file that is gone from a directory takes its resources with it. A path
//!   that was named and is gone is a mistake: nobody removes a fleet by a slip
//!   in a mount.
//! - Nothing is handed out before every file is good (S51).
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

mod binary;
mod contents;
mod coverage;
mod diff;
mod domains;
mod eyes;
mod file;
mod files;
mod index;
mod item;
mod mailbox;
mod options;
mod problem;
mod read;
mod read_all;
mod scan;
mod settle;
mod slots;
mod status;
mod steps;
mod watch;

pub use contents::FileContents;
pub use files::{Files, Loaded};
pub use options::{Dangling, Options};
pub use problem::{Fault, Place, Problem, Unserved};
pub use status::{FileStatus, FilesStatus};
pub use watch::{Update, Watcher};
