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

/// What changed between two positions of a view: made once, shared by every
/// stream that makes the same advance.
#[derive(Debug)]
pub struct ViewChanges {
    /// The position it starts from.
    pub from: Position,
    /// The position it leads to.
    pub to: Position,
    /// What is new, in the order of the log; `None` is removed.
    pub items: Vec<Item>,
    /// What was held before in the place of an item, where that refers to
    /// something that the item does not: it stays in use for a while (S73).
    pub replaced_referrers: Vec<(usize, Arc<Resource>)>,
    /// Variants that are replaced by others, or removed (TP2).
    pub replaced_variants: Vec<(Name, Option<Constraints>)>,
    /// The items by name; made when somebody looks for one.
    by_name: OnceLock<Box<[u32]>>,
    /// Ranges of the items as responses; streams with the same limits send the
    /// same ranges.
    shared_parts: Mutex<Vec<(Range<usize>, Arc<SharedList>)>>,
}

impl ViewChanges {
    /// Nothing between two positions.
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

    /// Adds a name that a client holds as `held`, if that is not `current`.
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

    /// Where a name stands among the items.
    #[must_use]
    pub fn find(&self, name: &Name) -> Option<usize> {
        let by_name = self.by_name.get_or_init(|| {
            let mut places: Box<[u32]> = (0..self.items.len() as u32).collect();
            places.sort_by(|a, b| self.name(*a).cmp(self.name(*b)));
            places
        });
        let found = by_name.binary_search_by(|place| self.name(*place).cmp(name));
        found.ok().map(|found| by_name[found] as usize)
    }

    /// The resources of a range of items, by name, made once for all streams
    /// that are sent just that.
    #[must_use]
    pub fn resources_of(&self, range: &Range<usize>) -> Arc<SharedList> {
        let parts = self.shared_parts.lock();
        let mut parts = parts.unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shared)) = parts.iter().find(|(other, _)| other == range) {
            return Arc::clone(shared);
        }
        let items = self.items[range.clone()].iter();
        let mut new: Vec<Arc<Resource>> = items.filter_map(|(_, item)| item.clone()).collect();
        new.sort_by(|a, b| a.name.cmp(&b.name));
        let new = new.into_iter().map(WireResource::full).collect();
        let shared = Arc::new(SharedList::new(new));
        parts.push((range.clone(), Arc::clone(&shared)));
        shared
    }

    fn name(&self, place: u32) -> &Name {
        &self.items[place as usize].0
    }
}

/// Whether a resource refers to something that its successor does not refer to.
fn drops_reference(held: &Resource, current: Option<&Resource>) -> bool {
    let kept = current.map_or(&[][..], |current| &current.facts().references);
    let mut references = held.facts().references.iter();
    references.any(|reference| !kept.contains(reference))
}
