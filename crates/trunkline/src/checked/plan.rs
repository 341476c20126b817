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
use super::index::{Index, overlap};
use super::slots::{ItemId, SlotItem};
use super::unit::{OriginId, ResourceKey, Unit, UnitId, UnitKey};

/// The plan of an edit.
pub(super) struct Plan<'a> {
    index: &'a mut Index,
    origin: OriginId,
    replaced: BTreeSet<ItemId>,
    /// Why the edit is rejected.
    findings: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl<'a> Plan<'a> {
    /// Returns a plan that replaces nothing yet.
    pub(super) fn new(index: &'a mut Index, origin: OriginId) -> Self {
        Self {
            index,
            origin,
            replaced: BTreeSet::new(),
            findings: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Opens the edit: finds the items that it replaces and removes, and takes
    /// them out of the index.
    pub(super) fn open(mut self, mut edit: ResourceEdit) -> OpenEdit {
        let items = std::mem::take(&mut edit.document.items);
        let groups = Groups::of(items);
        self.replace_old(&edit, &groups);
        for removal in &edit.removals {
            self.remove(removal, edit.takes_over);
        }

        let Self {
            index,
            origin,
            replaced,
            findings,
            warnings,
        } = self;
        let mut open = OpenEdit {
            findings,
            warnings,
            document: Some(edit.document),
            ..OpenEdit::default()
        };
        open.take_out(index, replaced);
        open.add_new(index, origin, groups);
        open
    }

    /// Marks the items that the new ones of an edit stand in place of as
    /// replaced: those that were written under the same keys, or all of the
    /// origin, and variants that the new ones contradict.
    fn replace_old(&mut self, edit: &ResourceEdit, groups: &Groups) {
        let Groups { units, alone } = groups;
        if edit.replaces_origin {
            self.replace_origin();
        } else {
            for (key, items) in units {
                self.replace_unit(key, items);
            }
            for item in alone {
                self.mark_replaced(&key_of(item));
            }
        }
        for key in &edit.document.empty {
            self.mark_replaced(key);
        }

        let items = units.iter().flat_map(|(_, items)| items);
        for item in items.chain(alone) {
            self.replace_variant(item, edit.takes_over);
        }
    }

    /// Marks all items of the origin as replaced.
    fn replace_origin(&mut self) {
        let items = self.index.slots.iter();
        let own = items.filter(|(_, item)| self.is_own(item.unit));
        let ids: Vec<ItemId> = own.map(|(id, _)| id).collect();
        self.replaced.extend(ids);
    }

    /// Returns whether a unit, or a resource that is written alone, belongs to
    /// the origin.
    fn is_own(&self, unit: UnitId) -> bool {
        self.index.slots.units.origin_of(unit) == Some(self.origin)
    }

    /// Marks the items of the origin under a key as replaced. A key without
    /// constraints stands for all variants of its name. A resource that was
    /// written with constraints around it is one item, unless it has conditions
    /// inside: then it is a unit of several items, which are replaced together.
    fn mark_replaced(&mut self, key: &ResourceKey) {
        if key.constraints.is_none() {
            self.replace_name(&key.type_url, &key.name);
            return;
        }
        let variants = self.index.variants(&key.type_url, &key.name);
        let own_items = variants.filter(|(_, item)| {
            self.is_own(item.unit) && self.index.slots.written_as(*item).0 == key.constraints
        });
        let own_ids: Vec<(ItemId, UnitId)> = own_items.map(|(id, item)| (id, item.unit)).collect();

        for (id, unit_id) in own_ids {
            match self.index.slots.units.get(unit_id) {
                Some(unit) if is_written_as(unit, &key.type_url) => self.replace_items(unit_id),
                _ => {
                    self.replaced.insert(id);
                }
            }
        }
    }

    /// Marks the items that the origin wrote before under the key of a unit as
    /// replaced. If the unit is a route configuration that lists no virtual
    /// hosts, those that came with it are kept, with a warning.
    fn replace_unit(&mut self, key: &ResourceKey, items: &[Item]) {
        let (type_url, name) = (&key.type_url, &key.name);
        self.mark_replaced(key);

        let unit_key = UnitKey::Resource(key.clone());
        let Some(unit) = self.index.slots.units.find(self.origin, &unit_key) else {
            return;
        };
        self.replace_items(unit);

        let hosts = if lists_no_hosts(type_url, items) {
            self.hosts_of(unit)
        } else {
            BTreeSet::new()
        };
        if !hosts.is_empty() {
            self.warn_of_kept_hosts(items, name, hosts.len());
            self.replaced.retain(|id| !hosts.contains(id));
        }
    }

    /// Warns that the virtual hosts of a route configuration stay although the
    /// edit lists none. They stay because the output of `get` lists none, and
    /// applying that output must not remove them.
    fn warn_of_kept_hosts(&mut self, items: &[Item], name: &Name, count: usize) {
        let fault = Fault::KeptHosts {
            name: name.clone(),
            count,
        };
        let place = items.first().map(|item| &item.at);
        self.warnings
            .extend(place.map(|place| place.finding(&Arc::from(""), fault)));
    }

    /// Marks all items that the origin wrote under a name as replaced. Virtual
    /// hosts that came with a route configuration are kept, since they were not
    /// written under their own names.
    fn replace_name(&mut self, type_url: &TypeUrl, name: &Name) {
        let variants = self.index.variants(type_url, name);
        let own_items = variants.filter(|(_, item)| self.is_own(item.unit));
        let own_items: Vec<(ItemId, UnitId)> =
            own_items.map(|(id, item)| (id, item.unit)).collect();
        for (id, unit_id) in own_items {
            match self.index.slots.units.get(unit_id) {
                None => _ = self.replaced.insert(id),
                Some(unit) if is_written_as(unit, type_url) => self.replace_items(unit_id),
                Some(_) => {}
            }
        }
    }

    /// Marks all items of a unit as replaced.
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

    /// Marks the origin's own variant with the name and constraints of an item
    /// as replaced, in whichever unit that variant is: the last one written
    /// counts. If names are taken over, variants of other origins that a client
    /// could see beside the item are replaced as well.
    fn replace_variant(&mut self, item: &Item, takes_over: bool) {
        let variants = self.index.variants(&item.type_url, &item.resource.name);
        let replaced = variants.filter(|(_, variant)| {
            if self.is_own(variant.unit) {
                variant.resource.constraints == item.resource.constraints
            } else {
                takes_over && overlap(&item.resource, variant.resource) != Ok(None)
            }
        });
        let replaced: Vec<ItemId> = replaced.map(|(id, _)| id).collect();
        self.replaced.extend(replaced);
    }

    /// Marks the items that a removal selects as replaced. The virtual hosts
    /// that came with a route configuration go with its last variant. A
    /// resource of another origin is a mistake, unless names are taken over.
    fn remove(&mut self, removal: &Removal, takes_over: bool) {
        if !takes_over && let Some(finding) = self.find_owner(removal) {
            self.findings.push(finding);
            return;
        }

        let variants = self.index.variants(&removal.type_url, &removal.name);
        let removed = variants.filter(|(_, item)| {
            let is_allowed = takes_over || self.is_own(item.unit);
            is_allowed && self.selects(removal, *item)
        });
        let removed: Vec<(ItemId, UnitId)> = removed.map(|(id, item)| (id, item.unit)).collect();
        self.replaced.extend(removed.iter().map(|(id, _)| *id));

        for (_, unit_id) in removed {
            let Some(unit) = self.index.slots.units.get(unit_id) else {
                continue;
            };
            let remains = |id: &ItemId| {
                let item = self.index.slots.get(*id);
                let has_type = item.is_some_and(|item| *item.type_url == removal.type_url);
                has_type && !self.replaced.contains(id)
            };
            let is_whole = is_written_as(unit, &removal.type_url);
            if is_whole && !unit.items.iter().any(remains) {
                self.replace_items(unit_id);
            }
        }
    }

    /// Returns whether a removal takes this variant of its name. One without
    /// constraints takes all variants. With constraints it takes the variant
    /// that has them, and each that conditions made of a resource with these
    /// constraints around it.
    fn selects(&self, removal: &Removal, item: SlotItem<'_>) -> bool {
        removal.variant.as_ref().is_none_or(|variant| {
            let (written, is_inline_host) = self.index.slots.written_as(item);
            let is_part = variant.is_some() && !is_inline_host && written == *variant;
            is_part || item.resource.constraints == *variant
        })
    }

    /// Returns the finding that the resource of a removal belongs to another
    /// origin. Returns `None` if one of the variants that the removal selects
    /// is the origin's own, or if it selects none.
    fn find_owner(&self, removal: &Removal) -> Option<Finding> {
        let slots = &self.index.slots;
        let variants = self.index.variants(&removal.type_url, &removal.name);
        let mut variants = variants.filter(|(_, item)| self.selects(removal, *item));
        let (_, other) = variants.next()?;
        if self.is_own(other.unit) || variants.any(|(_, item)| self.is_own(item.unit)) {
            return None;
        }

        let owner = slots.units.origin_of(other.unit)?;
        let fault = Fault::Owned {
            type_url: removal.type_url.clone(),
            name: removal.name.clone(),
            origin: slots.origins.name(owner),
            first: slots.place(other),
        };
        Some(Finding::whole(&Arc::default(), fault))
    }
}

/// Returns whether a unit was written as a resource of this type, rather than
/// as a file or as a part of another resource.
fn is_written_as(unit: &Unit, type_url: &TypeUrl) -> bool {
    matches!(&unit.key, UnitKey::Resource(key) if key.type_url == *type_url)
}

/// Returns whether the items of a unit are a route configuration that uses VHDS
/// and lists no virtual hosts.
fn lists_no_hosts(type_url: &TypeUrl, items: &[Item]) -> bool {
    let uses_vhds = |item: &Item| item.resource.facts().vhds_version().is_some();
    let is_route = type_url.as_str() == kind::RDS && items.iter().any(uses_vhds);
    is_route && !items.iter().any(|item| item.is_inline_host)
}

/// Items by what they are written in.
#[derive(Default)]
pub(super) struct Groups {
    /// Items by unit.
    pub(super) units: Vec<(ResourceKey, Vec<Item>)>,
    /// Items that are written alone: each is all of its resource.
    pub(super) alone: Vec<Item>,
}

impl Groups {
    /// Groups the items of a document into units. The items of one resource
    /// have to follow each other in the document.
    pub(super) fn of(items: Vec<Item>) -> Self {
        let mut groups = Self::default();
        let mut indexes: HashMap<ResourceKey, usize> = HashMap::new();
        let mut items = items.into_iter().peekable();
        while let Some(item) = items.next() {
            let key = key_of(&item);
            let is_last = items.peek().is_none_or(|next_item| !is_in(next_item, &key));
            if is_last && is_all_of_resource(&item) {
                groups.alone.push(item);
                continue;
            }

            let index = *indexes.entry(key.clone()).or_insert_with(|| {
                groups.units.push((key.clone(), Vec::new()));
                groups.units.len() - 1
            });
            let unit = &mut groups.units[index].1;
            unit.push(item);
            while let Some(next_item) = items.next_if(|next_item| is_in(next_item, &key)) {
                unit.push(next_item);
            }
        }
        groups
    }
}

/// Returns whether an item may be all of its resource: neither was it made by
/// conditions, nor is it written in another, nor can virtual hosts come with
/// it.
fn is_all_of_resource(item: &Item) -> bool {
    let uses_vhds = item.resource.facts().vhds_version().is_some();
    !item.is_inline_host && !uses_vhds && item.wrapper_constraints == item.resource.constraints
}

/// Returns whether an item belongs to the unit of this key: as a variant of the
/// resource, or as a virtual host that is written in the resource.
fn is_in(item: &Item, key: &ResourceKey) -> bool {
    let ResourceKey {
        type_url,
        name,
        constraints,
    } = key;
    if !item.is_inline_host {
        return item.type_url == *type_url
            && item.resource.name == *name
            && item.wrapper_constraints == *constraints;
    }
    let host = HostName::split(item.resource.name.as_str());
    let is_of_route = host.is_some_and(|host| host.route == name.as_str());
    type_url.as_str() == kind::RDS && is_of_route && item.wrapper_constraints == *constraints
}

/// Returns the key of the unit that an item is written in: that of the route
/// configuration around an inline virtual host, or else its own.
fn key_of(item: &Item) -> ResourceKey {
    let host = if item.is_inline_host {
        HostName::split(item.resource.name.as_str())
    } else {
        None
    };
    let (type_url, name) = match host {
        Some(host) => (TypeUrl::from(kind::RDS), Name::new(host.route)),
        None => (item.type_url.clone(), item.resource.name.clone()),
    };
    ResourceKey {
        type_url,
        name,
        constraints: item.wrapper_constraints.clone(),
    }
}
