//! The items of all units, found by name and by domain. No two contradict each
//! other: no client could see both.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use trunkline_core::facts::Reference;
use trunkline_core::name::Name;
use trunkline_core::params::{ConstraintError, Params};
use trunkline_core::resource::{Resource, TypeUrl};

use super::document::Item;
use super::domains::{Domains, count_domains};
use super::finding::Fault;
use super::slots::{ItemId, SlotItem, Slots};
use super::unit::UnitId;

/// Finds items, and refuses those that contradict another.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) slots: Slots,
    hasher: DefaultHashBuilder,
    /// Every item, by the hash of its type and name.
    names: HashTable<ItemId>,
    domains: Domains,
    /// How many items have an alias.
    aliases: HashMap<Reference, usize>,
    /// How many items refer to a name.
    references: HashMap<Reference, usize>,
}

/// An item that contradicts another.
#[derive(Debug)]
pub(super) struct Contradiction {
    pub(super) item: Item,
    /// The unit of the other one.
    pub(super) other: Option<UnitId>,
    pub(super) fault: Fault,
}

impl Index {
    /// Reserves room for these items, so that the tables do not grow step by
    /// step.
    pub(super) fn reserve(&mut self, items: &[Item]) {
        self.slots.reserve(items.len());
        let Self { slots, hasher, .. } = self;
        self.names
            .reserve(items.len(), |id| hash_item(hasher, slots, *id));
        let domain_count = items
            .iter()
            .map(|item| count_domains(&item.type_url, &item.resource))
            .sum();
        self.domains.reserve(domain_count, slots);
    }

    /// Inserts an item of a unit.
    ///
    /// # Errors
    /// If another item contradicts it. The item comes back in the error.
    pub(super) fn insert(
        &mut self,
        unit: UnitId,
        item: Item,
    ) -> Result<ItemId, Box<Contradiction>> {
        let id = self.slots.add(unit, item);
        let Err((other_id, fault)) = self.insert_keys(id) else {
            return Ok(id);
        };
        let other = self.slots.get(other_id).map(|item| item.unit);
        match self.slots.take(id) {
            Some((_, item)) => Err(Box::new(Contradiction { item, other, fault })),
            // It was added above, so it is always there.
            None => Ok(id),
        }
    }

    /// Inserts the name and the domains of an item, and counts its aliases and
    /// references. If another item contradicts it, nothing is inserted, and the
    /// error has that item with the reason. Of several, it is the one with the
    /// lowest number.
    fn insert_keys(&mut self, id: ItemId) -> Result<(), (ItemId, Fault)> {
        let Some(item) = self.slots.get(id) else {
            return Ok(());
        };

        let hash = hash_name(&self.hasher, item.type_url, &item.resource.name);
        // The order of a hash table changes from run to run, and which of
        // several others is named must not.
        let candidates = self.names.iter_hash(hash).copied();
        let faults = candidates.filter_map(|other| {
            let fault = find_contradiction(item, &self.slots, other)?;
            Some((other, fault))
        });
        if let Some(first) = faults.min_by_key(|(other, _)| *other) {
            return Err(first);
        }
        self.domains.insert(id, &self.slots)?;

        let rehash = |id: &ItemId| hash_item(&self.hasher, &self.slots, *id);
        self.names.insert_unique(hash, id, rehash);
        for alias in aliases_of(item) {
            *self.aliases.entry(alias).or_default() += 1;
        }
        for reference in &item.resource.facts().references {
            increment(&mut self.references, reference);
        }
        Ok(())
    }

    /// Removes an item, and returns it with its unit. Returns `None` if there
    /// is no such item.
    pub(super) fn remove(&mut self, id: ItemId) -> Option<(UnitId, Item)> {
        let item = self.slots.get(id)?;
        let hash = hash_name(&self.hasher, item.type_url, &item.resource.name);
        if let Ok(entry) = self.names.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.domains.remove(id, &self.slots);
        for alias in aliases_of(item) {
            decrement(&mut self.aliases, alias);
        }
        for reference in &item.resource.facts().references {
            decrement(&mut self.references, reference.clone());
        }
        self.slots.take(id)
    }

