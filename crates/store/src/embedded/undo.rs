//! Taking back: a transaction whose commit has failed, and which is in the file
//! all the same, because only the last sync failed. Its writer was told that it
//! is not kept.

use prost::Message as _;

use super::codec::hash_of;
use super::error::Failed;
use super::message::{ChangeRecord, ChangesRecord};
use super::read::{Head, transaction_of};
use super::row_value;
use super::seal::unseal;
use super::tables::{KEYS, Tables, part_key};
use super::write::{set_lease, set_row};

/// Takes back all transactions of this revision and later ones, newest first.
pub(super) fn undo_from(
    tables: &mut Tables<'_>,
    head: &mut Head,
    revision: u64,
) -> Result<(), Failed> {
    while head.record.transactions > 0 && head.record.revision >= revision {
        undo_newest(tables, head)?;
    }
    Ok(())
}

/// Takes back the newest transaction: its changes, its lease and its
/// idempotency key.
fn undo_newest(tables: &mut Tables<'_>, head: &mut Head) -> Result<(), Failed> {
    let newest = head.record.revision;
    let missing_error = || Failed::damaged("the history", "a transaction is missing");
    let record = tables.transactions.remove(newest)?;
    let record = record.map(|value| transaction_of(newest, value.value()));
    let record = record.ok_or_else(missing_error)??;

    for part in 0..record.parts {
        let changes = {
            let value = tables.changes.remove((newest, part))?;
            let value = value.ok_or_else(missing_error)?;
            let (value, _) = unseal("changes", &part_key(newest, part), value.value())?;
            ChangesRecord::decode(value)?.changes
        };
        for change in changes {
            undo_change(tables, head, &change)?;
        }
    }

    if record.changes_lease {
        set_lease(tables.file, &record.origin, record.lease_before)?;
    }
    if let Some(key) = &record.idempotency_key {
        tables.file.open_table(KEYS)?.remove(key.as_str())?;
    }

    head.record.transactions -= 1;
    head.record.revision = record.previous;
    if head.record.transactions == 0 {
        head.record.oldest = 0;
    }
    Ok(())
}

/// Restores the row that was there before a change, or removes a row that the
/// change created.
fn undo_change(
    tables: &mut Tables<'_>,
    head: &mut Head,
    change: &ChangeRecord,
) -> Result<(), Failed> {
    let key = change.key.encode_to_vec();
    let Some(old_row) = &change.before else {
        return set_row(&mut tables.contents, head, &key, None);
    };

    let hash = hash_of(old_row)?;
    let missing_error = || Failed::damaged("the history", "a body is missing");
    let value = tables
        .bodies
        .get(hash, |body| row_value::write(old_row, body))?;
    let value = value.ok_or_else(missing_error)?;
    tables.bodies.release(hash)?;
    set_row(&mut tables.contents, head, &key, Some(&value))
}
