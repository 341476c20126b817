//! Numbered slots that are reused when they are free.
//!
//! Slots are in chunks: growing moves nothing and leaves at most one chunk
//! unused, while a vector would copy everything and leave up to half unused. A
//! chunk without values takes no memory, so a client that leaves with a million
//! names gives theirs back.

use std::collections::BTreeSet;

/// Slots per chunk. The first chunk grows as it is filled, since most slabs are
/// small.
const CHUNK: usize = 512;

/// Values by slot.
#[derive(Debug)]
pub(super) struct Slab<T> {
    /// The last one is not empty.
    chunks: Vec<Chunk<T>>,
    /// The chunks that have room.
    chunks_with_room: BTreeSet<u32>,
    len: usize,
}

/// Some slots. Every free slot is in `free_slots`, once. Slots beyond those
/// that were used are free as well.
#[derive(Debug)]
struct Chunk<T> {
    slots: Vec<Option<T>>,
    free_slots: Vec<u16>,
}

impl<T> Default for Slab<T> {
    /// Makes a slab without slots, which takes no memory.
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            chunks_with_room: BTreeSet::new(),
            len: 0,
        }
    }
}

impl<T> Default for Chunk<T> {
    /// Makes a chunk without slots, which takes no memory.
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free_slots: Vec::new(),
        }
    }
}

impl<T> Chunk<T> {
    /// Puts a value into a free slot, which there is. Returns the slot.
    fn insert(&mut self, value: T) -> usize {
        if let Some(slot) = self.free_slots.pop() {
            self.slots[usize::from(slot)] = Some(value);
            return usize::from(slot);
        }
        self.slots.push(Some(value));
        self.slots.len() - 1
    }

    /// Returns whether another value fits.
    fn has_room(&self) -> bool {
        !self.free_slots.is_empty() || self.slots.len() < CHUNK
    }

    /// Returns whether no slot has a value.
    fn is_empty(&self) -> bool {
        self.free_slots.len() == self.slots.len()
    }
}

