//! The value of a row in its table: the length of its record, the record, and
//! its body.

use prost::Message as _;
use trunkline::StoreError;

use super::codec::{hash_of, unreadable};
use super::message::RowRecord;
use super::seal;

/// Writes the value of a row.
pub(super) fn write(record: &RowRecord, body: &[u8]) -> Vec<u8> {
    let encoded = record.encode_to_vec();
    let mut value = Vec::with_capacity(4 + encoded.len() + body.len());
    value.extend_from_slice(
        &u32::try_from(encoded.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes(),
    );
    value.extend_from_slice(&encoded);
    value.extend_from_slice(body);
    value
}

/// Reads the value of a row, which its seal vouches for.
///
/// # Errors
/// It makes no sense, or the body is not the one of the record.
pub(super) fn read(value: &[u8]) -> Result<(RowRecord, &[u8]), StoreError> {
    let damaged = |reason: &str| unreadable("a row", reason);
    let (len, remainder) = value
        .split_first_chunk::<4>()
        .ok_or_else(|| damaged("it is too short"))?;
    let (record, body) = remainder
        .split_at_checked(u32::from_le_bytes(*len) as usize)
        .ok_or_else(|| damaged("it is too short"))?;
    let record = RowRecord::decode(record).map_err(|error| damaged(&error.to_string()))?;
    match hash_of(&record)? == seal::hash(body) {
        true => Ok((record, body)),
        false => Err(damaged("its body is another one")),
    }
}