    /// Returns the variants of the resource with this type and name.
    pub(super) fn variants<'a>(
        &'a self,
        type_url: &'a TypeUrl,
        name: &'a Name,
    ) -> impl Iterator<Item = (ItemId, SlotItem<'a>)> {
        let hash = hash_name(&self.hasher, type_url, name);
        // Other names may have the same hash, and are filtered out.
        let same_hash = self.names.iter_hash(hash);
        let items = same_hash.filter_map(|id| Some((*id, self.slots.get(*id)?)));
        items.filter(move |(_, item)| item.type_url == type_url && item.resource.name == *name)
    }

    /// Returns whether an item has the name of this reference, or an alias of
    /// that name.
    pub(super) fn has_name(&self, reference: &Reference) -> bool {
        let mut variants = self.variants(&reference.type_url, &reference.name);
        variants.next().is_some() || self.aliases.contains_key(reference)
    }

    /// Returns whether an item refers to this name.
    pub(super) fn is_referred_to(&self, target: &Reference) -> bool {
        self.references.contains_key(target)
    }
}

/// Returns the hash under which an item of this type and name is in the table
/// of names.
fn hash_name(hasher: &DefaultHashBuilder, type_url: &TypeUrl, name: &Name) -> u64 {
    hasher.hash_one((type_url, name))
}

/// Returns the hash of an item of the table, for when the table grows: the same
/// as [`hash_name`] of its type and name.
fn hash_item(hasher: &DefaultHashBuilder, slots: &Slots, id: ItemId) -> u64 {
    let item = slots.get(id);
    item.map_or(0, |item| {
        hash_name(hasher, item.type_url, &item.resource.name)
    })
}

/// Returns the aliases of an item, as references to it.
fn aliases_of(item: SlotItem<'_>) -> Vec<Reference> {
    let aliases = item.resource.aliases.iter().map(|alias| Reference {
        type_url: item.type_url.clone(),
        name: alias.clone(),
    });
    aliases.collect()
}

/// Increments a count, and copies the key for the first one only.
fn increment(counts: &mut HashMap<Reference, usize>, key: &Reference) {
    match counts.get_mut(key) {
        Some(count) => *count += 1,
        None => drop(counts.insert(key.clone(), 1)),
    }
}

/// Decrements a count, and removes it at zero. A key that is not counted is
/// ignored.
fn decrement(counts: &mut HashMap<Reference, usize>, key: Reference) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// Returns why an item and another cannot both exist: they have one name, and a
/// client could see both. `None` means that they can, even in two origins.
fn find_contradiction(item: SlotItem<'_>, slots: &Slots, other_id: ItemId) -> Option<Fault> {
    let other = slots.get(other_id)?;
    let (own_resource, other_resource) = (&**item.resource, &**other.resource);
    // Other names may have the same hash.
    if item.type_url != other.type_url || own_resource.name != other_resource.name {
        return None;
    }

    let is_same = own_resource.constraints == other_resource.constraints;
    let witness = if is_same {
        Ok(Params::default())
    } else {
        overlap(own_resource, other_resource).transpose()?
    };

    let (type_url, name) = (item.type_url.clone(), own_resource.name.clone());
    let first = slots.place(other);
    Some(match (find_other_owner(item, other, slots), witness) {
        (Some(origin), _) => Fault::Owned {
            type_url,
            name,
            origin,
            first,
        },
        (None, _) if is_same => Fault::Duplicate {
            type_url,
            name,
            first,
        },
        (None, Ok(witness)) => Fault::Overlap {
            type_url,
            name,
            first,
            clients: Box::new(
                [own_resource, other_resource].map(|resource| resource.clients().to_string()),
            ),
            witness,
        },
        (None, Err(source)) => Fault::Undecided {
            name,
            first,
            source,
        },
    })
}

/// Returns the name of the origin of `other`, unless `item` is of the same.
fn find_other_owner(item: SlotItem<'_>, other: SlotItem<'_>, slots: &Slots) -> Option<Arc<str>> {
    let owner = slots.units.origin_of(other.unit)?;
    let is_other = slots.units.origin_of(item.unit) != Some(owner);
    is_other.then(|| slots.origins.name(owner))
}

/// Returns the parameters of a client that would see both resources; `None` if
/// there is no such client. The error says that it cannot be decided.
pub(super) fn overlap(one: &Resource, other: &Resource) -> Result<Option<Params>, ConstraintError> {
    one.clients().overlap(&other.clients())
}
