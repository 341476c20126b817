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
    /// Notes the values of changed variants. Returns the names that may have
    /// become incomplete by it: the changed ones, and those whose variants
    /// mention a key that got a new value.
    pub(super) fn note(&mut self, changed: &[Changed]) -> BTreeSet<Key> {
        let mut concerned = BTreeSet::new();
        let mut grown_keys = BTreeSet::new();
        for one in changed {
            let Some(constraints) = &one.constraints else {
                continue;
            };
            let name = (one.type_url.clone(), one.name.clone());
            let variant = (name.0.clone(), name.1.clone(), constraints.clone());
            for (key, value) in constraints.values() {
                match (&one.from, &one.to) {
                    (Some(_), None) => self.forget(key, value, &variant),
                    (None, Some(_)) if self.add(key, value, &variant) => {
                        grown_keys.insert(key.to_owned());
                    }
                    _ => {}
                }
            }
            concerned.insert(name);
        }
        for key in grown_keys {
            let values = self.0.get(&key).into_iter().flat_map(BTreeMap::values);
            let variants = values.flat_map(|mentions| &mentions.some).take(MOST_NAMES);
            concerned.extend(variants.map(|(url, name, _)| (url.clone(), name.clone())));
        }
        concerned
    }

    /// Adds a variant that mentions a value; returns whether it is the first.
    fn add(&mut self, key: &str, value: &str, variant: &Variant) -> bool {
        let values = self.0.entry(key.to_owned()).or_default();
        let mentions = values.entry(value.to_owned()).or_default();
        mentions.count += 1;
        if mentions.some.len() < MOST_NAMES {
            mentions.some.insert(variant.clone());
        }
        mentions.count == 1
    }

    /// Removes a variant that mentions a value, and with the last one the
    /// value.
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

    /// Warns of values that no variant of these names serves, at most
    /// [`MOST_FINDINGS`] times: at the place of the name in the body, if it is there. `held`
    /// returns the variants of a name.
    pub(super) fn warn<R: AsRef<Resource>>(
        &self,
        names: &BTreeSet<Key>,
        body: Option<&Document>,
        held: impl Fn(&TypeUrl, &Name) -> Vec<R>,
    ) -> Vec<Detail> {
        let mut found = Vec::new();
        // Many names have the same variants.
        let mut cache: HashMap<Vec<Constraints>, Vec<(String, &str)>> = HashMap::new();
        for (url, name) in names {
            if found.len() >= MOST_FINDINGS {
                break;
            }
            let variants = constraints(&held(url, name));
            if variants.len() < 2 {
                continue;
            }
            let unserved = cache.entry(variants);
            let unserved = unserved.or_insert_with_key(|variants| self.unserved(variants));
            if unserved.is_empty() {
                continue;
            }
            let found_at = body.and_then(|body| Some((body, find(body, url, name)?)));
            for (key, value) in unserved.iter().take(MOST_FINDINGS - found.len()) {
                let message = self.message(url, name, key, value);
                found.push(match found_at {
                    Some((body, item)) => Detail::at(body, item, message),
                    None => Detail::new(message),
                });
            }
        }
        found
    }

    /// Returns the known values that none of these variants serves, each after
    /// its key.
    fn unserved(&self, variants: &[Constraints]) -> Vec<(String, &str)> {
        let variants: Vec<&Constraints> = variants.iter().collect();
        let values = |key: &str| {
            let values = self.0.get(key).into_iter();
            values.flat_map(|values| values.keys().map(String::as_str))
        };
        // An undecidable case is no warning.
        Constraints::unserved(&variants, values).unwrap_or_default()
    }

    /// Words the warning that no variant of a name serves a value, with a name
    /// from which the value is known.
    fn message(&self, url: &TypeUrl, name: &Name, key: &str, value: &str) -> String {
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

/// Returns the constraints of variants, sorted; of one for all clients there are
/// none.
fn constraints<R: AsRef<Resource>>(variants: &[R]) -> Vec<Constraints> {
    let variants = variants.iter().map(AsRef::as_ref);
    let mut constraints: Vec<_> = variants.filter_map(|r| r.constraints.clone()).collect();
    constraints.sort();
    constraints
}

/// Returns a resource of a name in the body, if it is there.
fn find<'a>(body: &'a Document, url: &TypeUrl, name: &Name) -> Option<&'a Item> {
    let is = |one: &&Item| one.type_url == *url && one.resource.name == *name;
    body.items.iter().find(is)
}

/// Returns the names that have variants in the body.
pub(super) fn names_with_variants(body: &Document) -> impl Iterator<Item = Key> {
    let items = body.items.iter();
    let variants = items.filter(|one| one.resource.constraints.is_some());
    variants.map(|one| (one.type_url.clone(), one.resource.name.clone()))
}
