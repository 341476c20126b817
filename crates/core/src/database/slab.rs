//! Numbered slots that are reused when they are free.
//!
//! Slots are in chunks: growing moves nothing and leaves at most one chunk
//! unused, while a vector would copy everything and leave up to half unused.

/// Slots per chunk. The first chunk grows as it is filled, since most slabs are
/// small.
const CHUNK: usize = 512;

/// Values by slot. Every free slot is in `free`, once.
#[derive(Debug)]
pub(super) struct Slab<T> {
    chunks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    /// Makes a slab without slots, which takes no memory.
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Puts a value into a free slot, or else into a new one at the end.
    /// Returns the slot.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.chunks[chunk_index(slot)][index_in_chunk(slot)] = Some(value);
            return slot;
        }

        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        let last_index = self.chunks.len() - 1;
        let last = &mut self.chunks[last_index];
        last.push(Some(value));

        // Memory runs out long before the numbers do.
        (last_index * CHUNK + last.len() - 1) as u32
    }

    /// Takes a value out and frees its slot; `None` if the slot is free.
    /// Removing the last value frees the memory.
    pub(super) fn remove(&mut self, slot: u32) -> Option<T> {
        let value = self.chunks.get_mut(chunk_index(slot))?[index_in_chunk(slot)].take()?;
        self.free.push(slot);
        if self.len() == 0 {
            *self = Self::default();
        }
        Some(value)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        let chunk = self.chunks.get(chunk_index(slot))?;
        chunk.get(index_in_chunk(slot))?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(chunk_index(slot))?;
        chunk.get_mut(index_in_chunk(slot))?.as_mut()
    }

    /// All values, by slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let all = self.chunks.iter().flatten().enumerate();
        all.filter_map(|(slot, value)| Some((slot as u32, value.as_ref()?)))
    }

    /// All values, by slot.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let all = self.chunks.iter_mut().flatten().enumerate();
        all.filter_map(|(slot, value)| Some((slot as u32, value.as_mut()?)))
    }

    /// The number of slots, free ones included.
    pub(super) fn slots(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        full + self.chunks.last().map_or(0, Vec::len)
    }

    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.slots() - self.free.len()
    }
}

fn chunk_index(slot: u32) -> usize {
    slot as usize / CHUNK
}

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
        assert_eq!((places.chunks.capacity(), places.free.capacity()), (0, 0));
        assert_eq!(places.insert(0), 0);
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
