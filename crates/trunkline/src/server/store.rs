//! The seam to a store: whatever keeps the contents of a server while it does
//! not run.
//!
//! A server with a store has each change [committed](Store::commit) before any
//! client or caller sees it. Resources of files are not kept: files keep
//! themselves.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::lease::LeaseTtl;
use crate::checked::{Row, RowChange, RowKey};

/// Keeps the contents of a server, and the transactions that made them.
///
/// The rules that every store keeps:
///
/// - A transaction is kept as a whole or not at all, and once
///   [`Self::commit`] has returned it outlives the process.
/// - Revisions grow from one transaction to the next. The oldest transactions
///   may be forgotten; the contents never are.
pub trait Store: Send + Sync + 'static {
    /// Reads the contents: those of the newest revision.
    ///
    /// # Errors
    /// They cannot be read, or are damaged.
    fn load(&self) -> Result<Kept, StoreError>;

    /// Keeps transactions, in this order: all of them, or none.
    ///
    /// # Errors
    /// None is kept. The next call may succeed.
    fn commit(&self, transactions: &[StoredTransaction]) -> Result<(), StoreError>;

    /// Lists the newest transactions without their changes, newest first: those
    /// before a revision if one is given, and at most `limit`.
    ///
    /// # Errors
    /// They cannot be read, or are damaged.
    fn transactions(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TransactionInfo>, StoreError>;

    /// Returns the changes of a transaction; `None` if it is not known, or not
    /// any more.
    ///
    /// # Errors
    /// They cannot be read, or are damaged.
    fn changes(&self, revision: u64) -> Result<Option<Vec<RowChange>>, StoreError>;

    /// Finds the transaction that was made with an idempotency key.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    fn find_key(&self, key: &str) -> Result<Option<Repeatable>, StoreError>;

    /// Makes a copy of everything, while changes go on: a file to read, which is
    /// gone when it is closed.
    ///
    /// # Errors
    /// The copy cannot be written, or the store keeps nothing to copy.
    fn back_up(&self) -> Result<std::fs::File, StoreError>;
}

/// What a store has kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// The newest revision; zero if there were no transactions.
    pub revision: u64,
    /// The contents.
    pub rows: Vec<(RowKey, Row)>,
    /// The origins with a lease.
    pub leases: Vec<(Arc<str>, LeaseTtl)>,
    /// The changes of the newest transactions, oldest first. Clients that
    /// reconnect may have resources from before them (S75, S82).
    pub recent: Vec<Vec<RowChange>>,
}

impl Kept {
    /// Returns whether there never was a transaction.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.revision == 0
    }

    /// Returns whether an origin has rows.
    #[must_use]
    pub fn has_origin(&self, origin: &str) -> bool {
        self.rows.iter().any(|(key, _)| *key.origin == *origin)
    }
}

/// A transaction on its way to a store.
#[derive(Clone, Debug)]
pub struct StoredTransaction {
    /// What is known of it.
    pub info: TransactionInfo,
    /// What it changes.
    pub changes: Vec<RowChange>,
    /// What it does to the lease of its origin.
    pub lease: LeaseChange,
    /// The key and the request that it was made with.
    pub repeatable: Option<(String, u64)>,
}

/// What is known of a transaction beside its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionInfo {
    /// The revision that it made.
    pub revision: u64,
    /// When it was made.
    pub at: SystemTime,
    /// Whoever made it, and from where.
    pub author: String,
    /// The origin that it was made for.
    pub origin: String,
    /// The revision whose contents it restored, if it did.
    pub restores: Option<u64>,
    /// The number of rows that were created, changed and deleted.
    pub counts: [u64; 3],
}

/// What a transaction does to the lease of its origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseChange {
    /// Nothing.
    #[default]
    Kept,
    /// It starts one, or renews it with this time.
    Starts(LeaseTtl),
    /// It ends it.
    Ends,
}

/// A transaction that was made with an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeatable {
    /// The revision that it made.
    pub revision: u64,
    /// The hash of the request that made it.
    pub request: u64,
}

/// Why a store cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What it has kept is damaged.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// The file, or a part of it.
        what: String,
        /// How that is known.
        reason: String,
    },
    /// What it has kept was written by a newer release.
    #[error("{what} has format {found}, and this release reads up to {known}: use a newer one")]
    Newer {
        /// The file.
        what: String,
        /// The format of the file.
        found: u64,
        /// The newest format that is known.
        known: u64,
    },
    /// Another process uses it.
    #[error("{what} is in use by another process")]
    InUse {
        /// The file.
        what: String,
    },
    /// It cannot be read or written.
    #[error("{what}: {source}")]
    Io {
        /// The file.
        what: String,
        /// The reason.
        source: std::io::Error,
    },
    /// It cannot do this at all.
    #[error("{0}")]
    Unsupported(&'static str),
}

impl StoredTransaction {
    /// Returns the transaction that takes this one back, as another revision.
    pub(super) fn inverse(&self, revision: u64) -> Self {
        let [created, changed, deleted] = self.info.counts;
        Self {
            info: TransactionInfo {
                revision,
                author: format!("trunkline: revision {} was refused", self.info.revision),
                restores: None,
                counts: [deleted, changed, created],
                ..self.info.clone()
            },
            changes: self.changes.iter().map(RowChange::inverse).collect(),
            lease: LeaseChange::Kept,
            repeatable: None,
        }
    }
}

/// Counts the rows that changes create, change and delete.
#[must_use]
pub fn count_rows(changes: &[RowChange]) -> [u64; 3] {
    let mut counts = [0; 3];
    for change in changes {
        let kind = match (&change.before, &change.after) {
            (None, _) => 0,
            (Some(_), Some(_)) => 1,
            (Some(_), None) => 2,
        };
        counts[kind] += 1;
    }
    counts
}

/// Returns the time to the millisecond, as stores keep it.
pub(super) fn now_in_millis() -> SystemTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.unwrap_or_default().as_millis();
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}
