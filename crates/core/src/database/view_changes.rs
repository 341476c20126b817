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
    sorted_indexes: OnceLock<Box<[u32]>>,
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
            sorted_indexes: OnceLock::new(),
            shared_parts: Mutex::default(),
        }
    }

    /// Adds an item for a name whose resource at a client is `old`, and whose
    /// resource in the view is `current`; `None` is no resource. Nothing is
    /// added if both are the same.
    pub(super) fn add_difference(
        &mut self,
        name: &Name,
        old: Option<&Arc<Resource>>,
        current: Option<Arc<Resource>>,
    ) {
        if same_listing(old, current.as_ref()) {
            return;
        }
        // The references and constraints of a resource without a body are not
        // known.
        if let Some(old) = old.filter(|old| old.body.is_some()) {
            self.add_replaced(name, old, current.as_deref());
        }
        self.items.push((name.clone(), current));
    }

    /// Adds the resource that the next item replaces to the replaced referrers
    /// and variants, as far as it is one.
    fn add_replaced(&mut self, name: &Name, old: &Arc<Resource>, current: Option<&Resource>) {
        if drops_reference(old, current) {
            let item_index = self.items.len();
            self.replaced_referrers.push((item_index, Arc::clone(old)));
        }
        if let Some(constraints) = replaced_variant(old, current) {
            self.replaced_variants.push((name.clone(), constraints));
        }
    }

    /// Returns the index of a name among the items; `None` if it did not
    /// change. The first search sorts the items by name.
    #[must_use]
    pub fn find(&self, name: &Name) -> Option<usize> {
        let sorted_indexes = self.sorted_indexes.get_or_init(|| {
            let mut indexes: Box<[u32]> = (0..self.items.len() as u32).collect();
            indexes.sort_by(|left, right| self.name(*left).cmp(self.name(*right)));
            indexes
        });
        let slot = sorted_indexes.binary_search_by(|index| self.name(*index).cmp(name));
        slot.ok().map(|slot| sorted_indexes[slot] as usize)
    }

    /// Returns the upserts of a range of items, sorted by name. Removals are
    /// left out. The list is made once for all streams that send this very
    /// range.
    #[must_use]
    pub fn resources_of(&self, range: &Range<usize>) -> Arc<SharedList> {
        let lock_result = self.shared_parts.lock();
        let mut parts = lock_result.unwrap_or_else(PoisonError::into_inner);
        if let Some((_, list)) = parts.iter().find(|(part_range, _)| part_range == range) {
            return Arc::clone(list);
        }

        let items = self.items[range.clone()].iter();
        let mut upserts: Vec<_> = items.filter_map(|(_, resource)| resource.clone()).collect();
        upserts.sort_by(|left, right| left.name.cmp(&right.name));

        let resources = upserts.into_iter().map(WireResource::full);
        let list = Arc::new(SharedList::new(resources.collect()));
        parts.push((range.clone(), Arc::clone(&list)));
        list
    }

    /// Returns the name of an item.
    fn name(&self, index: u32) -> &Name {
        &self.items[index as usize].0
    }
}

/// Returns whether a resource refers to something that its replacement does not
/// refer to. `current` is `None` for a resource that is removed.
fn drops_reference(old: &Resource, current: Option<&Resource>) -> bool {
    let current_references = current.map_or(&[][..], |current| &current.facts().references);
    let mut references = old.facts().references.iter();
    references.any(|reference| !current_references.contains(reference))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Facts, Reference};
    use crate::resource_list::ResourceList;

    fn resource(name: &str, references: &[&str]) -> Arc<Resource> {
        let reference = |name: &&str| Reference {
            type_url: "u".into(),
            name: Name::new(name),
        };
        let facts = Facts {
            references: references.iter().map(reference).collect(),
            ..Facts::default()
        };
        Arc::new(Resource {
            facts: Some(Box::new(facts)),
            ..Resource::new(name.into(), references.concat().into())
        })
    }

    #[test]
    fn s73_a_replaced_resource_is_kept_if_a_reference_of_it_is_dropped() {
        let mut changes = ViewChanges::new(1, 2);
        let (one, both) = (resource("a", &["x"]), resource("a", &["x", "y"]));
        changes.add_difference(&"gained".into(), Some(&one), Some(Arc::clone(&both)));
        changes.add_difference(&"same".into(), Some(&one), Some(Arc::clone(&one)));
        changes.add_difference(&"never".into(), None, None);
        changes.add_difference(&"lost".into(), Some(&both), Some(Arc::clone(&one)));
        changes.add_difference(&"new".into(), None, Some(Arc::clone(&one)));
        changes.add_difference(&"removed".into(), Some(&one), None);
        changes.add_difference(&"plain".into(), Some(&resource("a", &[])), None);
        let names: Vec<_> = changes
            .items
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["gained", "lost", "new", "removed", "plain"]);
        assert_eq!(changes.replaced_referrers, [(1, both), (3, one)]);
        assert_eq!(changes.replaced_variants, []);
        assert_eq!(changes.find(&"removed".into()), Some(3));
        assert_eq!(changes.find(&"same".into()), None);
    }

    #[test]
    fn tp2_a_replaced_variant_is_told_if_its_constraints_are_known() {
        let mut changes = ViewChanges::new(1, 2);
        let variant = |body: Option<&'static str>| {
            Arc::new(Resource {
                constraints: Some("env=a".parse().unwrap()),
                body: body.map(Into::into),
                ..Resource::new("a".into(), "x".into())
            })
        };
        changes.add_difference(&"a".into(), Some(&variant(None)), None);
        assert_eq!(changes.replaced_variants, []);
        let held = variant(Some("x"));
        changes.add_difference(&"b".into(), Some(&held), None);
        let expected = (Name::new("b"), held.constraints.clone());
        assert_eq!(changes.replaced_variants, [expected]);
        assert_eq!(changes.items.len(), 2);
    }

    #[test]
    fn streams_that_send_the_same_range_share_its_upserts() {
        let mut changes = ViewChanges::new(1, 2);
        for name in ["c", "a", "b"] {
            changes.add_difference(&name.into(), None, Some(resource(name, &[])));
        }
        changes.add_difference(&"d".into(), Some(&resource("d", &[])), None);
        let all = changes.resources_of(&(0..4));
        let list = ResourceList::Shared(Arc::clone(&all));
        let names: Vec<_> = list.iter().map(|r| r.resource.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(Arc::ptr_eq(&all, &changes.resources_of(&(0..4))));
        let part = ResourceList::Shared(changes.resources_of(&(1..2)));
        assert_eq!(part.len(), 1);
    }
}
