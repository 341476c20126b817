//! Files of format 1, which had the bodies out of service by their hashes.

use redb::{Database, ReadableTable as _, TableDefinition};

use super::bodies::Bodies;
use super::error::Failed;
use super::tables::{FORMAT, FORMAT_KEY, HEAD};

/// The format that can be upgraded.
pub(super) const OLD_FORMAT: u64 = 1;

/// The bodies of that format: how many changes need one, in eight bytes, and
/// the body.
pub(super) const OLD_BODIES: TableDefinition<'_, u128, &[u8]> = TableDefinition::new("bodies");

/// Makes a file of [`OLD_FORMAT`] one of [`FORMAT`], in one transaction.
pub(super) fn upgrade(database: &Database) -> Result<(), Failed> {
    let file = database.begin_write()?;
    {
        let mut bodies = Bodies::open(&file)?;
        for record in file.open_table(OLD_BODIES)?.iter()? {
            let (hash, value) = record?;
            let Some((count, body)) = value.value().split_first_chunk() else {
                return Err(Failed::damaged("a body", "it is too short"));
            };
            bodies.add_for(u64::from_le_bytes(*count), hash.value(), body)?;
        }
    }
    file.delete_table(OLD_BODIES)?;
    file.open_table(HEAD)?
        .insert(FORMAT_KEY, &FORMAT.to_le_bytes()[..])?;
    Ok(file.commit()?)
}
