//! Reading: the contents, and the history of transactions.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use prost::Message as _;
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata as _};
use trunkline::checked::{Row, RowChange, RowKey};
use trunkline::{Kept, LeaseTtl, Repeatable, StoreError, TransactionInfo};

use super::bodies;
use super::codec::{RowReader, hash_of};
use super::error::Failed;
use super::message::{ChangesRecord, HeadRecord, KeyRecord, RowRecord, TransactionRecord};
use super::row_value;
use super::seal::{self, unseal};
use super::tables::{CHANGES, CONTENTS, HEAD, HEAD_KEY, KEYS, LEASES, TRANSACTIONS, part_key};

/// Rows that one thread reads at a time.
const BATCH: usize = 1 << 14;
/// More threads than this would wait for memory.
const MOST_THREADS: usize = 8;

/// The state of all rows together.
pub(super) struct Head {
    pub(super) record: HeadRecord,
    pub(super) sum: u128,
}

impl Head {
    /// Reads the head of a file. A file without transactions has an empty head.
    pub(super) fn read(
        table: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Self, Failed> {
        let Some(value) = table.get(HEAD_KEY)? else {
            let record = HeadRecord::default();
            return Ok(Self { record, sum: 0 });
        };
        let (value, _) = unseal("head", HEAD_KEY.as_bytes(), value.value())?;
        let record = HeadRecord::decode(value)?;
        let sum = record.sum.as_slice().try_into();
        let sum = sum.map_err(|_| Failed::damaged("the head", "it has no sum"))?;
        let sum = u128::from_le_bytes(sum);
        Ok(Self { record, sum })
    }
}

/// A row as it is in the table, without its seal.
type RawRow = (Vec<u8>, Vec<u8>);

/// Reads the contents, on several threads. Missing or outdated rows are an
/// error, which the sum in the head tells.
pub(super) fn load(file: &ReadTransaction) -> Result<Kept, Failed> {
    let head = Head::read(&file.open_table(HEAD)?)?;
    let table = file.open_table(CONTENTS)?;
    // The number in the head is not checked yet.
    let most_rows = head.record.rows.min(table.len()?);
    let mut rows = Vec::with_capacity(usize::try_from(most_rows).unwrap_or_default());
    let mut sum = 0u128;

    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut readers: Vec<RowReader> = Vec::new();
    readers.resize_with(cores.min(MOST_THREADS), RowReader::default);

    let mut batch: Vec<RawRow> = Vec::new();
    for entry in table.iter()? {
        let (key, value) = entry?;
        let (value, hash) = unseal("contents", key.value(), value.value())?;
        sum = sum.wrapping_add(hash);
        batch.push((key.value().to_vec(), value.to_vec()));
        if batch.len() == BATCH {
            read_batch(&mut readers, &mut batch, &mut rows)?;
        }
    }
    read_batch(&mut readers, &mut batch, &mut rows)?;

    if (sum, rows.len() as u64) != (head.sum, head.record.rows) {
        return Err(Failed::damaged(
            "the contents",
            "rows are missing, or are of another revision",
        ));
    }
    Ok(Kept {
        revision: head.record.revision,
        rows,
        leases: load_leases(file)?,
        recent: load_recent(file)?,
    })
}

/// Transactions that are recent.
const MOST_RECENT: usize = 1000;
/// Changes that they have together.
const MOST_RECENT_CHANGES: u64 = 10_000;

/// Reads the changes of the newest transactions, oldest first. Stops at
/// [`MOST_RECENT_CHANGES`].
fn load_recent(file: &ReadTransaction) -> Result<Vec<Vec<RowChange>>, Failed> {
    let mut recent = Vec::new();
    let mut count = 0_u64;
    for info in transactions(file, None, MOST_RECENT)? {
        count = info.counts.into_iter().fold(count, u64::saturating_add);
        if count > MOST_RECENT_CHANGES {
            break;
        }
        recent.extend(changes(file, info.revision)?);
    }
    recent.reverse();
    Ok(recent)
}

/// Reads the rows of a batch on all threads, and adds them in the order of the
/// batch.
fn read_batch(
    readers: &mut [RowReader],
    batch: &mut Vec<RawRow>,
    rows: &mut Vec<(RowKey, Row)>,
) -> Result<(), Failed> {
    let share_len = batch.len().div_ceil(readers.len()).max(1);
    let shares = batch.chunks(share_len).zip(readers);
    let results: Vec<Result<Vec<(RowKey, Row)>, Failed>> = thread::scope(|scope| {
        let start = |(raw_rows, reader): (_, _)| scope.spawn(move || read_rows(reader, raw_rows));
        // All threads are started before the first one is waited for.
        let threads: Vec<_> = shares.map(start).collect();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    });

    for share_rows in results {
        rows.extend(share_rows?);
    }
    batch.clear();
    Ok(())
}

/// Reads some rows, in their order.
fn read_rows(reader: &mut RowReader, raw: &[RawRow]) -> Result<Vec<(RowKey, Row)>, Failed> {
    let rows = raw.iter().map(|(key, value)| {
        let (record, body) = row_value::read(value)?;
        let key = KeyRecord::decode(&**key)?;
        Ok(reader.read(key, record, Bytes::copy_from_slice(body))?)
    });
    rows.collect()
}

/// Reads the leases of all origins that have one.
fn load_leases(file: &ReadTransaction) -> Result<Vec<(Arc<str>, LeaseTtl)>, Failed> {
    let mut leases = Vec::new();
    for entry in file.open_table(LEASES)?.iter()? {
        let (origin, value) = entry?;
        let (value, _) = unseal("leases", origin.value().as_bytes(), value.value())?;
        let nanos = value.first_chunk().map(|nanos| u64::from_le_bytes(*nanos));
        let ttl = LeaseTtl::new(Duration::from_nanos(nanos.unwrap_or_default()));
        let ttl = ttl.map_err(|error| Failed::damaged("a lease", &error.to_string()))?;
        leases.push((origin.value().into(), ttl));
    }
    Ok(leases)
}

/// Reads the record of a transaction.
pub(super) fn transaction_of(revision: u64, value: &[u8]) -> Result<TransactionRecord, Failed> {
    let (value, _) = unseal("transactions", &revision.to_be_bytes(), value)?;
    Ok(TransactionRecord::decode(value)?)
}

/// Lists the newest transactions before a revision, newest first. Without a
/// revision, the list starts with the newest one.
pub(super) fn transactions(
    file: &ReadTransaction,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<TransactionInfo>, Failed> {
    let table = file.open_table(TRANSACTIONS)?;
    let range = table.range(..before.unwrap_or(u64::MAX))?;
    let mut infos = Vec::new();
    for entry in range.rev().take(limit) {
        let (revision, value) = entry?;
        let revision = revision.value();
        infos.push(transaction_info(
            revision,
            transaction_of(revision, value.value())?,
        ));
    }
    Ok(infos)
}

/// Returns the description of a transaction from its record.
fn transaction_info(revision: u64, record: TransactionRecord) -> TransactionInfo {
    TransactionInfo {
        revision,
        at: UNIX_EPOCH + Duration::from_millis(record.at),
        author: record.author,
        origin: record.origin,
        restores: record.restores,
        counts: [record.created, record.changed, record.deleted],
    }
}

/// Reads the changes of a transaction; `None` if the history does not have it.
pub(super) fn changes(
    file: &ReadTransaction,
    revision: u64,
) -> Result<Option<Vec<RowChange>>, Failed> {
    let Some(record) = file.open_table(TRANSACTIONS)?.get(revision)? else {
        return Ok(None);
    };
    let record = transaction_of(revision, record.value())?;
    let table = file.open_table(CHANGES)?;
    let mut bodies = ChangeBodies {
        known: HashMap::new(),
        file,
    };

    let mut reader = RowReader::default();
    let mut changes = Vec::new();
    for part in 0..record.parts {
        let Some(value) = table.get((revision, part))? else {
            return Err(Failed::damaged("the history", "changes are missing"));
        };
        let (value, _) = unseal("changes", &part_key(revision, part), value.value())?;
        for change in ChangesRecord::decode(value)?.changes {
            let mut read_row = |record: Option<RowRecord>| {
                let Some(record) = record else {
                    return Ok(None);
                };
                let body = bodies.find(&change.key, &record)?;
                let row = reader.read(change.key.clone(), record, body)?;
                Ok::<_, Failed>(Some(row))
            };
            let (old_row, new_row) = (read_row(change.before)?, read_row(change.after)?);

            let key = old_row
                .as_ref()
                .or(new_row.as_ref())
                .map(|(key, _)| key.clone());
            let Some(key) = key else { continue };
            changes.push(RowChange {
                key,
                before: old_row.map(|(_, row)| row),
                after: new_row.map(|(_, row)| row),
            });
        }
    }
    Ok(Some(changes))
}

/// The bodies of changes.
struct ChangeBodies<'a> {
    known: HashMap<u128, Bytes>,
    file: &'a ReadTransaction,
}

impl ChangeBodies<'_> {
    /// Returns the body of a row, from those out of service or those that are
    /// served. A body with another hash counts as missing, which is an error.
    fn find(&mut self, key: &KeyRecord, row: &RowRecord) -> Result<Bytes, Failed> {
        let hash = hash_of(row)?;
        if let Some(body) = self.known.get(&hash) {
            return Ok(body.clone());
        }
        let body = match bodies::read(self.file, hash, Bytes::copy_from_slice)? {
            Some(body) => Some(body),
            None => self.find_served(key)?,
        };
        let body = body.filter(|body| seal::hash(body) == hash);
        let missing = || Failed::damaged("the history", "a body is missing, or is another one");
        let body = body.ok_or_else(missing)?;
        self.known.insert(hash, body.clone());
        Ok(body)
    }

