//! The numbers of origins. An origin without items has none: writers come and
//! go, and their names must not pile up.

use std::collections::HashMap;
use std::sync::Arc;

use super::place::saturate;
use super::unit::OriginId;

/// An origin that has a number.
#[derive(Debug)]
struct Origin {
    name: Arc<str>,
    /// The number of its items.
    items: usize,
}

/// All origins, by number and by name.
#[derive(Debug, Default)]
pub(super) struct Origins {
    origins: Vec<Option<Origin>>,
    free: Vec<u32>,
    by_name: HashMap<Arc<str>, OriginId>,
    /// Those that were without items at some time since the last
    /// [`Self::forget_empty`].
    emptied: Vec<OriginId>,
}

impl Origins {
    /// Finds the number of an origin; `None` if it has none.
    pub(super) fn find(&self, name: &str) -> Option<OriginId> {
        self.by_name.get(name).copied()
    }

    /// Returns the number of an origin. A new origin gets a free number, which
    /// it keeps at least until the next [`Self::forget_empty`].
    pub(super) fn find_or_add(&mut self, name: &str) -> OriginId {
        self.find(name).unwrap_or_else(|| {
            let name: Arc<str> = name.into();
            let number = self.free.pop().unwrap_or_else(|| {
                self.origins.push(None);
                saturate(self.origins.len() - 1)
            });
            let id = OriginId(number);
            self.by_name.insert(Arc::clone(&name), id);
            self.origins[number as usize] = Some(Origin { name, items: 0 });
            self.emptied.push(id);
            id
        })
    }

    /// Returns the name of an origin; an empty text if no origin has the
    /// number.
    pub(super) fn name(&self, id: OriginId) -> Arc<str> {
        let origin = self.origins.get(id.0 as usize).and_then(Option::as_ref);
        origin.map_or_else(Arc::default, |origin| Arc::clone(&origin.name))
    }

    /// Counts an item of an origin that was added.
    pub(super) fn add_item(&mut self, id: OriginId) {
        if let Some(origin) = self.get_mut(id) {
            origin.items += 1;
        }
    }

    /// Counts the removal of an item of an origin, which was counted by
    /// [`Self::add_item`].
    pub(super) fn remove_item(&mut self, id: OriginId) {
        if let Some(origin) = self.get_mut(id) {
            origin.items -= 1;
            if origin.items == 0 {
                self.emptied.push(id);
            }
        }
    }

    /// Frees the numbers of origins without items, except those that `is_kept`.
    pub(super) fn forget_empty(&mut self, is_kept: impl Fn(OriginId) -> bool) {
        for id in std::mem::take(&mut self.emptied) {
            let is_empty = self.get_mut(id).is_some_and(|origin| origin.items == 0);
            if !is_empty || is_kept(id) {
                continue;
            }
            if let Some(origin) = self.origins[id.0 as usize].take() {
                self.by_name.remove(&origin.name);
                self.free.push(id.0);
            }
        }
    }

    fn get_mut(&mut self, id: OriginId) -> Option<&mut Origin> {
        self.origins.get_mut(id.0 as usize)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_without_items_is_forgotten_and_its_number_used_again() {
        let mut origins = Origins::default();
        for writer in 0..1000 {
            let id = origins.find_or_add(&format!("pod-{writer}"));
            origins.add_item(id);
            origins.forget_empty(|_| false);
            assert_eq!(&*origins.name(id), format!("pod-{writer}"));
            origins.remove_item(id);
            assert_eq!(origins.find(&format!("pod-{writer}")), Some(id));
            origins.forget_empty(|_| false);
            assert_eq!(origins.find(&format!("pod-{writer}")), None);
        }
        assert_eq!(origins.origins.len(), 1);
        assert!(origins.by_name.is_empty());
    }

    #[test]
    fn an_origin_that_is_kept_or_has_items_again_keeps_its_number() {
        let mut origins = Origins::default();
        let (kept, refilled) = (origins.find_or_add("kept"), origins.find_or_add("refilled"));
        origins.add_item(refilled);
        origins.remove_item(refilled);
        origins.add_item(refilled);
        origins.forget_empty(|id| id == kept);
        assert_eq!(origins.find("kept"), Some(kept));
        assert_eq!(origins.find("refilled"), Some(refilled));
    }
}
