//! A store in one database file, which one process has open at a time.
//!
//! ```text
//! commit ─▶ one transaction of the file ─▶ on the disk ─▶ returns
//! load   ─▶ every row, its seal and the sum of all ─▶ contents, or "damaged"
//! ```
//!
//! | file | concern |
//! |---|---|
//! | `tables`, `message`, `row_value` | what is in the file |
//! | `bodies` | bodies that are out of service |
//! | `codec` | rows to records and back |
//! | `seal` | finds records that are not what was written |
//! | `write`, `read` | transactions in, contents and history out |
//! | `upgrade` | files of an earlier format |
//! | `undo` | transactions that were refused, and are there |
//! | `served_files` | what is served of files |
//! | `copy` | backups, and their way back |
//! | `error` | errors of the engine |
//!
//! A file that is damaged, or of a newer release, is refused and left as it is.
//! After an error of the system, such as a full disk, the file is opened again
//! for the next access, at the last transaction that was committed.

mod bodies;
mod codec;
mod copy;
mod error;
mod message;
mod read;
mod row_value;
mod seal;
mod served_files;
mod tables;
mod undo;
mod upgrade;
mod write;

use std::fmt;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase as _};
use trunkline::checked::RowChange;
use trunkline::{Kept, Repeatable, Store, StoreError, StoredTransaction, TransactionInfo};

pub use copy::restore_backup;
use error::Failed;
use read::Head;
pub(crate) use served_files::{ServedChange, ServedFile};
use tables::{
    BODIES, BODY_INDEX, CHANGES, CONTENTS, FILES, FORMAT, FORMAT_KEY, HEAD, KEYS, LEASES,
    TRANSACTIONS, Tables,
};

/// The name of the file in its directory.
const FILE: &str = "contents.redb";
/// The name of the file until it has its tables.
const NEW_FILE: &str = "contents.redb.new";
/// Memory for pages of the file, which fills as changes are written, and stays
/// full. The contents are in the memory of the server, and what is read again,
/// the pages above the rows of a change, the system has as well.
const CACHE: usize = 8 << 20;

/// The most rows that a small change changes.
const SMALL: usize = 4;

/// How a file is opened.
type Open = dyn Fn(&Path) -> Result<Database, DatabaseError> + Send + Sync;

/// A store in a directory.
///
/// ```
/// use trunkline::Store as _;
/// use trunkline_store::EmbeddedStore;
///
/// let dir = tempfile::tempdir()?;
/// let store = EmbeddedStore::open(dir.path(), 1000)?;
/// assert_eq!(store.load()?.revision, 0);
/// let second = EmbeddedStore::open(dir.path(), 1000).unwrap_err();
/// assert!(second.to_string().ends_with("is in use by another process"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EmbeddedStore {
    path: PathBuf,
    open: Box<Open>,
    /// `None` after an error of the system.
    database: Mutex<Option<Arc<Database>>>,
    /// The number of transactions that are kept at least.
    history: u64,
}

impl EmbeddedStore {
    /// Opens the store of a directory, or makes both. So many transactions are
    /// kept at least, and at most a sixteenth more; the contents do not depend on
    /// that.
    ///
    /// # Errors
    /// The directory cannot be written; the file is damaged, of a newer
    /// release, or in use.
    pub fn open(dir: &Path, history: u64) -> Result<Self, StoreError> {
        Self::open_with(dir, history, Box::new(open_file))
    }

