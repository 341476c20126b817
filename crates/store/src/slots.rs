//! The files of an index, by number, so that an item can be identified in few
//! bytes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::file::FileId;
use crate::item::{Item, Parsed, number};

/// An item of a file in the index, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) file: u32,
    pub(crate) item: u32,
}

/// The item and its file.
pub(crate) struct Found<'a> {
    pub(crate) file: &'a FileId,
    pub(crate) parsed: &'a Parsed,
    pub(crate) item: &'a Item,
}

/// Gives numbers to files and to their items.
#[derive(Default)]
pub(crate) struct Slots {
    /// The files by number; `None` for a number that is free.
    slots: Vec<Option<(FileId, Arc<Parsed>)>>,
    free: Vec<u32>,
    numbers: HashMap<FileId, u32>,
}

impl Slots {
    /// Gives a file a number, or new contents.
    pub(crate) fn add(&mut self, file: &FileId, parsed: &Arc<Parsed>) {
        self.remove(file);
        let slot = Some((FileId::clone(file), Arc::clone(parsed)));
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                number(self.slots.len() - 1)
            }
        };
        self.numbers.insert(FileId::clone(file), place);
    }

    /// Frees the number of a file.
    pub(crate) fn remove(&mut self, file: &FileId) {
        if let Some(place) = self.numbers.remove(file) {
            self.slots[place as usize] = None;
            self.free.push(place);
        }
    }

    /// Numbers all items of a file; none if the file has no number.
    pub(crate) fn all(&self, file: &FileId) -> impl Iterator<Item = Held> + use<> {
        let place = self.numbers.get(file).copied();
        let slot = place.and_then(|place| self.slots[place as usize].as_ref());
        let items = slot.map_or(0, |(_, parsed)| number(parsed.items.len()));
        let file = place.unwrap_or_default();
        (0..items).map(move |item| Held { file, item })
    }

    pub(crate) fn get(&self, held: Held) -> Option<Found<'_>> {
        let (file, parsed) = self.slots.get(held.file as usize)?.as_ref()?;
        let item = parsed.items.get(held.item as usize)?;
        Some(Found { file, parsed, item })
    }
}
