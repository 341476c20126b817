//! The value of a row in its table: the length of its record, the record, and
//! its body.

use prost::Message as _;
use trunkline::StoreError;

use super::codec::{hash_of, unreadable};
use super::message::RowRecord;
use super::seal;

/// Returns the value of a row: the length of its record, the record, and the
/// body.
pub(super) fn write(record: &RowRecord, body: &[u8]) -> Vec<u8> {
    let encoded = record.encode_to_vec();
    let mut value = Vec::with_capacity(4 + encoded.len() + body.len());
    let record_len = u32::try_from(encoded.len()).unwrap_or(u32::MAX);
    value.extend_from_slice(&record_len.to_le_bytes());
    value.extend_from_slice(&encoded);
    value.extend_from_slice(body);
    value
}

/// Splits the value of a row into its record and its body. The caller has
/// checked the seal of the value.
///
/// # Errors
/// The value is malformed, or the body is not the one of the record.
pub(super) fn read(value: &[u8]) -> Result<(RowRecord, &[u8]), StoreError> {
    let damaged = |reason: &str| unreadable("a row", reason);
    let (len, remainder) = value
        .split_first_chunk::<4>()
        .ok_or_else(|| damaged("it is too short"))?;
    let (record, body) = remainder
        .split_at_checked(u32::from_le_bytes(*len) as usize)
        .ok_or_else(|| damaged("it is too short"))?;
    let record = RowRecord::decode(record).map_err(|error| damaged(&error.to_string()))?;
    if hash_of(&record)? != seal::hash(body) {
        return Err(damaged("its body is another one"));
    }
    Ok((record, body))
}
