//! Bodies out of service: those that a kept transaction has replaced or
//! removed.
//!
//! A body is written behind the one before, and an index finds it by its hash.
//! The bodies of one commit share pages, and so do those that are forgotten
//! together; by their hashes each would lie on a page of its own.

use redb::{ReadTransaction, ReadableTable, Table, WriteTransaction};

use super::error::Failed;
use super::tables::{BODIES, BODY_INDEX};

/// The bodies out of service of a file that is written.
pub(super) struct Bodies<'a> {
    index: Table<'a, u128, (u64, u64)>,
    bodies: Table<'a, u64, &'static [u8]>,
    /// The number of the next body; larger than all that are there.
    next: u64,
}

impl<'a> Bodies<'a> {
    /// Opens the tables.
    pub(super) fn open(file: &'a WriteTransaction) -> Result<Self, Failed> {
        let bodies = file.open_table(BODIES)?;
        let newest = bodies.last()?.map(|(number, _)| number.value());
        Ok(Self {
            index: file.open_table(BODY_INDEX)?,
            next: newest.map_or(0, |newest| newest + 1),
            bodies,
        })
    }

    /// Adds a body for one change that needs it, or counts one more such change.
    pub(super) fn add(&mut self, hash: u128, body: &[u8]) -> Result<(), Failed> {
        self.add_for(1, hash, body)
    }

    /// Adds a body for so many changes that need it.
    pub(super) fn add_for(&mut self, changes: u64, hash: u128, body: &[u8]) -> Result<(), Failed> {
        let known = self.index.get(hash)?.map(|entry| entry.value());
        let Some((count, number)) = known else {
            self.bodies.insert(self.next, body)?;
            self.index.insert(hash, (changes, self.next))?;
            self.next += 1;
            return Ok(());
        };
        self.index.insert(hash, (count + changes, number))?;
        Ok(())
    }

    /// Counts one change less that needs a body. The body is removed with the
    /// last change. A body that is not there is ignored.
    pub(super) fn release(&mut self, hash: u128) -> Result<(), Failed> {
        let Some((count, number)) = self.index.remove(hash)?.map(|entry| entry.value()) else {
            return Ok(());
        };
        match count {
            0 | 1 => _ = self.bodies.remove(number)?,
            _ => _ = self.index.insert(hash, (count - 1, number))?,
        }
        Ok(())
    }

    /// Calls `look` with a body. Returns `None` if it is not there.
    pub(super) fn get<T>(
        &self,
        hash: u128,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Failed> {
        find(&self.index, &self.bodies, hash, look)
    }
}

/// Calls `look` with a body of a file. Returns `None` if it is not there.
pub(super) fn read<T>(
    file: &ReadTransaction,
    hash: u128,
    look: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>, Failed> {
    find(
        &file.open_table(BODY_INDEX)?,
        &file.open_table(BODIES)?,
        hash,
        look,
    )
}

/// Calls `look` with the body of a hash. Returns `None` if it is not there.
fn find<T>(
    index: &impl ReadableTable<u128, (u64, u64)>,
    bodies: &impl ReadableTable<u64, &'static [u8]>,
    hash: u128,
    look: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>, Failed> {
    let Some((_, number)) = index.get(hash)?.map(|entry| entry.value()) else {
        return Ok(None);
    };
    Ok(bodies.get(number)?.map(|body| look(body.value())))
}
