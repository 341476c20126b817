//! The tables of the database file.
//!
//! | table | key | value |
//! |---|---|---|
//! | `head` | `format`, `head` | the format of the file; what all rows together are |
//! | `contents` | origin, type, name, variant | the row with its body: the newest revision |
//! | `body-index` | hash | how many kept changes replaced or removed the body, and its number |
//! | `old-bodies` | number | the body, in the order in which bodies went out of service |
//! | `transactions` | revision | who, when, from where |
//! | `changes` | revision, part | what: rows before and after, bodies by their hashes |
//! | `leases` | origin | how long its lease lasts |
//! | `keys` | idempotency key | the revision that was made with it, and the hash of the request |
//! | `files` | file, part | what is served of the file |
//!
//! A body is written once: with its row as long as it is served, then in
//! `old-bodies` as long as a transaction is kept that took it out of service.
//! Files of format 1 had these bodies by their hashes, in a table `bodies`.

use redb::{Table, TableDefinition, WriteTransaction};

use super::bodies::Bodies;
use super::error::Failed;

/// The newest format of the file that is known.
pub(super) const FORMAT: u64 = 2;

pub(super) const HEAD: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("head");
pub(super) const CONTENTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("contents");
/// The number of changes that need a body, and the number of the body.
pub(super) const BODY_INDEX: TableDefinition<'_, u128, (u64, u64)> =
    TableDefinition::new("body-index");
pub(super) const BODIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("old-bodies");
pub(super) const TRANSACTIONS: TableDefinition<'_, u64, &[u8]> =
    TableDefinition::new("transactions");
pub(super) const CHANGES: TableDefinition<'_, (u64, u32), &[u8]> = TableDefinition::new("changes");
pub(super) const LEASES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("leases");
pub(super) const KEYS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("keys");
pub(super) const FILES: TableDefinition<'_, (&str, u32), &[u8]> = TableDefinition::new("files");

/// The key of the head in its table.
pub(super) const HEAD_KEY: &str = "head";
/// The key of the format.
pub(super) const FORMAT_KEY: &str = "format";

/// The number of changes in one part of a transaction, and of resources in one
/// of a file.
pub(super) const PART: usize = 1000;

/// The tables that every transaction of the server writes. They are opened once
/// for all transactions that are written together: each opening looks its table
/// up by name, and each closing has its root noted.
pub(super) struct Tables<'a> {
    pub(super) file: &'a WriteTransaction,
    pub(super) head: Table<'a, &'static str, &'static [u8]>,
    pub(super) contents: Table<'a, &'static [u8], &'static [u8]>,
    pub(super) bodies: Bodies<'a>,
    pub(super) transactions: Table<'a, u64, &'static [u8]>,
    pub(super) changes: Table<'a, (u64, u32), &'static [u8]>,
}

impl<'a> Tables<'a> {
    /// Opens the tables.
    pub(super) fn open(file: &'a WriteTransaction) -> Result<Self, Failed> {
        Ok(Self {
            file,
            head: file.open_table(HEAD)?,
            contents: file.open_table(CONTENTS)?,
            bodies: Bodies::open(file)?,
            transactions: file.open_table(TRANSACTIONS)?,
            changes: file.open_table(CHANGES)?,
        })
    }
}

/// Returns the bytes of the key of a part, for its seal.
pub(super) fn part_key(revision: u64, part: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&revision.to_be_bytes());
    key[8..].copy_from_slice(&part.to_be_bytes());
    key
}
