//! What is served of files, so that the next start knows what was there before:
//! a change of a file that is held then stays held, and what it would remove
//! goes on being served.
//!
//! A file has its resources in parts of [`PART`], the last of which says so.
//! They are in no revision: files keep their own history.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _, TableError, WriteTransaction};
use trunkline::checked::{Row, RowKey};
use trunkline::{Resource, TypeUrl};

use super::codec::{RowReader, write_key, write_row};
use super::error::Failed;
use super::message::{ServedPartRecord, ServedRecord};
use super::seal::{seal, unseal};
use super::tables::{FILES, PART};

/// What is served of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedFile {
    /// Its path, as findings show it.
    pub(crate) name: Arc<str>,
    /// Whether it is a text that ends in a newline.
    pub(crate) ends_line: bool,
    /// Its resources with their types.
    pub(crate) resources: Vec<(TypeUrl, Arc<Resource>)>,
}

/// A change of what is served of a file.
#[derive(Clone, Debug)]
pub(crate) enum ServedChange {
    /// This is served of it.
    Served(ServedFile),
    /// Nothing is: it does not exist any more.
    Removed(Arc<str>),
}

/// Writes what is served of some files from now on.
pub(super) fn write(file: &WriteTransaction, changes: &[ServedChange]) -> Result<(), Failed> {
    let mut table = file.open_table(FILES)?;
    for change in changes {
        let (name, served) = match change {
            ServedChange::Served(served) => (&served.name, Some(served)),
            ServedChange::Removed(name) => (name, None),
        };
        table.retain_in((&**name, 0)..=(&**name, u32::MAX), |_, _| false)?;
        for (part, record) in served.map(parts_of).unwrap_or_default().iter().enumerate() {
            let part = u32::try_from(part).unwrap_or(u32::MAX);
            let value = seal(&part_key(name, part), &record.encode_to_vec());
            table.insert((&**name, part), &*value)?;
        }
    }
    Ok(())
}

/// Forgets what is served of all files.
pub(super) fn clear(file: &WriteTransaction) -> Result<(), Failed> {
    file.delete_table(FILES)?;
    file.open_table(FILES)?;
    Ok(())
}

/// The table, if the file has one.
type FilesTable = ReadOnlyTable<(&'static str, u32), &'static [u8]>;

/// Opens the table; `None` if a release before it has made the file.
fn open_files(file: &ReadTransaction) -> Result<Option<FilesTable>, Failed> {
    match file.open_table(FILES) {
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        table => Ok(Some(table?)),
    }
}

/// Checks that every part of every file is what was written.
pub(super) fn check(file: &ReadTransaction) -> Result<(), Failed> {
    let Some(table) = open_files(file)? else {
        return Ok(());
    };
    for entry in table.iter()? {
        let (key, value) = entry?;
        let (name, part) = key.value();
        unseal("files", &part_key(name, part), value.value())?;
    }
    Ok(())
}

/// Reads what is served of all files.
pub(super) fn load(file: &ReadTransaction) -> Result<Vec<ServedFile>, Failed> {
    let Some(table) = open_files(file)? else {
        return Ok(Vec::new());
    };
    let incomplete = || Failed::damaged("what is served of a file", "a part of it is missing");
    let mut reader = RowReader::default();
    let mut files: Vec<ServedFile> = Vec::new();
    // The next part of the last of these files; none if it is complete.
    let mut awaited = None;
    for entry in table.iter()? {
        let (key, value) = entry?;
        let (name, part) = key.value();
        let (value, _) = unseal("files", &part_key(name, part), value.value())?;
        let record = ServedPartRecord::decode(value)?;
        if awaited.is_none() {
            files.push(ServedFile {
                name: name.into(),
                ends_line: record.ends_line,
                resources: Vec::new(),
            });
        }
        let served = files.last_mut().filter(|served| *served.name == *name);
        let served = served.filter(|_| awaited.unwrap_or(0) == part);
        let served = served.ok_or_else(incomplete)?;
        for one in record.resources {
            let (key, row) = reader.read(one.key, one.row, Bytes::from(one.body))?;
            served.resources.push((key.type_url, row.resource));
        }
        awaited = (!record.is_last).then_some(part + 1);
    }
    match awaited {
        None => Ok(files),
        Some(_) => Err(incomplete()),
    }
}

/// Makes the records of a file; of one without resources there is one, too.
fn parts_of(served: &ServedFile) -> Vec<ServedPartRecord> {
    let count = served.resources.len().div_ceil(PART).max(1);
    let parts = (0..count).map(|part| {
        let resources = served.resources.iter().skip(part * PART).take(PART);
        ServedPartRecord {
            ends_line: served.ends_line,
            is_last: part + 1 == count,
            resources: resources.map(record_of).collect(),
        }
    });
    parts.collect()
}

/// Writes one resource of a file as a row of its origin.
fn record_of((type_url, resource): &(TypeUrl, Arc<Resource>)) -> ServedRecord {
    let key = RowKey {
        origin: crate::files::ORIGIN.into(),
        type_url: type_url.clone(),
        name: resource.name.clone(),
        constraints: resource.constraints.clone(),
    };
    let row = Row {
        resource: Arc::clone(resource),
        wrapper_constraints: None,
        is_inline_host: false,
    };
    ServedRecord {
        key: write_key(&key),
        row: write_row(&row),
        body: resource.body.as_deref().unwrap_or_default().to_vec(),
    }
}

/// Returns the bytes of the key of a part, for its seal.
fn part_key(name: &str, part: u32) -> Vec<u8> {
    [name.as_bytes(), &part.to_be_bytes()[..]].concat()
}
