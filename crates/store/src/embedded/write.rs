//! Writing: transactions of the server, in one transaction of the file.

use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message as _;
use redb::{ReadableTable as _, Table, WriteTransaction};
use trunkline::checked::RowChange;
use trunkline::{LeaseChange, StoredTransaction};

use super::codec::{body_hash, hash_of, write_key, write_row};
use super::error::Failed;
use super::message::{ChangeRecord, ChangesRecord, HeadRecord, TransactionRecord};
use super::read::{Head, transaction_of};
use super::row_value;
use super::seal::{hash_record, seal, unseal};
use super::tables::{HEAD_KEY, KEYS, LEASES, PART, Tables, part_key};
use super::undo;

/// The share of the history that may be kept beyond it: one part of so many.
const SURPLUS: u64 = 16;

/// Writes transactions of the server, and forgets the oldest beyond the newest
/// `history` and a [`SURPLUS`]. Stored transactions of the same or a later revision were refused by
/// the server, and are taken back first.
pub(super) fn write(
    tables: &mut Tables<'_>,
    transactions: &[StoredTransaction],
    history: u64,
) -> Result<(), Failed> {
    let mut head = Head::read(&tables.head)?;
    if let Some(first_transaction) = transactions.first() {
        undo::undo_from(tables, &mut head, first_transaction.info.revision)?;
    }
    for transaction in transactions {
        add(tables, &mut head, transaction)?;
    }
    forget_surplus(tables, &mut head.record, history.max(1))?;
    write_head(tables, head)
}

/// Forgets all but the newest `history` transactions, once there is a whole
/// [`SURPLUS`] more. The oldest transactions are neighbours in their tables: a
/// page with many of them is written once for all, not once for each.
fn forget_surplus(
    tables: &mut Tables<'_>,
    head: &mut HeadRecord,
    history: u64,
) -> Result<(), Failed> {
    if head.transactions <= history.saturating_add(history / SURPLUS) {
        return Ok(());
    }
    while head.transactions > history {
        forget_oldest(tables, head)?;
    }
    Ok(())
}

/// Takes back all transactions of this revision and later ones.
pub(super) fn take_back(tables: &mut Tables<'_>, revision: u64) -> Result<(), Failed> {
    let mut head = Head::read(&tables.head)?;
    undo::undo_from(tables, &mut head, revision)?;
    write_head(tables, head)
}

/// Writes the head.
fn write_head(tables: &mut Tables<'_>, mut head: Head) -> Result<(), Failed> {
    head.record.sum = head.sum.to_le_bytes().to_vec();
    let value = head.record.encode_to_vec();
    let sealed = seal(HEAD_KEY.as_bytes(), &value);
    tables.head.insert(HEAD_KEY, &*sealed)?;
    Ok(())
}

/// Adds a transaction to the history, and applies it to the contents.
fn add(
    tables: &mut Tables<'_>,
    head: &mut Head,
    transaction: &StoredTransaction,
) -> Result<(), Failed> {
    let info = &transaction.info;
    for change in &transaction.changes {
        change_row(tables, head, change)?;
    }
    for (part, batch) in transaction.changes.chunks(PART).enumerate() {
        let part = u32::try_from(part).unwrap_or(u32::MAX);
        let record = ChangesRecord {
            changes: batch.iter().map(change_record).collect(),
        };
        let key = part_key(info.revision, part);
        let value = seal(&key, &record.encode_to_vec());
        tables.changes.insert((info.revision, part), &*value)?;
    }

    let lease_before = change_lease(tables.file, &info.origin, transaction.lease)?;
    let [created, changed, deleted] = info.counts;
    let key = transaction.repeatable.as_ref();
    let record = TransactionRecord {
        at: millis(info.at),
        author: info.author.clone(),
        origin: info.origin.clone(),
        restores: info.restores,
        created,
        changed,
        deleted,
        parts: u32::try_from(transaction.changes.len().div_ceil(PART)).unwrap_or(u32::MAX),
        idempotency_key: key.map(|(key, _)| key.clone()),
        request: key.map_or(0, |(_, request)| *request),
        previous: head.record.revision,
        changes_lease: transaction.lease != LeaseChange::Kept,
        lease_before,
    };
    let value = seal(&info.revision.to_be_bytes(), &record.encode_to_vec());
    tables.transactions.insert(info.revision, &*value)?;
    if let Some((key, request)) = key {
        let value = [info.revision.to_le_bytes(), request.to_le_bytes()].concat();
        let mut keys = tables.file.open_table(KEYS)?;
        keys.insert(key.as_str(), &*seal(key.as_bytes(), &value))?;
    }

    if head.record.transactions == 0 {
        head.record.oldest = info.revision;
    }
    head.record.transactions += 1;
    head.record.revision = info.revision;
    Ok(())
}

