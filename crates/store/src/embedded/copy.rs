//! Backups: a file like that of the store, as it was at one revision.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::{
    Builder, Database, Durability, ReadTransaction, ReadableDatabase as _, ReadableTable as _,
    TableDefinition, TableError, WriteTransaction,
};
use trunkline::{Store as _, StoreError};

use super::error::Failed;
use super::tables::{
    BODIES, BODY_INDEX, CHANGES, CONTENTS, FILES, HEAD, KEYS, LEASES, TRANSACTIONS,
};
use super::{EmbeddedStore, FILE, guarded, io_error, make_dir, make_file, sync_dir};

/// Records that are copied in one transaction.
const BATCH: usize = 10_000;

/// The next backup of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Copies the present state of the file to a new file in its directory, and
/// returns that. The copy is removed when it is closed. Changes go on during
/// the copy.
pub(super) fn back_up(from: &Database, path: &Path) -> Result<fs::File, StoreError> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let copy = path.with_file_name(format!("backup-{number}.part"));
    let file = make_file(&copy).map_err(|source| io_error(&copy, source))?;
    let outcome = guarded(path, || {
        let from = from.begin_read()?;
        let to = Builder::new().create_file(file)?;
        copy_all(&from, &to)
    });
    let opened_copy = outcome.and_then(|()| {
        let opened_copy = fs::File::open(&copy);
        opened_copy.map_err(|source| io_error(&copy, source))
    });

    // The open file outlives its name. A crash before this leaves a file, which
    // the next backup overwrites.
    let removal = fs::remove_file(&copy);
    removal.map_err(|source| io_error(&copy, source))?;
    opened_copy
}

/// Copies all tables.
fn copy_all(source: &ReadTransaction, target: &Database) -> Result<(), Failed> {
    copy_table(source, target, CONTENTS)?;
    copy_table(source, target, BODY_INDEX)?;
    copy_table(source, target, BODIES)?;
    copy_table(source, target, TRANSACTIONS)?;
    copy_table(source, target, CHANGES)?;
    copy_table(source, target, LEASES)?;
    copy_table(source, target, KEYS)?;
    copy_table(source, target, FILES)?;
    copy_table(source, target, HEAD)
}

/// Copies one table, with a transaction for each batch of records.
fn copy_table<K: redb::Key + 'static, V: redb::Value + 'static>(
    source: &ReadTransaction,
    target: &Database,
    table: TableDefinition<'static, K, V>,
) -> Result<(), Failed> {
    let source = match source.open_table(table) {
        // A release before this table has made the file.
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        source => source?,
    };
    let mut records = source.iter()?;
    loop {
        let mut file: WriteTransaction = target.begin_write()?;
        let mut copied_count = 0;
        {
            let mut target = file.open_table(table)?;
            for record in records.by_ref().take(BATCH) {
                let (key, value) = record?;
                target.insert(key.value(), value.value())?;
                copied_count += 1;
            }
        }
        if copied_count < BATCH {
            // This commit also makes the earlier ones durable.
            file.commit()?;
            return Ok(());
        }
        file.set_durability(Durability::None)
            .map_err(|error| Failed::Engine(error.into()))?;
        file.commit()?;
    }
}

/// Copies a backup into a directory as its store, after a check of all of it.
/// Returns the revision.
///
/// # Errors
/// The directory has a store, or the backup is damaged.
pub fn restore_backup(backup: &Path, dir: &Path) -> Result<u64, StoreError> {
    let target = dir.join(FILE);
    if target.exists() {
        let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(io_error(&target, source));
    }

    make_dir(dir).map_err(|source| io_error(dir, source))?;
    let part = dir.join("restore");
    if part.exists() {
        let result = fs::remove_dir_all(&part);
        result.map_err(|source| io_error(&part, source))?;
    }
    make_dir(&part).map_err(|source| io_error(&part, source))?;

    let copy = part.join(FILE);
    let revision = copy_and_check(backup, &part).inspect_err(|_| {
        // The error of the copy is the one to report.
        let _ = fs::remove_dir_all(&part);
    })?;

    let outcome = fs::rename(&copy, &target)
        .and_then(|()| fs::remove_dir(&part))
        .and_then(|()| sync_dir(dir));
    outcome.map_err(|source| io_error(&target, source))?;
    Ok(revision)
}

/// Copies a backup into a directory, and reads all of the copy. Returns its
/// revision.
fn copy_and_check(backup: &Path, part: &Path) -> Result<u64, StoreError> {
    let copy = make_file(&part.join(FILE)).and_then(|mut to| {
        let mut from = fs::File::open(backup)?;
        std::io::copy(&mut from, &mut to)?;
        to.sync_all()
    });
    copy.map_err(|source| io_error(backup, source))?;
    let store = EmbeddedStore::open(part, u64::MAX)?;
    store.check_history()?;
    Ok(store.load()?.revision)
}