impl<T> Slab<T> {
    /// Puts a value into a free slot of the first chunk that has one, or else
    /// into a new chunk. Returns the slot.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let index = self.chunks_with_room.first().copied().unwrap_or_else(|| {
            let new_index = self.chunks.len() as u32;
            self.chunks.push(Chunk::default());
            self.chunks_with_room.insert(new_index);
            new_index
        });
        let chunk = &mut self.chunks[index as usize];
        if index > 0 && chunk.slots.is_empty() {
            chunk.slots.reserve_exact(CHUNK);
        }

        let slot = chunk.insert(value);
        if !chunk.has_room() {
            self.chunks_with_room.remove(&index);
        }
        self.len += 1;

        // Memory runs out long before the numbers do.
        number(index as usize, slot)
    }

    /// Takes a value out and frees its slot; `None` if the slot is free.
    /// Removing the last value of a chunk frees the memory of the chunk.
    pub(super) fn remove(&mut self, slot: u32) -> Option<T> {
        let chunk = self.chunks.get_mut(chunk_index(slot))?;
        let value = chunk.slots.get_mut(index_in_chunk(slot))?.take()?;
        chunk.free_slots.push(index_in_chunk(slot) as u16);
        self.chunks_with_room.insert(chunk_index(slot) as u32);
        if chunk.is_empty() {
            *chunk = Chunk::default();
        }
        self.len -= 1;

        while self.chunks.last().is_some_and(Chunk::is_empty) {
            self.chunks.pop();
            self.chunks_with_room.remove(&(self.chunks.len() as u32));
        }
        if self.chunks.len() < self.chunks.capacity() / 4 {
            self.chunks.shrink_to_fit();
        }
        Some(value)
    }

    /// Returns the value in a slot; `None` if the slot is free.
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        let chunk = self.chunks.get(chunk_index(slot))?;
        chunk.slots.get(index_in_chunk(slot))?.as_ref()
    }

    /// Returns the value in a slot, to be changed; `None` if the slot is free.
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(chunk_index(slot))?;
        chunk.slots.get_mut(index_in_chunk(slot))?.as_mut()
    }

    /// Returns all values, by slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let chunks = self.chunks.iter().enumerate();
        chunks.flat_map(|(index, chunk)| {
            let slots = chunk.slots.iter().enumerate();
            slots.filter_map(move |(slot, value)| Some((number(index, slot), value.as_ref()?)))
        })
    }

    /// Returns all values, by slot, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let chunks = self.chunks.iter_mut().enumerate();
        chunks.flat_map(|(index, chunk)| {
            let slots = chunk.slots.iter_mut().enumerate();
            slots.filter_map(move |(slot, value)| Some((number(index, slot), value.as_mut()?)))
        })
    }

    /// Returns the number of slots up to the last that is used, free ones
    /// included.
    pub(super) fn slots(&self) -> usize {
        let full_slots = self.chunks.len().saturating_sub(1) * CHUNK;
        full_slots + self.chunks.last().map_or(0, |last| last.slots.len())
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// Returns the number of a slot by its chunk and its index there.
fn number(chunk: usize, slot: usize) -> u32 {
    (chunk * CHUNK + slot) as u32
}

/// Returns the index of the chunk that has a slot.
fn chunk_index(slot: u32) -> usize {
    slot as usize / CHUNK
}

/// Returns the index of a slot in its chunk.
fn index_in_chunk(slot: u32) -> usize {
    slot as usize % CHUNK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_free_ones_are_reused() {
        let mut places = Slab::default();
        let count = 2 * CHUNK as u32 + 1;
        for n in 0..count {
            assert_eq!(places.insert(n), n);
        }
        assert_eq!(places.remove(7), Some(7));
        assert_eq!(places.remove(7), None);
        assert_eq!(places.get(7), None);
        assert_eq!(places.get_mut(7), None);
        assert_eq!(places.len(), count as usize - 1);
        assert_eq!(places.insert(70), 7);
        assert_eq!(places.insert(count), count);
        *places.get_mut(CHUNK as u32).unwrap() = 5;
        assert_eq!(places.get(CHUNK as u32), Some(&5));
        assert_eq!(places.get(count + 1), None);
        assert_eq!(places.remove(9 * CHUNK as u32), None);
    }

    #[test]
    fn the_last_one_gives_the_memory_back() {
        let mut places = Slab::default();
        for n in 0..=CHUNK as u32 {
            places.insert(n);
        }
        (0..=CHUNK as u32).for_each(|n| _ = places.remove(n));
        assert_eq!(
            (places.chunks.capacity(), places.chunks_with_room.len()),
            (0, 0)
        );
        assert_eq!(places.insert(0), 0);
    }

    #[test]
    fn a_chunk_without_values_takes_no_memory_and_its_slots_are_used_again() {
        let mut places = Slab::default();
        let count = 4 * CHUNK as u32;
        for n in 0..count {
            places.insert(n);
        }
        let first_of = |chunk: u32| chunk * CHUNK as u32;
        (first_of(1)..first_of(3)).for_each(|n| _ = places.remove(n));
        let taken = places.chunks.iter().map(|chunk| chunk.slots.capacity());
        assert_eq!(taken.filter(|taken| *taken == 0).count(), 2);
        assert_eq!(places.get(first_of(1)), None);
        assert_eq!(places.len(), 2 * CHUNK);
        assert_eq!(places.iter().count(), places.len());
        assert_eq!(places.insert(7), first_of(1));
        assert_eq!(places.slots(), count as usize);
        (first_of(1)..count).for_each(|n| _ = places.remove(n));
        assert_eq!((places.chunks.len(), places.slots()), (1, CHUNK));
    }

    #[test]
    fn all_are_visited_in_order() {
        let mut places = Slab::default();
        for n in 0..CHUNK as u32 + 3 {
            places.insert(n);
        }
        places.remove(1);
        for (_, value) in places.iter_mut() {
            *value += 1;
        }
        let all: Vec<_> = places.iter().map(|(slot, value)| (slot, *value)).collect();
        assert_eq!(all.len(), places.len());
        assert_eq!(all[..2], [(0, 1), (2, 3)]);
        assert!(all.iter().all(|(slot, value)| slot + 1 == *value));
    }
}
