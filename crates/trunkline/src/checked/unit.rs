//! Units: what is written as one, and so is replaced and rejected as one.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::TypeUrl;

use super::place::saturate;
use super::slots::ItemId;

/// The key of a unit within its origin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum UnitKey {
    /// A file.
    File {
        /// The position of the configured path that it was found below.
        root: usize,
        /// Its path, as findings show it.
        name: Arc<str>,
    },
    /// A resource.
    Resource(ResourceKey),
}

/// The key of a resource as its author wrote it: with all variants that its
/// conditions make, and with the virtual hosts that are written in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ResourceKey {
    pub(super) type_url: TypeUrl,
    pub(super) name: Name,
    /// The constraints in its wrapper; `None` if it is the whole of its name.
    pub(super) constraints: Option<Constraints>,
}

/// The number of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OriginId(pub(super) u32);

/// The number of a unit. Resources that are written alone, of which there may
/// be a million, have no unit of their own: they share one number for each
/// origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UnitId(u32);

/// The bit of a number that is not one of a unit.
const ALONE: u32 = 1 << 31;

impl UnitId {
    /// Returns the number of resources of an origin that are written alone.
    pub(super) fn alone(origin: OriginId) -> Self {
        Self(ALONE | origin.0)
    }

    /// Returns the origin of resources that are written alone; `None` for the
    /// number of a unit.
    fn origin_if_alone(self) -> Option<OriginId> {
        (self.0 & ALONE != 0).then_some(OriginId(self.0 & !ALONE))
    }
}

/// One unit.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) origin: OriginId,
    pub(super) key: UnitKey,
    /// Its items. An item knows its position here.
    pub(super) items: Vec<ItemId>,
}

/// All units, by number and by key.
#[derive(Debug, Default)]
pub(super) struct Units {
    units: Vec<Option<Unit>>,
    free: Vec<u32>,
    hasher: DefaultHashBuilder,
    by_key: HashTable<UnitId>,
}

impl Units {
    /// Finds a unit by its key.
    pub(super) fn find(&self, origin: OriginId, key: &UnitKey) -> Option<UnitId> {
        let hash = self.hasher.hash_one((origin, key));
        let has_key = |id: &UnitId| {
            let unit = self.get(*id);
            unit.is_some_and(|unit| unit.origin == origin && unit.key == *key)
        };
        self.by_key.find(hash, has_key).copied()
    }

    /// Finds a unit by its key, or adds an empty one. [`Self::remove_if_empty`]
    /// removes one that stays empty.
    pub(super) fn find_or_add(&mut self, origin: OriginId, key: UnitKey) -> UnitId {
        self.find(origin, &key).unwrap_or_else(|| {
            let hash = self.hasher.hash_one((origin, &key));
            let id = self.add(Unit {
                origin,
                key,
                items: Vec::new(),
            });
            let (units, hasher) = (&self.units, &self.hasher);
            self.by_key.insert_unique(hash, id, |id| {
                let unit = units[id.0 as usize].as_ref();
                unit.map_or(0, |unit| hasher.hash_one((unit.origin, &unit.key)))
            });
            id
        })
    }

    /// Adds a unit under a free number. The caller inserts the number by its
    /// key.
    fn add(&mut self, unit: Unit) -> UnitId {
        match self.free.pop() {
            Some(number) => {
                self.units[number as usize] = Some(unit);
                UnitId(number)
            }
            None => {
                let number = saturate(self.units.len());
                self.units.push(Some(unit));
                UnitId(number)
            }
        }
    }

    /// Removes a unit without items; keeps one that has some.
    pub(super) fn remove_if_empty(&mut self, id: UnitId) {
        let Some(unit) = self.get(id).filter(|unit| unit.items.is_empty()) else {
            return;
        };
        let hash = self.hasher.hash_one((unit.origin, &unit.key));
        if let Ok(entry) = self.by_key.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.units[id.0 as usize] = None;
        self.free.push(id.0);
    }

    /// Returns the origin of a unit, or of resources that are written alone;
    /// `None` if there is no such unit.
    pub(super) fn origin_of(&self, id: UnitId) -> Option<OriginId> {
        let alone = id.origin_if_alone();
        alone.or_else(|| self.get(id).map(|unit| unit.origin))
    }

    /// Returns a unit by its number.
    pub(super) fn get(&self, id: UnitId) -> Option<&Unit> {
        self.units.get(id.0 as usize)?.as_ref()
    }

    /// Returns a unit by its number, to be changed.
    pub(super) fn get_mut(&mut self, id: UnitId) -> Option<&mut Unit> {
        self.units.get_mut(id.0 as usize)?.as_mut()
    }

    /// Returns the numbers of all files.
    pub(super) fn files(&self) -> impl Iterator<Item = UnitId> {
        let units = self.units.iter().zip(0..);
        let is_file = |unit: &Unit| matches!(unit.key, UnitKey::File { .. });
        let files = units.filter(move |(unit, _)| unit.as_ref().is_some_and(is_file));
        files.map(|(_, number)| UnitId(number))
    }
}
