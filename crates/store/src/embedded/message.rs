//! The records of the database file, as messages: fields that a later release
//! adds are skipped by this one.

use prost::Message;

/// The key of a row. Its bytes are the key in the table, so its fields are
/// written in one way only.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyRecord {
    #[prost(string, tag = "1")]
    pub(super) origin: String,
    #[prost(string, tag = "2")]
    pub(super) type_url: String,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    /// The constraints of the variant, as TP2 writes them.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(super) constraints: Option<Vec<u8>>,
}

/// A row without its body, which is kept once for all rows that have it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RowRecord {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(uint64, optional, tag = "2")]
    pub(super) ttl_nanos: Option<u64>,
    #[prost(string, repeated, tag = "3")]
    pub(super) aliases: Vec<String>,
    /// The hash of the body.
    #[prost(bytes = "vec", tag = "4")]
    pub(super) body: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub(super) metadata: Option<Vec<u8>>,
    #[prost(bool, tag = "6")]
    pub(super) do_not_cache: bool,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub(super) wrapper_constraints: Option<Vec<u8>>,
    #[prost(bool, tag = "8")]
    pub(super) is_inline_host: bool,
}

/// One change of a transaction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ChangeRecord {
    #[prost(message, required, tag = "1")]
    pub(super) key: KeyRecord,
    #[prost(message, optional, tag = "2")]
    pub(super) before: Option<RowRecord>,
    #[prost(message, optional, tag = "3")]
    pub(super) after: Option<RowRecord>,
}

/// Some changes of a transaction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ChangesRecord {
    #[prost(message, repeated, tag = "1")]
    pub(super) changes: Vec<ChangeRecord>,
}

/// A transaction without its changes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TransactionRecord {
    /// In milliseconds since 1970.
    #[prost(uint64, tag = "1")]
    pub(super) at: u64,
    #[prost(string, tag = "2")]
    pub(super) author: String,
    #[prost(string, tag = "3")]
    pub(super) origin: String,
    #[prost(uint64, optional, tag = "4")]
    pub(super) restores: Option<u64>,
    #[prost(uint64, tag = "5")]
    pub(super) created: u64,
    #[prost(uint64, tag = "6")]
    pub(super) changed: u64,
    #[prost(uint64, tag = "7")]
    pub(super) deleted: u64,
    /// The number of records that its changes take.
    #[prost(uint32, tag = "8")]
    pub(super) parts: u32,
    #[prost(string, optional, tag = "9")]
    pub(super) idempotency_key: Option<String>,
    #[prost(uint64, tag = "10")]
    pub(super) request: u64,
    /// The revision before; zero for the first.
    #[prost(uint64, tag = "11")]
    pub(super) previous: u64,
    /// Whether it starts, renews or ends the lease of its origin.
    #[prost(bool, tag = "12")]
    pub(super) changes_lease: bool,
    /// The time of the lease before, if there was one and it is changed.
    #[prost(uint64, optional, tag = "13")]
    pub(super) lease_before: Option<u64>,
}

/// The state of all records of the contents together.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeadRecord {
    /// The newest revision.
    #[prost(uint64, tag = "1")]
    pub(super) revision: u64,
    /// The number of rows.
    #[prost(uint64, tag = "2")]
    pub(super) rows: u64,
    /// The sum of the hashes of all rows, in any order.
    #[prost(bytes = "vec", tag = "3")]
    pub(super) sum: Vec<u8>,
    /// The oldest revision whose changes are kept.
    #[prost(uint64, tag = "4")]
    pub(super) oldest: u64,
    /// The number of transactions that are kept.
    #[prost(uint64, tag = "5")]
    pub(super) transactions: u64,
}

/// One resource that is served of a file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ServedRecord {
    #[prost(message, required, tag = "1")]
    pub(super) key: KeyRecord,
    #[prost(message, required, tag = "2")]
    pub(super) row: RowRecord,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) body: Vec<u8>,
}

/// Some of the resources that are served of a file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ServedPartRecord {
    /// Whether the file is a text that ends in a newline.
    #[prost(bool, tag = "1")]
    pub(super) ends_line: bool,
    /// Whether the file has no more parts.
    #[prost(bool, tag = "2")]
    pub(super) is_last: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) resources: Vec<ServedRecord>,
}
