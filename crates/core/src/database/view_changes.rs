//! The difference between two states of a view, made once and shared.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::cursor::{replaced_variant, same_listing};
use super::view::Position;
use crate::message::WireResource;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::Resource;
use crate::resource_list::SharedList;

/// A name, and its resource; `None` if it is removed.
pub type Item = (Name, Option<Arc<Resource>>);

/// The advance from one position of a view to another: made once, and shared by
/// every stream that makes it.
#[derive(Debug)]
pub struct ViewChanges {
    /// The position from which the advance starts.
    pub from: Position,
    /// The position to which the advance leads.
    pub to: Position,
    /// The names that changed, in the order of the log.
    pub items: Vec<Item>,
    /// The replaced resource of an item, by the item's index, if it refers to
    /// something that the item does not: that stays in use for a while (S73).
    pub replaced_referrers: Vec<(usize, Arc<Resource>)>,
    /// Variants that are replaced by others, or removed (TP2).
    pub replaced_variants: Vec<(Name, Option<Constraints>)>,
    /// The indexes of the items, sorted by name; made with the first search.
    by_name: OnceLock<Box<[u32]>>,
    /// Ranges of the items as responses; streams with the same limits send the
    /// same ranges.
    shared_parts: Mutex<Vec<(Range<usize>, Arc<SharedList>)>>,
}

impl ViewChanges {
    /// Makes an advance between two positions without items.
    pub(super) fn new(from: Position, to: Position) -> Self {
        Self {
            from,
            to,
            items: Vec::new(),
            replaced_referrers: Vec::new(),
            replaced_variants: Vec::new(),
            by_name: OnceLock::new(),
            shared_parts: Mutex::default(),
        }
    }

    /// Adds an item for a name under which a client holds `held`, unless
    /// `current` is the same resource; `None` is no resource.
    pub(super) fn add(
        &mut self,
        name: &Name,
        held: Option<&Arc<Resource>>,
        current: Option<Arc<Resource>>,
    ) {
        if same_listing(held, current.as_ref()) {
            return;
        }
        // The constraints of a resource without a body are not known.
        if let Some(held) = held.filter(|held| held.body.is_some()) {
            if drops_reference(held, current.as_deref()) {
                let referrer = (self.items.len(), Arc::clone(held));
                self.replaced_referrers.push(referrer);
            }
            let replaced = replaced_variant(held, current.as_deref());
            let replaced = replaced.map(|old| (name.clone(), old));
            self.replaced_variants.extend(replaced);
        }
        self.items.push((name.clone(), current));
    }

    /// Returns the index of a name among the items.
    #[must_use]
    pub fn find(&self, name: &Name) -> Option<usize> {
        let by_name = self.by_name.get_or_init(|| {
            let mut indexes: Box<[u32]> = (0..self.items.len() as u32).collect();
            indexes.sort_by(|a, b| self.name(*a).cmp(self.name(*b)));
            indexes
        });
        let found = by_name.binary_search_by(|index| self.name(*index).cmp(name));
        found.ok().map(|found| by_name[found] as usize)
    }

    /// Returns the upserts of a range of items, by name. The list is made once
    /// for all streams that send this very range.
    #[must_use]
    pub fn resources_of(&self, range: &Range<usize>) -> Arc<SharedList> {
        let parts = self.shared_parts.lock();
        let mut parts = parts.unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shared)) = parts.iter().find(|(other, _)| other == range) {
            return Arc::clone(shared);
        }
        let items = self.items[range.clone()].iter();
        let mut upserts: Vec<Arc<Resource>> = items.filter_map(|(_, item)| item.clone()).collect();
        upserts.sort_by(|a, b| a.name.cmp(&b.name));
        let upserts = upserts.into_iter().map(WireResource::full).collect();
        let shared = Arc::new(SharedList::new(upserts));
        parts.push((range.clone(), Arc::clone(&shared)));
        shared
    }

    fn name(&self, index: u32) -> &Name {
        &self.items[index as usize].0
    }
}

/// Whether a resource refers to something that its successor does not refer to.
fn drops_reference(held: &Resource, current: Option<&Resource>) -> bool {
    let kept = current.map_or(&[][..], |current| &current.facts().references);
    let mut references = held.facts().references.iter();
    references.any(|reference| !kept.contains(reference))
}
