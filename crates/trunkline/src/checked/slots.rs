//! The items of all units, by number, so that an item can be identified in few
//! bytes: there may be a million.

use std::sync::Arc;

use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};

use super::document::Item;
use super::finding::{Fault, Finding};
use super::origins::Origins;
use super::place::{At, Place, saturate};
use super::unit::{Unit, UnitId, UnitKey, Units};

/// The number of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ItemId(u32);

/// An item, as little of it as its unit does not know.
#[derive(Debug)]
struct Slot {
    resource: Arc<Resource>,
    at: At,
    unit: UnitId,
    /// Its position among the items of its unit.
    position: u32,
    type_index: u32,
}

/// An item in its slot.
#[derive(Clone, Copy)]
pub(super) struct SlotItem<'a> {
    pub(super) type_url: &'a TypeUrl,
    pub(super) resource: &'a Arc<Resource>,
    pub(super) at: &'a At,
    pub(super) unit: UnitId,
}

/// Gives numbers to items, and knows their units.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// Types, and the number of items of each.
    types: Vec<(TypeUrl, usize)>,
    pub(super) units: Units,
    pub(super) origins: Origins,
}

impl Slots {
    /// Reserves room for `count` more items.
    pub(super) fn reserve(&mut self, count: usize) {
        let more = count.saturating_sub(self.free.len());
        self.slots.reserve(more);
    }

    /// Puts an item into a free slot, as the last item of its unit. Counts it
    /// for its type and its origin.
    pub(super) fn add(&mut self, unit_id: UnitId, item: Item) -> ItemId {
        let type_index = self.count_type(item.type_url);
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            saturate(self.slots.len() - 1)
        });
        let id = ItemId(number);
        if let Some(origin) = self.units.origin_of(unit_id) {
            self.origins.add_item(origin);
        }

        let mut position = 0;
        if let Some(unit) = self.units.get_mut(unit_id) {
            position = saturate(unit.items.len());
            unit.items.push(id);
        }

        self.slots[number as usize] = Some(Slot {
            resource: item.resource,
            at: item.at,
            unit: unit_id,
            position,
            type_index,
        });
        id
    }

    /// Takes an item out of its slot, and returns it with its unit. Returns
    /// `None` if the slot is empty. The last item of the unit takes its
    /// position in the unit.
    pub(super) fn take(&mut self, id: ItemId) -> Option<(UnitId, Item)> {
        let slot = self.slots.get_mut(id.0 as usize)?.take()?;
        self.free.push(id.0);
        if let Some(origin) = self.units.origin_of(slot.unit) {
            self.origins.remove_item(origin);
        }
        let (type_url, count) = &mut self.types[slot.type_index as usize];
        *count -= 1;
        let type_url = type_url.clone();

        let mut item = Item {
            type_url,
            wrapper_constraints: slot.resource.constraints.clone(),
            is_inline_host: false,
            resource: slot.resource,
            at: slot.at,
        };
        if let Some(unit) = self.units.get_mut(slot.unit) {
            unit.items.swap_remove(slot.position as usize);
            let moved = unit.items.get(slot.position as usize).copied();
            (item.wrapper_constraints, item.is_inline_host) = unit.written_as(&item.type_url);
            if let Some(moved) = moved.and_then(|id| self.slots[id.0 as usize].as_mut()) {
                moved.position = slot.position;
            }
        }
        Some((slot.unit, item))
    }

    /// Counts one more item of a type, and returns the index of the type. A new
    /// type gets a new index.
    fn count_type(&mut self, type_url: TypeUrl) -> u32 {
        let position = self.types.iter().position(|(known, _)| *known == type_url);
        let index = position.unwrap_or_else(|| {
            self.types.push((type_url, 0));
            self.types.len() - 1
        });
        self.types[index].1 += 1;
        saturate(index)
    }

    /// Returns an item by its number; `None` if the slot is empty.
    pub(super) fn get(&self, id: ItemId) -> Option<SlotItem<'_>> {
        let slot = self.slots.get(id.0 as usize)?.as_ref()?;
        Some(self.item_in(slot))
    }

    /// Returns the item in a slot.
    fn item_in<'a>(&'a self, slot: &'a Slot) -> SlotItem<'a> {
        SlotItem {
            type_url: &self.types[slot.type_index as usize].0,
            resource: &slot.resource,
            at: &slot.at,
            unit: slot.unit,
        }
    }

    /// Returns how an item was written, which its unit knows: the constraints
    /// in the wrapper, and whether it is a virtual host in a route
    /// configuration. An item that is written alone has its own constraints.
    pub(super) fn written_as(&self, item: SlotItem<'_>) -> (Option<Constraints>, bool) {
        match self.units.get(item.unit) {
            Some(unit) => unit.written_as(item.type_url),
            None => (item.resource.constraints.clone(), false),
        }
    }

    /// Returns all items with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ItemId, SlotItem<'_>)> {
        let slots = self.slots.iter().zip(0..);
        slots.filter_map(|(slot, number)| Some((ItemId(number), self.item_in(slot.as_ref()?))))
    }

    /// Replaces the resource of an item by an equal one, so that there are not
    /// two of them.
    pub(super) fn replace_resource(&mut self, id: ItemId, resource: Arc<Resource>) {
        if let Some(slot) = &mut self.slots[id.0 as usize] {
            slot.resource = resource;
        }
    }

    /// Forgets the place of an item: the body that it was written in is gone.
    pub(super) fn forget_place(&mut self, id: ItemId) {
        if let Some(slot) = &mut self.slots[id.0 as usize] {
            slot.at = At::default();
        }
    }

    /// Returns the number of slots, those without an item included.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of items of a type.
    pub(super) fn count_of_type(&self, type_url: &TypeUrl) -> usize {
        let known = self.types.iter().find(|(known, _)| known == type_url);
        known.map_or(0, |(_, count)| *count)
    }

    /// Returns all types of which there are items.
    pub(super) fn types(&self) -> Vec<TypeUrl> {
        let used = self.types.iter().filter(|(_, count)| *count > 0);
        used.map(|(type_url, _)| type_url.clone()).collect()
    }

    /// Returns the name of the file that a unit is; empty if it is none.
    pub(super) fn file_of(&self, unit: UnitId) -> Arc<str> {
        match self.units.get(unit).map(|unit| &unit.key) {
            Some(UnitKey::File { name, .. }) => Arc::clone(name),
            _ => Arc::default(),
        }
    }

    /// Returns the place of an item, with the field if its document has no
    /// lines. The place of an item that is of no file is the name of its
    /// origin.
    pub(super) fn place(&self, item: SlotItem<'_>) -> Place {
        if item.at.is_known() {
            return item.at.full_place(&self.file_of(item.unit));
        }
        let origin = self.units.origin_of(item.unit);
        let origin = origin.map(|origin| self.origins.name(origin));
        let origin = origin.unwrap_or_default();
        Place::whole(format!("origin {origin}").into())
    }

    /// Returns the finding of a fault at a place of a unit.
    pub(super) fn finding(&self, unit: UnitId, at: &At, fault: Fault) -> Finding {
        at.finding(&self.file_of(unit), fault)
    }
}

impl Unit {
    /// Returns how an item of this type in the unit was written: the
    /// constraints in the wrapper, and whether it is a virtual host in a route
    /// configuration.
    fn written_as(&self, item_type: &TypeUrl) -> (Option<Constraints>, bool) {
        match &self.key {
            UnitKey::File { .. } => (None, false),
            UnitKey::Resource(key) => (key.constraints.clone(), key.type_url != *item_type),
        }
    }
}
