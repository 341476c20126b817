//! Which items an edit of resources replaces.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use trunkline_core::hosts::HostName;
use trunkline_core::kind;
use trunkline_core::name::Name;
use trunkline_core::resource::TypeUrl;

use super::document::Item;
use super::edit::{OpenEdit, Removal, ResourceEdit};
use super::finding::{Fault, Finding};
use super::index::Index;
use super::slots::ItemId;
use super::unit::{OriginId, Unit, UnitId, UnitKey};

/// The plan of an edit.
pub(super) struct Plan<'a> {
    index: &'a mut Index,
    origin: OriginId,
    replaced: BTreeSet<ItemId>,
    warnings: Vec<Finding>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(index: &'a mut Index, origin: OriginId) -> Self {
        Self {
            index,
            origin,
            replaced: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }

    /// Opens the edit: finds what it replaces and removes, and takes that out
    /// of the index.
    pub(super) fn open(mut self, mut edit: ResourceEdit) -> OpenEdit {
        let items = std::mem::take(&mut edit.document.items);
        let groups = group_by_unit(items);
        if edit.replaces_origin {
            self.replace_origin();
        } else {
            for (key, items) in &groups {
                self.replace_unit(key, items);
            }
        }
        for (type_url, name) in &edit.document.empty {
            self.replace_name(type_url, name);
        }
        for item in groups.iter().flat_map(|(_, items)| items) {
            self.replace_variant(item, edit.takes_over);
        }
        for removal in &edit.removals {
            self.remove(removal);
        }

        let Self {
            index,
            origin,
            replaced,
            warnings,
        } = self;
        let mut open = OpenEdit {
            warnings,
            document: Some(edit.document),
            ..OpenEdit::default()
        };
        open.take_out(index, replaced);
        let settlement = index.slots.settlement;
        for (key, items) in groups {
            let unit = index.slots.units.find_or_add(origin, key, settlement);
            open.units.insert(unit);
            open.new.push((unit, items));
        }
        open
    }

    /// Replaces all items of the origin.
    fn replace_origin(&mut self) {
        let units = self.index.slots.units.iter();
        let own = units.filter(|(_, unit)| unit.origin == self.origin);
        let items: Vec<ItemId> = own
            .flat_map(|(_, unit)| unit.items.iter().copied())
            .collect();
        self.replaced.extend(items);
    }

    /// Replaces what was written before under the key of a unit; without
    /// constraints, all of its name.
    fn replace_unit(&mut self, key: &UnitKey, items: &[Item]) {
        let UnitKey::Resource {
            type_url,
            name,
            constraints,
        } = key
        else {
            return;
        };
        if constraints.is_none() {
            let mut others = self.units_of_name(type_url, name);
            others.retain(|unit| self.key_of(*unit) != Some(key));
            for unit in others {
                self.replace_items(unit);
            }
        }

        let Some(unit) = self.index.slots.units.find(self.origin, key) else {
            return;
        };
        let keeps_hosts = lists_no_hosts(type_url, items);
        let hosts = match keeps_hosts {
            true => self.hosts_of(unit),
            false => BTreeSet::new(),
        };
        self.replace_items(unit);
        if !hosts.is_empty() {
            self.warn_of_kept_hosts(items, name, hosts.len());
            self.replaced.retain(|id| !hosts.contains(id));
        }
    }

    /// Warns that the virtual hosts of a route configuration stay although it
    /// lists none. The output of `get` lists none, and can be applied as it is
    /// shown.
    fn warn_of_kept_hosts(&mut self, items: &[Item], name: &Name, count: usize) {
        let fault = Fault::KeptHosts {
            name: name.clone(),
            count,
        };
        let at = items.first().map(|item| &item.at);
        self.warnings
            .extend(at.map(|at| at.finding(&Arc::from(""), fault)));
    }

    fn key_of(&self, unit: UnitId) -> Option<&UnitKey> {
        self.index.slots.units.get(unit).map(|unit| &unit.key)
    }

    /// Returns the units of the origin that are written under a name.
    fn units_of_name(&self, type_url: &TypeUrl, name: &Name) -> BTreeSet<UnitId> {
        let variants = self.index.variants(type_url, name);
        let units = variants.map(|(_, item)| item.unit);
        let is_own = |unit: &UnitId| {
            let unit = self.index.slots.units.get(*unit);
            unit.is_some_and(|unit| unit.origin == self.origin && is_written_as(unit, type_url))
        };
        units.filter(is_own).collect()
    }

    /// Replaces all units of a name.
    fn replace_name(&mut self, type_url: &TypeUrl, name: &Name) {
        for unit in self.units_of_name(type_url, name) {
            self.replace_items(unit);
        }
    }

    /// Replaces all items of a unit.
    fn replace_items(&mut self, unit: UnitId) {
        if let Some(unit) = self.index.slots.units.get(unit) {
            self.replaced.extend(&unit.items);
        }
    }

    /// Returns the virtual hosts of a unit that is a route configuration.
    fn hosts_of(&self, unit: UnitId) -> BTreeSet<ItemId> {
        let unit = self.index.slots.units.get(unit);
        let items = unit.into_iter().flat_map(|unit| &unit.items);
        let is_host = |id: &&ItemId| {
            let item = self.index.slots.get(**id);
            item.is_some_and(|item| item.type_url.as_str() == kind::VHDS)
        };
        items.filter(is_host).copied().collect()
    }

    /// Replaces the variant of the origin that has the same name and
    /// constraints as an item, in whichever unit it is: the last one that is
    /// written counts. Of other origins, all of the name are replaced if names
    /// are taken over.
    fn replace_variant(&mut self, item: &Item, takes_over: bool) {
        let variants = self.index.variants(&item.type_url, &item.resource.name);
        let replaced = variants.filter(|(id, other)| {
            let unit = self.index.slots.unit_of(*id);
            match unit.is_some_and(|unit| unit.origin == self.origin) {
                true => other.resource.constraints == item.resource.constraints,
                false => takes_over,
            }
        });
        let replaced: Vec<ItemId> = replaced.map(|(id, _)| id).collect();
        self.replaced.extend(replaced);
    }

    /// Removes a resource of the origin, and with the last variant of a route
    /// configuration the virtual hosts that came with it.
    fn remove(&mut self, removal: &Removal) {
        let variants = self.index.variants(&removal.type_url, &removal.name);
        let removed = variants.filter(|(id, item)| {
            let unit = self.index.slots.unit_of(*id);
            let is_own = unit.is_some_and(|unit| unit.origin == self.origin);
            let variant = removal.variant.as_ref();
            is_own && variant.is_none_or(|variant| *variant == item.resource.constraints)
        });
        let removed: Vec<(ItemId, UnitId)> = removed.map(|(id, item)| (id, item.unit)).collect();
        self.replaced.extend(removed.iter().map(|(id, _)| *id));

        for (_, unit_id) in removed {
            let Some(unit) = self.index.slots.units.get(unit_id) else {
                continue;
            };
            let is_left = |id: &ItemId| {
                let item = self.index.slots.get(*id);
                let has_type = item.is_some_and(|item| *item.type_url == removal.type_url);
                has_type && !self.replaced.contains(id)
            };
            let is_whole = is_written_as(unit, &removal.type_url);
            if is_whole && !unit.items.iter().any(is_left) {
                self.replace_items(unit_id);
            }
        }
    }
}

