//! Ring hash: the table and its look-up (facts 4.1).

use crate::hash::{murmur2, xxh64};

/// The seed of MurmurHash2 in Envoy's ring.
const MURMUR_SEED: u64 = 0xc70f_6907;

/// The function that makes the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingFunction {
    /// xxHash64.
    Xx,
    /// MurmurHash2, as libstdc++ has it.
    Murmur2,
}

/// The size of a ring and how it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingConfig {
    /// The least number of entries.
    pub min: u64,
    /// The most entries.
    pub max: u64,
    /// The hash function.
    pub function: RingFunction,
}

impl Default for RingConfig {
    /// Returns the settings that Envoy has by default.
    fn default() -> Self {
        Self {
            min: 1024,
            max: 8 << 20,
            function: RingFunction::Xx,
        }
    }
}

/// A ring: hashes and the endpoints behind them, sorted.
#[derive(Debug, Clone, Default)]
pub struct Ring {
    entries: Vec<(u64, u32)>,
}

impl Ring {
    /// Makes the ring of endpoints, given by their keys and their weights,
    /// which are parts of 1.
    #[must_use]
    pub fn new(hosts: &[(&str, f64)], config: &RingConfig) -> Self {
        let least_weight = hosts.iter().map(|(_, weight)| *weight).fold(1.0, f64::min);
        #[expect(clippy::cast_precision_loss, reason = "sizes of rings")]
        let (min, max) = (config.min as f64, config.max as f64);
        let scale = ((least_weight * min).ceil() / least_weight).min(max);
        let mut entries = Vec::new();
        let (mut current, mut target) = (0.0, 0.0);
        let mut key = String::new();
        for (index, (host, weight)) in (0..).zip(hosts) {
            target += scale * weight;
            let mut number = 0;
            while current < target {
                key.clear();
                key.push_str(host);
                key.push('_');
                key.push_str(&number.to_string());
                let hash = match config.function {
                    RingFunction::Xx => xxh64(key.as_bytes()),
                    RingFunction::Murmur2 => murmur2(key.as_bytes(), MURMUR_SEED),
                };
                entries.push((hash, index));
                number += 1;
                current += 1.0;
            }
        }

        entries.sort_by_key(|(hash, _)| *hash);
        Self { entries }
    }

    /// Returns the hashes and the indices of endpoints, sorted.
    #[must_use]
    pub fn entries(&self) -> &[(u64, u32)] {
        &self.entries
    }

    /// Returns the index of the endpoint of a hash. A retry takes the entry
    /// behind, one for each attempt before.
    #[must_use]
    pub fn pick(&self, hash: u64, attempt: u32) -> Option<usize> {
        let first = self.entries.partition_point(|(entry, _)| *entry < hash);
        let position = (first % self.entries.len().max(1)) + attempt as usize;
        let entry = self.entries.get(position % self.entries.len().max(1));
        entry.map(|(_, host)| *host as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d62_a_hash_is_that_of_the_entry_at_it_or_else_behind_it() {
        let config = RingConfig {
            min: 16,
            max: 16,
            function: RingFunction::Xx,
        };
        let ring = Ring::new(&[("a", 0.5), ("b", 0.5)], &config);
        let count = ring.entries().len();
        for (index, (hash, host)) in ring.entries().iter().enumerate() {
            let host = *host as usize;
            assert_eq!(ring.pick(*hash, 0), Some(host));
            assert_eq!(ring.pick(hash - 1, 0), Some(host), "between two entries");
            let next = ring.entries()[(index + 1) % count].1 as usize;
            assert_eq!(ring.pick(hash + 1, 0), Some(next));
            assert_eq!(ring.pick(*hash, 1), Some(next), "a retry takes the next");
            assert_eq!(
                ring.pick(*hash, u32::try_from(count).expect("16")),
                Some(host)
            );
        }
        assert_eq!(Ring::default().pick(7, 1), None);
    }
}
