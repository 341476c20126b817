//! Hashes that decide where a request goes (50; facts 4.1).

use twox_hash::XxHash64;

/// Hashes a text as Envoy does for cookies, parameters and addresses.
#[must_use]
pub fn xxh64(text: &[u8]) -> u64 {
    XxHash64::oneshot(0, text)
}

/// Hashes a text with a seed.
#[must_use]
pub fn xxh64_seeded(text: &[u8], seed: u64) -> u64 {
    XxHash64::oneshot(seed, text)
}

/// Adds the hash of one policy to that of those before it.
#[must_use]
pub fn combine(hash: Option<u64>, new: u64) -> u64 {
    hash.map_or(new, |hash| hash.rotate_left(1) ^ new)
}

/// Returns the MurmurHash64A of a text, as libstdc++ has it.
#[must_use]
pub fn murmur2(text: &[u8], seed: u64) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |word: u64| {
        let word = word.wrapping_mul(MULTIPLIER);
        (word ^ (word >> 47)).wrapping_mul(MULTIPLIER)
    };

    let mut hash = seed ^ (text.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, tail) = text.as_chunks::<8>();
    for word in words {
        hash = (hash ^ mix(u64::from_le_bytes(*word))).wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }

    hash = (hash ^ (hash >> 47)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 47)
}