/// Returns whether a unit is a resource of this type.
fn is_written_as(unit: &Unit, type_url: &TypeUrl) -> bool {
    let key = &unit.key;
    matches!(key, UnitKey::Resource { type_url: written, .. } if written == type_url)
}

/// Returns whether the items of a unit are a route configuration that uses VHDS
/// and lists no virtual hosts.
fn lists_no_hosts(type_url: &TypeUrl, items: &[Item]) -> bool {
    let uses_vhds = |item: &Item| item.resource.facts().vhds_version().is_some();
    let is_route = type_url.as_str() == kind::RDS && items.iter().any(uses_vhds);
    is_route && !items.iter().any(|item| item.inside)
}

/// Groups items by the unit that they are written in.
fn group_by_unit(items: Vec<Item>) -> Vec<(UnitKey, Vec<Item>)> {
    let mut groups: Vec<(UnitKey, Vec<Item>)> = Vec::new();
    let mut indexes: HashMap<UnitKey, usize> = HashMap::new();
    let mut last = 0;
    for item in items {
        // The virtual hosts of a route configuration follow it.
        let is_next = groups.get(last).is_some_and(|(key, _)| is_in(&item, key));
        if !is_next {
            let key = key_of(&item);
            last = *indexes.entry(key.clone()).or_insert_with(|| {
                groups.push((key, Vec::new()));
                groups.len() - 1
            });
        }
        groups[last].1.push(item);
    }
    groups
}

/// Returns whether an item is a virtual host that is written in the unit of
/// this key.
fn is_in(item: &Item, key: &UnitKey) -> bool {
    let UnitKey::Resource {
        type_url,
        name,
        constraints,
    } = key
    else {
        return false;
    };
    if type_url.as_str() != kind::RDS {
        return false;
    }
    let host = HostName::split(item.resource.name.as_str());
    let is_of_route = host.is_some_and(|host| host.route == name.as_str());
    item.inside && is_of_route && item.written == *constraints
}

/// Returns the key of the unit that an item is written in: the route
/// configuration of a virtual host that is written in one, or else its own.
fn key_of(item: &Item) -> UnitKey {
    let host = match item.inside {
        true => HostName::split(item.resource.name.as_str()),
        false => None,
    };
    let (type_url, name) = match host {
        Some(host) => (TypeUrl::from(kind::RDS), Name::new(host.route)),
        None => (item.type_url.clone(), item.resource.name.clone()),
    };
    UnitKey::Resource {
        type_url,
        name,
        constraints: item.written.clone(),
    }
}
