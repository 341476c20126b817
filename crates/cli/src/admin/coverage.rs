//! Values that some variants are for, and that no variant of another name
//! serves: clients with such a value would be told that the other name does not
//! exist.
//!
//! The known values are kept from change to change, so that a change costs as
//! much as its own constraints, not as much as the server's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use trunkline::checked::{Document, Item, MOST_FINDINGS};
use trunkline::{Changed, Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;

use super::error::Detail;
use crate::kinds;

/// Names that are checked again when a new value comes up.
const MOST_NAMES: usize = 1000;

/// A variant of a name of a type.
type Variant = (TypeUrl, Name, Constraints);
/// A name of a type.
type Key = (TypeUrl, Name);

/// The known values: by key of a parameter and value, the variants that mention
/// the value.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownValues(BTreeMap<String, BTreeMap<String, Mentions>>);

/// Variants that mention a value.
#[derive(Clone, Debug, Default)]
struct Mentions {
    count: usize,
    /// Not all, if there are many.
    some: BTreeSet<Variant>,
}

impl KnownValues {
    /// Notes the values that variants mention which were added, and forgets
    /// those of removed ones. Returns the names of which some value may have
    /// become unserved: those of the variants, and for each key with a new
    /// value some that mention the key, at most [`MOST_NAMES`].
    pub(super) fn note(&mut self, changed: &[Changed]) -> BTreeSet<Key> {
        let mut concerned = BTreeSet::new();
        let mut grown_keys = BTreeSet::new();
        for change in changed {
            let Some(constraints) = &change.constraints else {
                continue;
            };
            let (url, name) = (&change.type_url, &change.name);
            let variant = (url.clone(), name.clone(), constraints.clone());
            for (key, value) in constraints.values() {
                match (&change.from, &change.to) {
                    (Some(_), None) => self.forget(key, value, &variant),
                    (None, Some(_)) if self.add(key, value, &variant) => {
                        grown_keys.insert(key.to_owned());
                    }
                    _ => {}
                }
            }
            concerned.insert((url.clone(), name.clone()));
        }

        for key in grown_keys {
            concerned.extend(self.names_with_key(&key));
        }
        concerned
    }

    /// Returns the names of variants that mention a key, at most [`MOST_NAMES`]
    /// of the variants.
    fn names_with_key(&self, key: &str) -> impl Iterator<Item = Key> {
        let values = self.0.get(key).into_iter().flat_map(BTreeMap::values);
        let variants = values.flat_map(|mentions| &mentions.some).take(MOST_NAMES);
        variants.map(|(url, name, _)| (url.clone(), name.clone()))
    }

    /// Adds a variant that mentions a value; returns whether the value is new.
    /// Of many variants, those beyond [`MOST_NAMES`] are counted only.
    fn add(&mut self, key: &str, value: &str, variant: &Variant) -> bool {
        let values = self.0.entry(key.to_owned()).or_default();
        let mentions = values.entry(value.to_owned()).or_default();
        mentions.count += 1;
        if mentions.some.len() < MOST_NAMES {
            mentions.some.insert(variant.clone());
        }
        mentions.count == 1
    }

    /// Removes a variant that mentions a value, and with its last variant the
    /// value, and with its last value the key.
    fn forget(&mut self, key: &str, value: &str, variant: &Variant) {
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

    /// Warns of known values that no variant of these names serves, at most
    /// [`MOST_FINDINGS`] times. A name with fewer than two variants is not
    /// checked. A warning has the place of the name in the body, if it is
    /// there. `variants_of` returns the variants of a name.
    pub(super) fn warn<R: AsRef<Resource>>(
        &self,
        names: &BTreeSet<Key>,
        body: Option<&Document>,
        variants_of: impl Fn(&TypeUrl, &Name) -> Vec<R>,
    ) -> Vec<Detail> {
        let mut found = Vec::new();
        // Many names have the same variants.
        let mut unserved_by: HashMap<Vec<Constraints>, Vec<(String, &str)>> = HashMap::new();
        for (url, name) in names {
            if found.len() >= MOST_FINDINGS {
                break;
            }
            let constraints = sorted_constraints(&variants_of(url, name));
            if constraints.len() < 2 {
                continue;
            }
            let unserved = unserved_by
                .entry(constraints)
                .or_insert_with_key(|constraints| self.unserved(constraints));
            if unserved.is_empty() {
                continue;
            }

            let found_at = body.and_then(|body| Some((body, find_item(body, url, name)?)));
            for (key, value) in unserved.iter().take(MOST_FINDINGS - found.len()) {
                let message = self.write_warning(url, name, key, value);
                found.push(match found_at {
                    Some((body, item)) => Detail::at(body, item, message),
                    None => Detail::new(message),
                });
            }
        }
        found
    }

    /// Returns the known values that no variant with these constraints serves,
    /// each after its key. If that cannot be decided, there are none: a warning
    /// must be certain.
    fn unserved(&self, constraints: &[Constraints]) -> Vec<(String, &str)> {
        let constraints: Vec<&Constraints> = constraints.iter().collect();
        let known_values = |key: &str| {
            let values = self.0.get(key).into_iter();
            values.flat_map(|values| values.keys().map(String::as_str))
        };
        Constraints::unserved(&constraints, known_values).unwrap_or_default()
    }

    /// Writes the warning that no variant of a name serves a value, with
    /// another name that has a variant for it, if one is known.
    fn write_warning(&self, url: &TypeUrl, name: &Name, key: &str, value: &str) -> String {
        let mentions = self.0.get(key).and_then(|values| values.get(value));
        let mentioned_by = match mentions.and_then(|mentions| mentions.some.first()) {
            Some((url, name, _)) => {
                let kind = kinds::short(url);
                format!(" ({kind} {name:?} has a variant that speaks of it)")
            }
            None => String::new(),
        };

        format!(
            "no variant of {} {name:?} serves {key}={value}{mentioned_by}: clients with it are \
             told that it does not exist",
            kinds::short(url),
        )
    }
}

/// Returns the constraints of variants in their order; a variant for all
/// clients has none.
fn sorted_constraints<R: AsRef<Resource>>(variants: &[R]) -> Vec<Constraints> {
    let variants = variants.iter().map(AsRef::as_ref);
    let mut constraints: Vec<_> = variants.filter_map(|r| r.constraints.clone()).collect();
    constraints.sort();
    constraints
}

/// Returns the first resource of a name in the body, if it is there.
fn find_item<'a>(body: &'a Document, url: &TypeUrl, name: &Name) -> Option<&'a Item> {
    let has_name = |item: &&Item| item.type_url == *url && item.resource.name == *name;
    body.items.iter().find(has_name)
}

/// Returns the names that have variants in the body, once for each variant.
pub(super) fn names_with_variants(body: &Document) -> impl Iterator<Item = Key> {
    let items = body.items.iter();
    let variants = items.filter(|item| item.resource.constraints.is_some());
    variants.map(|item| (item.type_url.clone(), item.resource.name.clone()))
}