    /// Returns whether a directory has a store.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// Opens the store of a directory. `open` opens its file.
    fn open_with(dir: &Path, history: u64, open: Box<Open>) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        make_dir(dir).map_err(|source| io_error(dir, source))?;
        if !path.exists() {
            create(dir, &path)?;
        }
        let store = Self {
            path,
            open,
            database: Mutex::default(),
            history,
        };
        store.database()?;
        Ok(store)
    }

    /// Checks that every transaction that is kept can be read.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_history(&self) -> Result<(), StoreError> {
        self.read(read::check_history)
    }

    /// Reads what is served of files.
    pub(crate) fn load_served_files(&self) -> Result<Vec<ServedFile>, StoreError> {
        self.read(served_files::load)
    }

    /// Keeps what is served of some files from now on.
    pub(crate) fn keep_served_files(&self, changes: &[ServedChange]) -> Result<(), StoreError> {
        self.write(|file| served_files::write(file, changes))
    }

    /// Forgets what is served of all files.
    pub(crate) fn forget_served_files(&self) -> Result<(), StoreError> {
        self.write(served_files::clear)
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.path
    }

    /// Returns the open database. Opens the file again if an error has closed
    /// it.
    fn database(&self) -> Result<Arc<Database>, StoreError> {
        let mut database = self.lock();
        if let Some(open) = &*database {
            return Ok(Arc::clone(open));
        }
        let opened = guarded(&self.path, || self.open_checked())?;
        Ok(Arc::clone(database.insert(Arc::new(opened))))
    }

    /// Opens the file and checks its pages. A file of the earlier format is
    /// upgraded; one of an unknown format is an error.
    fn open_checked(&self) -> Result<Database, Failed> {
        // The engine would make a new database of an empty file.
        let len = fs::metadata(&self.path).map_err(redb::Error::Io)?.len();
        if len == 0 {
            return Err(Failed::damaged("the file", "it is empty"));
        }

        let mut database = (self.open)(&self.path)?;
        let format = read_format(&database.begin_read()?)?;
        if ![FORMAT, upgrade::OLD_FORMAT].contains(&format) {
            return Err(Failed::Store(StoreError::Newer {
                what: self.path.display().to_string(),
                found: format,
                known: FORMAT,
            }));
        }

        // A page that is in use but listed as free would be overwritten.
        if !database.check_integrity()? {
            return Err(Failed::damaged("the file", "its pages do not add up"));
        }
        if format == upgrade::OLD_FORMAT {
            upgrade::upgrade(&database)?;
        }
        Ok(database)
    }

    /// Reads from the newest state of the file.
    fn read<T>(
        &self,
        look: impl FnOnce(&ReadTransaction) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        let database = self.database()?;
        guarded(&self.path, || look(&database.begin_read()?))
    }

    /// Writes in one transaction of the file, which is no transaction of the
    /// server.
    fn write(
        &self,
        change: impl FnOnce(&redb::WriteTransaction) -> Result<(), Failed>,
    ) -> Result<(), StoreError> {
        let database = self.database()?;
        let mut closes = false;
        let written = guarded(&self.path, || {
            let written = write_with(&database, change);
            written.inspect_err(|failed| closes = failed.closes())
        });
        if closes {
            *self.lock() = None;
        }
        written
    }

    /// Takes back refused transactions that the file has nevertheless.
    fn take_back(&self, refused: &[StoredTransaction]) -> Result<(), StoreError> {
        let Some(first_revision) = refused.first().map(|first| first.info.revision) else {
            return Ok(());
        };
        let database = self.database()?;
        guarded(&self.path, || {
            let newest = Head::read(&database.begin_read()?.open_table(HEAD)?)?;
            if newest.record.revision < first_revision {
                return Ok(());
            }
            let file = database.begin_write()?;
            write::take_back(&mut Tables::open(&file)?, first_revision)?;
            Ok(file.commit()?)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Database>>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for EmbeddedStore {
    fn load(&self) -> Result<Kept, StoreError> {
        self.read(|file| {
            served_files::check(file)?;
            read::load(file)
        })
    }

    fn commit(&self, transactions: &[StoredTransaction]) -> Result<(), StoreError> {
        let database = self.database()?;
        let mut must_reopen = false;
        let outcome = guarded(&self.path, || {
            let committed = commit(&database, transactions, self.history);
            committed.inspect_err(|failed| must_reopen = failed.closes())
        });
        if must_reopen {
            *self.lock() = None;
            drop(database);
            // The file may have the transactions although the commit failed. If
            // they cannot be taken back now, the next change does it.
            let _ = self.take_back(transactions);
        }
        outcome
    }

    fn transactions(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TransactionInfo>, StoreError> {
        self.read(|file| read::transactions(file, before, limit))
    }

    fn changes(&self, revision: u64) -> Result<Option<Vec<RowChange>>, StoreError> {
        self.read(|file| read::changes(file, revision))
    }

    fn find_key(&self, key: &str) -> Result<Option<Repeatable>, StoreError> {
        self.read(|file| read::find_key(file, key))
    }

    fn back_up(&self) -> Result<fs::File, StoreError> {
        let database = self.database()?;
        copy::back_up(&database, &self.path)
    }
}

impl Drop for EmbeddedStore {
    /// Closes the file, in which the engine may find damage as well.
    fn drop(&mut self) {
        let database = self.lock().take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
    }
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Writes transactions, and returns when they are durable: the engine has synced
/// the file (`fdatasync`).
fn commit(
    database: &Database,
    transactions: &[StoredTransaction],
    history: u64,
) -> Result<(), Failed> {
    let file = database.begin_write()?;
    write::write(&mut Tables::open(&file)?, transactions, history)?;
    // After a commit the engine frees the pages that the commit replaced, by
    // changing its own tables once more, unless somebody reads the state before:
    // then the next commit frees them. A change of few pages is answered sooner
    // so; one of many would make the file larger.
    let is_small = transactions
        .iter()
        .map(|it| it.changes.len())
        .sum::<usize>()
        <= SMALL;
    let reader = is_small.then(|| database.begin_read()).transpose()?;
    file.commit()?;
    drop(reader);
    Ok(())
}

/// Makes a change of the file; once this returns it is on the disk.
fn write_with(
    database: &Database,
    change: impl FnOnce(&redb::WriteTransaction) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let file = database.begin_write()?;
    change(&file)?;
    Ok(file.commit()?)
}

fn open_file(path: &Path) -> Result<Database, DatabaseError> {
    Builder::new().set_cache_size(CACHE).open(path)
}

/// Creates an empty file with its tables. The file gets its name when it is
/// complete, so that a crash leaves no file which looks damaged.
fn create(dir: &Path, path: &Path) -> Result<(), StoreError> {
    let temporary_path = dir.join(NEW_FILE);
    let outcome = make_file(&temporary_path).and_then(|file| {
        let database = Builder::new().create_file(file);
        guarded(&temporary_path, || make_tables(&database?)).map_err(io::Error::other)
    });
    outcome.map_err(|source| io_error(&temporary_path, source))?;
    let rename = fs::rename(&temporary_path, path).and_then(|()| sync_dir(dir));
    rename.map_err(|source| io_error(path, source))
}

/// Creates all tables, and writes the format.
fn make_tables(database: &Database) -> Result<(), Failed> {
    let file = database.begin_write()?;
    {
        let mut head = file.open_table(HEAD)?;
        head.insert(FORMAT_KEY, &FORMAT.to_le_bytes()[..])?;
        file.open_table(CONTENTS)?;
        file.open_table(BODY_INDEX)?;
        file.open_table(BODIES)?;
        file.open_table(TRANSACTIONS)?;
        file.open_table(CHANGES)?;
        file.open_table(LEASES)?;
        file.open_table(KEYS)?;
        file.open_table(FILES)?;
    }
    Ok(file.commit()?)
}

/// Reads the format of a file; one without a format is damaged.
fn read_format(file: &ReadTransaction) -> Result<u64, Failed> {
    let head = file.open_table(HEAD)?;
    let format = head.get(FORMAT_KEY)?;
    let format = format.and_then(|value| value.value().try_into().ok().map(u64::from_le_bytes));
    format.ok_or_else(|| Failed::damaged("the head", "it has no format"))
}

/// Runs an access to the file. The engine may panic where a damaged file makes
/// no sense to it; that is an error like any other.
fn guarded<T>(path: &Path, access: impl FnOnce() -> Result<T, Failed>) -> Result<T, StoreError> {
    let panicked = |_| Failed::damaged("the file", "its pages make no sense");
    let result = catch_unwind(AssertUnwindSafe(access));
    let result = result.map_err(panicked).and_then(|result| result);
    result.map_err(|failed| failed.of_file(path))
}

/// Makes a directory that only its owner can read: there may be secrets in it.
fn make_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Makes an empty file that only its owner can read.
fn make_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes the names in a directory to the disk.
fn sync_dir(dir: &Path) -> io::Result<()> {
    fs::File::open(dir)?.sync_all()
}

/// Makes the error of an access to a path that the system refused.
fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io {
        what: path.display().to_string(),
        source,
    }
}

#[cfg(test)]
mod tests;
