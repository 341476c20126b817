//! Values that some variants are for, and that no variant of another name
//! serves: clients with such a value would be told that the other name does not
//! exist.
//!
//! Known values and warnings are kept from settlement to settlement, so that
//! one costs as much as its own constraints and what they concern.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};

use super::finding::{Fault, Finding, MOST_FINDINGS, Unserved};
use super::index::Index;
use super::slots::SlotItem;
use super::unit::UnitId;

/// Names that are checked again when a new value comes up.
const MOST_NAMES: usize = 1000;

/// A variant of a name of a type.
type Variant = (TypeUrl, Name, Constraints);
/// A name of a type.
type Key = (TypeUrl, Name);

/// The unserved values of some variants, each after its key, by the constraints
/// of the variants. Many names have the same variants.
type UnservedByConstraints = HashMap<Vec<Constraints>, Vec<(String, String)>>;
/// A resource and its type.
pub(super) type TypedResource = (TypeUrl, Arc<Resource>);

/// The known values: by key of a parameter and value, the variants that mention
/// the value.
#[derive(Debug, Default)]
struct KnownValues(BTreeMap<String, BTreeMap<String, Mentions>>);

/// Variants that mention a value.
#[derive(Debug, Default)]
struct Mentions {
    count: usize,
    /// Not all, if there are many.
    some: BTreeSet<Variant>,
}

/// Warns of values that no variant of a name serves.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    known: KnownValues,
    warnings: BTreeMap<Key, NameWarnings>,
    /// The number of findings in `warnings`, at most [`MOST_FINDINGS`].
    count: usize,
}

/// The warnings about one name.
#[derive(Debug)]
struct NameWarnings {
    /// The unit of its first variant.
    unit: UnitId,
    findings: Vec<Finding>,
}

impl Coverage {
    /// Returns the warnings about names whose first variants are in this unit.
    pub(super) fn of_unit(&self, unit: UnitId) -> impl Iterator<Item = &Finding> {
        let warnings = self.warnings.values();
        let own = warnings.filter(move |warnings| warnings.unit == unit);
        own.flat_map(|warnings| &warnings.findings)
    }

    /// Returns the warnings about a name.
    pub(super) fn of_name(&self, type_url: &TypeUrl, name: &Name) -> &[Finding] {
        let key = (type_url.clone(), name.clone());
        self.warnings.get(&key).map_or(&[], |w| &w.findings)
    }

    /// Applies the variants that a settlement added and removed, and checks the
    /// names that they concern. Returns the concerned names that have warnings.
    pub(super) fn update(
        &mut self,
        index: &Index,
        added: &[TypedResource],
        removed: &[TypedResource],
    ) -> BTreeSet<Key> {
        let mut concerned = BTreeSet::new();
        let mut grown_keys = BTreeSet::new();
        // A variant that is replaced is in both, and its values stay known.
        for variant in added.iter().filter_map(variant_of) {
            grown_keys.extend(self.known.add_variant(&variant));
            concerned.insert((variant.0, variant.1));
        }
        for variant in removed.iter().filter_map(variant_of) {
            self.known.remove_variant(&variant);
            concerned.insert((variant.0, variant.1));
        }
        if concerned.is_empty() {
            return concerned;
        }

        for key in grown_keys {
            concerned.extend(self.known.names_with_key(&key));
        }
        // A value that other names do not serve may be gone.
        let warned = self.warnings.keys().cloned();
        self.check_names(index, &concerned.iter().cloned().chain(warned).collect());
        concerned.retain(|key| self.warnings.contains_key(key));
        concerned
    }

    /// Replaces the warnings about these names. Stops when there are
    /// [`MOST_FINDINGS`] warnings in all.
    fn check_names(&mut self, index: &Index, names: &BTreeSet<Key>) {
        for key in names {
            if let Some(old_warnings) = self.warnings.remove(key) {
                self.count -= old_warnings.findings.len();
            }
        }
        let mut unserved_by = UnservedByConstraints::new();
        for key in names {
            let room = MOST_FINDINGS - self.count;
            if room == 0 {
                return;
            }
            if let Some(warnings) = self.known.check_name(index, key, &mut unserved_by, room) {
                self.count += warnings.findings.len();
                self.warnings.insert(key.clone(), warnings);
            }
        }
    }
}

/// Returns a resource as a variant; `None` if it has no constraints.
fn variant_of((type_url, resource): &TypedResource) -> Option<Variant> {
    let constraints = resource.constraints.clone()?;
    Some((type_url.clone(), resource.name.clone(), constraints))
}