    /// Returns the served body of a row; `None` if the row is not served.
    fn find_served(&self, key: &KeyRecord) -> Result<Option<Bytes>, Failed> {
        let key = key.encode_to_vec();
        let contents = self.file.open_table(CONTENTS)?;
        let Some(value) = contents.get(&*key)? else {
            return Ok(None);
        };
        let (value, _) = unseal("contents", &key, value.value())?;
        let (_, body) = row_value::read(value)?;
        Ok(Some(Bytes::copy_from_slice(body)))
    }
}

/// Returns the transaction that was made with an idempotency key; `None` if
/// there is none.
pub(super) fn find_key(file: &ReadTransaction, key: &str) -> Result<Option<Repeatable>, Failed> {
    let Some(value) = file
        .open_table(KEYS)?
        .get(key)?
        .map(|record| record.value().to_vec())
    else {
        return Ok(None);
    };

    let (value, _) = unseal("keys", key.as_bytes(), &value)?;
    let number = |offset: usize| {
        value
            .get(offset..offset + 8)?
            .try_into()
            .ok()
            .map(u64::from_le_bytes)
    };

    match (number(0), number(8)) {
        (Some(revision), Some(request)) => Ok(Some(Repeatable { revision, request })),
        _ => Err(StoreError::Damaged {
            what: "an idempotency key".to_owned(),
            reason: "it is too short".to_owned(),
        }
        .into()),
    }
}

/// Checks that the history is complete: every transaction follows the one
/// before, and all changes can be read.
pub(super) fn check_history(file: &ReadTransaction) -> Result<(), Failed> {
    let head = Head::read(&file.open_table(HEAD)?)?.record;
    let table = file.open_table(TRANSACTIONS)?;
    let mut previous = None;
    for entry in table.iter()? {
        let (revision, value) = entry?;
        let record = transaction_of(revision.value(), value.value())?;
        if previous.is_some_and(|revision| revision != record.previous) {
            return Err(Failed::damaged("the history", "a transaction is missing"));
        }
        previous = Some(revision.value());
        changes(file, revision.value())?;
    }

    let ends_at_head = previous.unwrap_or_default() == head.revision;
    if ends_at_head && table.len()? == head.transactions {
        return Ok(());
    }
    Err(Failed::damaged("the history", "a transaction is missing"))
}
