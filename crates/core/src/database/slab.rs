//! Numbered places that are reused when they are free.
//!
//! Kept in chunks: growing moves nothing and leaves at most one chunk unused,
//! where one vector would copy everything and leave up to half.

/// Things per chunk. The first grows as it is filled, for most are small.
const CHUNK: usize = 512;

/// Things by number. Every free place is in `free`, once.
#[derive(Debug)]
pub(super) struct Slab<T> {
    chunks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Puts a thing in a free place.
    pub(super) fn insert(&mut self, thing: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.chunks[chunk(place)][within(place)] = Some(thing);
            return place;
        }
        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        let full = (self.chunks.len() - 1) * CHUNK;
        let last = &mut self.chunks[full / CHUNK];
        last.push(Some(thing));
        // Memory ends long before the numbers do.
        (full + last.len() - 1) as u32
    }

    /// Takes the thing out and frees its place. The last one gives the memory back.
    pub(super) fn remove(&mut self, place: u32) -> Option<T> {
        let thing = self.chunks.get_mut(chunk(place))?[within(place)].take()?;
        self.free.push(place);
        if self.len() == 0 {
            *self = Self::default();
        }
        Some(thing)
    }

    pub(super) fn get(&self, place: u32) -> Option<&T> {
        self.chunks.get(chunk(place))?.get(within(place))?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(chunk(place))?;
        chunk.get_mut(within(place))?.as_mut()
    }

    /// Everything, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let all = self.chunks.iter().flatten().enumerate();
        all.filter_map(|(place, thing)| Some((place as u32, thing.as_ref()?)))
    }

    /// Everything, by number.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let all = self.chunks.iter_mut().flatten().enumerate();
        all.filter_map(|(place, thing)| Some((place as u32, thing.as_mut()?)))
    }

    /// How many places there are, free ones included.
    pub(super) fn slots(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        full + self.chunks.last().map_or(0, Vec::len)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.slots() - self.free.len()
    }
}

fn chunk(place: u32) -> usize {
    place as usize / CHUNK
}

fn within(place: u32) -> usize {
    place as usize % CHUNK
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
        for (_, thing) in places.iter_mut() {
            *thing += 1;
        }
        let all: Vec<_> = places
            .iter()
            .map(|(place, thing)| (place, *thing))
            .collect();
        assert_eq!(all.len(), places.len());
        assert_eq!(all[..2], [(0, 1), (2, 3)]);
        assert!(all.iter().all(|(place, thing)| place + 1 == *thing));
    }
}
