//! Seals of records: a hash before the bytes, so that a bit that has turned on
//! the disk is found when the record is read. The engine checks its pages only
//! when it repairs a file.

use trunkline::StoreError;
use twox_hash::XxHash3_128;

/// The bytes of a seal.
const SEAL: usize = 16;

/// Returns the hash of bytes.
pub(super) fn hash(bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot(bytes)
}

/// Returns the hash of a record: of its key and its value, with the length of
/// the key between them.
pub(super) fn hash_record(key: &[u8], value: &[u8]) -> u128 {
    let mut bytes = Vec::with_capacity(key.len() + value.len() + 8);
    bytes.extend_from_slice(&(key.len() as u64).to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    hash(&bytes)
}

/// Writes a record with its seal.
pub(super) fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(SEAL + value.len());
    sealed.extend_from_slice(&hash_record(key, value).to_le_bytes());
    sealed.extend_from_slice(value);
    sealed
}

/// Returns a record without its seal, and the hash in the seal.
///
/// # Errors
/// The record has another hash: it was changed after it was sealed.
pub(super) fn unseal<'a>(
    table: &str,
    key: &[u8],
    sealed: &'a [u8],
) -> Result<(&'a [u8], u128), StoreError> {
    let damaged = || StoreError::Damaged {
        what: format!("a record of {table}"),
        reason: "its bytes are not those that were written".to_owned(),
    };
    let (head, value) = sealed.split_first_chunk::<SEAL>().ok_or_else(damaged)?;
    let sealed_hash = u128::from_le_bytes(*head);
    if sealed_hash != hash_record(key, value) {
        return Err(damaged());
    }
    Ok((value, sealed_hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_record_is_sealed() {
        let sealed = seal(b"key", b"value");
        assert_eq!(unseal("t", b"key", &sealed).unwrap().0, b"value");
        assert!(unseal("t", b"kez", &sealed).is_err());
        for bit in 0..sealed.len() * 8 {
            let mut other = sealed.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(unseal("t", b"key", &other).is_err(), "{bit}");
        }
        for len in 0..sealed.len() {
            assert!(unseal("t", b"key", &sealed[..len]).is_err(), "{len}");
        }
    }
}