impl KnownValues {
    /// Returns the warnings about a name, `max` of them at most, at the place
    /// of its first variant. Returns `None` if there are none, or if fewer than
    /// two of its variants have constraints.
    fn check_name(
        &self,
        index: &Index,
        key: &Key,
        unserved_by: &mut UnservedByConstraints,
        max: usize,
    ) -> Option<NameWarnings> {
        let mut variants: Vec<_> = index.variants(&key.0, &key.1).collect();
        variants.sort_by_key(|(_, item)| index.sort_key(*item));
        let constraints = variants.iter().map(|(_, item)| &item.resource.constraints);
        let mut constraints: Vec<Constraints> = constraints.flatten().cloned().collect();
        if constraints.len() < 2 {
            return None;
        }
        constraints.sort();

        let unserved = unserved_by
            .entry(constraints)
            .or_insert_with_key(|constraints| self.unserved(constraints));
        let first_item = variants[0].1;
        let findings = unserved.iter().filter_map(|(param, value)| {
            let unserved = self.describe(index, key, param, value)?;
            let fault = Fault::Unserved(Box::new(unserved));
            Some(index.slots.finding(first_item.unit, first_item.at, fault))
        });
        let findings: Vec<Finding> = findings.take(max).collect();
        let unit = first_item.unit;
        (!findings.is_empty()).then_some(NameWarnings { unit, findings })
    }

    /// Adds a variant to each value that it mentions. Returns the keys with new
    /// values.
    fn add_variant(&mut self, variant: &Variant) -> BTreeSet<String> {
        let mut grown_keys = BTreeSet::new();
        for (key, value) in variant.2.values() {
            if self.add_mention(key, value, variant) {
                grown_keys.insert(key.to_owned());
            }
        }
        grown_keys
    }

    /// Counts a mention of a value by a variant, and returns whether the value
    /// is new. Only the first [`MOST_NAMES`] variants that mention it are
    /// remembered.
    fn add_mention(&mut self, key: &str, value: &str, variant: &Variant) -> bool {
        let values = self.0.entry(key.to_owned()).or_default();
        let mentions = values.entry(value.to_owned()).or_default();
        mentions.count += 1;
        if mentions.some.len() < MOST_NAMES {
            mentions.some.insert(variant.clone());
        }
        mentions.count == 1
    }

    /// Removes a variant from each value that it mentions.
    fn remove_variant(&mut self, variant: &Variant) {
        for (key, value) in variant.2.values() {
            self.remove_mention(key, value, variant);
        }
    }

    /// Removes a mention of a value by a variant. The value goes with its last
    /// mention, and the key with its last value.
    fn remove_mention(&mut self, key: &str, value: &str, variant: &Variant) {
        let Some(values) = self.0.get_mut(key) else {
            return;
        };
        if let Some(mentions) = values.get_mut(value) {
            mentions.count -= 1;
            mentions.some.remove(variant);
            if mentions.count == 0 {
                values.remove(value);
            }
        }
        if values.is_empty() {
            self.0.remove(key);
        }
    }

    /// Returns the names of variants that mention a key with any value. At most
    /// [`MOST_NAMES`] variants are looked at, so a name may be missing, or come
    /// several times.
    fn names_with_key(&self, key: &str) -> impl Iterator<Item = Key> {
        let values = self.0.get(key).into_iter().flat_map(BTreeMap::values);
        let variants = values.flat_map(|mentions| &mentions.some).take(MOST_NAMES);
        variants.map(|(url, name, _)| (url.clone(), name.clone()))
    }

    /// Returns the known values that no variant with these constraints serves,
    /// each after its key. Returns none if that cannot be decided: a warning
    /// must be certain.
    fn unserved(&self, constraints: &[Constraints]) -> Vec<(String, String)> {
        let constraints: Vec<&Constraints> = constraints.iter().collect();
        let known_values = |key: &str| {
            let values = self.0.get(key).into_iter();
            values.flat_map(|values| values.keys().map(String::as_str))
        };
        let unserved = Constraints::unserved(&constraints, known_values).unwrap_or_default();
        let owned = unserved
            .into_iter()
            .map(|(key, value)| (key, value.to_owned()));
        owned.collect()
    }

    /// Returns the fault that a name does not serve a value, with the place of
    /// a variant that mentions the value. Returns `None` if no such variant is
    /// known.
    fn describe(
        &self,
        index: &Index,
        (type_url, name): &Key,
        param: &str,
        value: &str,
    ) -> Option<Unserved> {
        let mentions = self.0.get(param)?.get(value)?;
        let (by_type, by_name, by_constraints) = mentions.some.first()?;
        let mut variants = index.variants(by_type, by_name);
        let has_constraints =
            |item: &SlotItem<'_>| item.resource.constraints.as_ref() == Some(by_constraints);
        let mention = variants.find_map(|(_, item)| Some(item).filter(has_constraints))?;

        Some(Unserved {
            type_url: type_url.clone(),
            name: name.clone(),
            key: param.to_owned(),
            value: value.to_owned(),
            by_type: by_type.clone(),
            by_name: by_name.clone(),
            by: index.slots.place(mention),
        })
    }
}

impl Index {
    /// Returns a key that sorts items by unit, and then by place. Items whose
    /// place is not known come last.
    fn sort_key<'a>(&'a self, item: SlotItem<'a>) -> impl Ord + use<'a> {
        let unit = self.slots.units.get(item.unit);
        (
            !item.at.is_known(),
            unit.map(|unit| &unit.key),
            item.at.order(),
        )
    }
}
