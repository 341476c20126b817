//! The documents of an index, by number, so that an item can be identified in
//! few bytes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::document::{Document, Item};
use super::place::saturate;

/// An item of a document in the index, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemId {
    pub(super) document: u32,
    pub(super) item: u32,
}

/// An item of the index, with its document and the document's key.
pub(super) struct IndexedItem<'a, K> {
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
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                saturate(self.slots.len() - 1)
            }
        };
        self.numbers.insert(key.clone(), number);
    }

    /// Frees the number of a document, if it has one, for the next document.
    pub(super) fn remove(&mut self, key: &K) {
        if let Some(number) = self.numbers.remove(key) {
            self.slots[number as usize] = None;
            self.free.push(number);
        }
    }

    /// Returns the ids of all items of a document; none if no document has the
    /// key.
    pub(super) fn item_ids(&self, key: &K) -> impl Iterator<Item = ItemId> + use<K> {
        let number = self.numbers.get(key).copied();
        let slot = number.and_then(|number| self.slots[number as usize].as_ref());
        let items = slot.map_or(0, |(_, document)| saturate(document.items.len()));
        let document = number.unwrap_or_default();
        (0..items).map(move |item| ItemId { document, item })
    }

    /// Returns an item by its id; `None` if its document is not in the index.
    pub(super) fn get(&self, id: ItemId) -> Option<IndexedItem<'_, K>> {
        let (key, document) = self.slots.get(id.document as usize)?.as_ref()?;
        let item = document.items.get(id.item as usize)?;
        Some(IndexedItem {
            key,
            document,
            item,
        })
    }
}
