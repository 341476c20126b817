//! The documents of an index, by number, so that an item can be identified in
//! few bytes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::document::{Document, Item};
use super::place::number;

/// An item of a document in the index, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) document: u32,
    pub(super) item: u32,
}

/// The item and its document.
pub(super) struct Found<'a, K> {
    pub(super) key: &'a K,
    pub(super) document: &'a Document,
    pub(super) item: &'a Item,
}

/// What a document is known by, such as a path.
pub trait Key: Clone + Eq + Hash {}

impl<K: Clone + Eq + Hash> Key for K {}

/// Gives numbers to documents and to their items.
#[derive(Debug)]
pub(super) struct Slots<K> {
    /// The documents by number; `None` for a number that is free.
    slots: Vec<Option<(K, Arc<Document>)>>,
    free: Vec<u32>,
    numbers: HashMap<K, u32>,
}

impl<K> Default for Slots<K> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<K: Key> Slots<K> {
    /// Gives a document a number, in place of the one that had its key.
    pub(super) fn add(&mut self, key: &K, document: &Arc<Document>) {
        self.remove(key);
        let slot = Some((key.clone(), Arc::clone(document)));
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
        self.numbers.insert(key.clone(), place);
    }

    /// Frees the number of a document.
    pub(super) fn remove(&mut self, key: &K) {
        if let Some(place) = self.numbers.remove(key) {
            self.slots[place as usize] = None;
            self.free.push(place);
        }
    }

    /// Numbers all items of a document; none if the document has no number.
    pub(super) fn all(&self, key: &K) -> impl Iterator<Item = Held> + use<K> {
        let place = self.numbers.get(key).copied();
        let slot = place.and_then(|place| self.slots[place as usize].as_ref());
        let items = slot.map_or(0, |(_, document)| number(document.items.len()));
        let document = place.unwrap_or_default();
        (0..items).map(move |item| Held { document, item })
    }

    /// Returns an item by its number.
    pub(super) fn get(&self, held: Held) -> Option<Found<'_, K>> {
        let (key, document) = self.slots.get(held.document as usize)?.as_ref()?;
        let item = document.items.get(held.item as usize)?;
        Some(Found {
            key,
            document,
            item,
        })
    }
}