/// Applies a change to its row. A body that is replaced or removed goes to
/// the bodies out of service, where the transaction finds it.
fn change_row(tables: &mut Tables<'_>, head: &mut Head, change: &RowChange) -> Result<(), Failed> {
    let key = write_key(&change.key).encode_to_vec();
    if let Some(old_row) = &change.before {
        let body = old_row.resource.body.as_deref().unwrap_or_default();
        tables.bodies.add(body_hash(&old_row.resource), body)?;
    }
    let new_value = change.after.as_ref().map(|row| {
        let body = row.resource.body.as_deref().unwrap_or_default();
        row_value::write(&write_row(row), body)
    });
    set_row(&mut tables.contents, head, &key, new_value.as_deref())
}

/// Sets the value of a row, or removes the row, and updates the count and the
/// sum of rows.
pub(super) fn set_row(
    contents: &mut Table<'_, &'static [u8], &'static [u8]>,
    head: &mut Head,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<(), Failed> {
    let old_record = match value {
        Some(value) => {
            head.sum = head.sum.wrapping_add(hash_record(key, value));
            head.record.rows += 1;
            contents.insert(key, &*seal(key, value))?
        }
        None => contents.remove(key)?,
    };
    if let Some(old_record) = old_record {
        let (_, hash) = unseal("contents", key, old_record.value())?;
        head.sum = head.sum.wrapping_sub(hash);
        head.record.rows -= 1;
    }
    Ok(())
}

/// Writes a change without its bodies.
fn change_record(change: &RowChange) -> ChangeRecord {
    ChangeRecord {
        key: write_key(&change.key),
        before: change.before.as_ref().map(write_row),
        after: change.after.as_ref().map(write_row),
    }
}

/// Changes the lease of an origin. Returns the time of the former lease; `None`
/// if there was none, or if the lease stays.
fn change_lease(
    file: &WriteTransaction,
    origin: &str,
    lease: LeaseChange,
) -> Result<Option<u64>, Failed> {
    let nanos = match lease {
        LeaseChange::Kept => return Ok(None),
        LeaseChange::Starts(ttl) => Some(u64::try_from(ttl.get().as_nanos()).unwrap_or(u64::MAX)),
        LeaseChange::Ends => None,
    };
    set_lease(file, origin, nanos)
}

/// Sets the lease of an origin, or removes it. Returns the time of the former
/// lease; `None` if there was none.
pub(super) fn set_lease(
    file: &WriteTransaction,
    origin: &str,
    nanos: Option<u64>,
) -> Result<Option<u64>, Failed> {
    let mut leases = file.open_table(LEASES)?;
    let old_lease = match nanos {
        Some(nanos) => {
            let value = seal(origin.as_bytes(), &nanos.to_le_bytes());
            leases.insert(origin, &*value)?
        }
        None => leases.remove(origin)?,
    };

    let Some(old_lease) = old_lease else {
        return Ok(None);
    };
    let (value, _) = unseal("leases", origin.as_bytes(), old_lease.value())?;
    Ok(value.first_chunk().map(|nanos| u64::from_le_bytes(*nanos)))
}

/// Forgets the oldest transaction: its changes, its idempotency key, and the
/// bodies that only its changes need.
fn forget_oldest(tables: &mut Tables<'_>, head: &mut HeadRecord) -> Result<(), Failed> {
    let oldest = head.oldest;
    let record = match tables.transactions.remove(oldest)? {
        Some(value) => transaction_of(oldest, value.value())?,
        None => return Err(Failed::damaged("the history", "a transaction is missing")),
    };

    for part in 0..record.parts {
        let Some(value) = tables.changes.remove((oldest, part))? else {
            return Err(Failed::damaged("the history", "changes are missing"));
        };
        let (value, _) = unseal("changes", &part_key(oldest, part), value.value())?;
        let record = ChangesRecord::decode(value)?;
        let old_rows = record.changes.iter();
        for old_row in old_rows.filter_map(|change| change.before.as_ref()) {
            tables.bodies.release(hash_of(old_row)?)?;
        }
    }

    if let Some(key) = &record.idempotency_key {
        tables.file.open_table(KEYS)?.remove(key.as_str())?;
    }
    let next = tables.transactions.first()?;
    head.oldest = next.map_or(0, |(revision, _)| revision.value());
    head.transactions -= 1;
    Ok(())
}

fn millis(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
