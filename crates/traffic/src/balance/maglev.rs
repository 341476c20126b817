//! Maglev: the table and its look-up (facts 4.1).

use crate::hash::{xxh64, xxh64_seeded};

/// The size of a table, unless the configuration says another.
pub(super) const TABLE_SIZE: u64 = 65_537;

/// A table of endpoints. Its size is prime.
#[derive(Debug, Clone, Default)]
pub struct Maglev {
    table: Vec<u32>,
}

/// An endpoint while the table is made.
struct Filler<'h> {
    key: &'h str,
    index: u32,
    weight: f64,
    next: u64,
    skip: u64,
    target: f64,
}

const EMPTY: u32 = u32::MAX;

impl Maglev {
    /// Makes the table of endpoints, given by their keys and their weights,
    /// which are parts of 1.
    #[must_use]
    pub fn new(hosts: &[(&str, f64)], size: u64) -> Self {
        let fillers = (0..).zip(hosts).map(|(index, (key, weight))| Filler {
            key,
            index,
            weight: *weight,
            next: xxh64(key.as_bytes()) % size,
            skip: xxh64_seeded(key.as_bytes(), 1) % (size - 1) + 1,
            target: 0.0,
        });
        let mut fillers: Vec<_> = fillers.collect();
        // The table does not depend on the order in which endpoints came.
        fillers.sort_by_key(|filler| filler.key);
        let largest = hosts.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        Self {
            table: fill(&mut fillers, largest, size),
        }
    }

    /// Returns the indices of endpoints, by slot.
    #[must_use]
    pub fn table(&self) -> &[u32] {
        &self.table
    }

    /// Returns the index of the endpoint of a hash. `attempt` is the number of
    /// attempts before, each of which leads to another slot.
    #[must_use]
    pub fn pick(&self, hash: u64, attempt: u32) -> Option<usize> {
        if self.table.is_empty() {
            return None;
        }
        let hash = match attempt {
            0 => hash,
            // All bits but the number of the attempt: ~0 - n + 1.
            attempt => hash ^ (u64::MAX - u64::from(attempt)).wrapping_add(1),
        };
        let slot = hash % self.table.len() as u64;
        #[expect(clippy::cast_possible_truncation, reason = "a slot of the table")]
        let slot = slot as usize;
        Some(self.table[slot] as usize)
    }
}

/// Makes a table of `size` slots. Endpoints take free slots in turn; an
/// endpoint of less weight than `largest` does not take one in every round.
fn fill(fillers: &mut [Filler<'_>], largest: f64, size: u64) -> Vec<u32> {
    #[expect(clippy::cast_possible_truncation, reason = "at most 5 000 011")]
    let mut table = vec![EMPTY; size as usize];
    let mut free_slots = size;
    if fillers.is_empty() {
        return Vec::new();
    }

    let mut round = 0.0;
    while free_slots > 0 {
        round += 1.0;
        for filler in &mut *fillers {
            if free_slots == 0 {
                break;
            }
            if round * filler.weight < filler.target {
                continue;
            }
            filler.target += largest;
            #[expect(clippy::cast_possible_truncation, reason = "a slot of the table")]
            let slot = |next: u64| next as usize;
            while table[slot(filler.next)] != EMPTY {
                filler.next = (filler.next + filler.skip) % size;
            }
            table[slot(filler.next)] = filler.index;
            free_slots -= 1;
        }
    }
    table
}
