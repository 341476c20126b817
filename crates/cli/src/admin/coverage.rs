//! Values that some variants are for, and that no variant of another name
//! serves: clients with such a value would be told that the other name does not
//! exist.
//!
//! The known values are kept from change to change, so that a change costs as
//! much as its own constraints, not as much as the server's.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use trunkline::{Changed, Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;

use super::body::{BodyResource, MOST};
use super::error::Detail;
use crate::kinds;

/// Names that are checked again when a new value comes up.
const MOST_NAMES: usize = 1000;

/// A variant of a name of a type.
type Variant = (TypeUrl, Name, Constraints);
/// A name of a type.
type Key = (TypeUrl, Name);

/// The known values: by key and value, the variants that mention it.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(BTreeMap<String, BTreeMap<String, Speak>>);

/// Variants that mention a value.
#[derive(Clone, Debug, Default)]
struct Speak {
    count: usize,
    /// Not all, if there are many.
    some: BTreeSet<Variant>,
}

impl Known {
    /// Takes note of a change. Returns the names that may have become
    /// incomplete by it.
    pub(super) fn note(&mut self, changed: &[Changed]) -> BTreeSet<Key> {
        let mut concerned = BTreeSet::new();
        let mut new = BTreeSet::new();
        for one in changed {
            let Some(constraints) = &one.constraints else {
                continue;
            };
            let key = (one.type_url.clone(), one.name.clone());
            let variant = (key.0.clone(), key.1.clone(), constraints.clone());
            for (key, value) in constraints.values() {
                match (&one.from, &one.to) {
                    (Some(_), None) => self.forget(key, value, &variant),
                    (None, Some(_)) if self.add(key, value, &variant) => {
                        new.insert(key.to_owned());
                    }
                    _ => {}
                }
            }
            concerned.insert(key);
        }
        for key in new {
            let values = self.0.get(&key).into_iter().flat_map(BTreeMap::values);
            let all = values.flat_map(|speak| &speak.some).take(MOST_NAMES);
            concerned.extend(all.map(|(url, name, _)| (url.clone(), name.clone())));
        }
        concerned
    }

    /// True if no variant mentioned it before.
    fn add(&mut self, key: &str, value: &str, variant: &Variant) -> bool {
        let values = self.0.entry(key.to_owned()).or_default();
        let speak = values.entry(value.to_owned()).or_default();
        speak.count += 1;
        if speak.some.len() < MOST_NAMES {
            speak.some.insert(variant.clone());
        }
        speak.count == 1
    }

    fn forget(&mut self, key: &str, value: &str, variant: &Variant) {
        let Some(values) = self.0.get_mut(key) else {
            return;
        };
        if let Some(speak) = values.get_mut(value) {
            speak.count -= 1;
            speak.some.remove(variant);
            if speak.count == 0 {
                values.remove(value);
            }
        }
        if values.is_empty() {
            self.0.remove(key);
        }
    }

    /// Warns of values that no variant of these names serves; `held` are the
    /// variants of a name.
    pub(super) fn warn<R: AsRef<Resource>>(
        &self,
        names: &BTreeSet<Key>,
        given: &[BodyResource],
        held: impl Fn(&TypeUrl, &Name) -> Vec<R>,
    ) -> Vec<Detail> {
        let mut found = Vec::new();
        // Many names have the same variants.
        let mut judged: HashMap<Vec<Constraints>, Vec<(String, &str)>> = HashMap::new();
        for (url, name) in names {
            let held = held(url, name);
            let held = held.iter().map(AsRef::as_ref);
            let mut variants: Vec<_> = held.filter_map(|one| one.constraints.clone()).collect();
            if variants.len() < 2 || found.len() >= MOST {
                continue;
            }
            variants.sort();
            let unserved = match judged.entry(variants) {
                Entry::Occupied(judged) => judged.into_mut(),
                Entry::Vacant(new) => {
                    let unserved = self.unserved(new.key());
                    new.insert(unserved)
                }
            };
            let is = |one: &&BodyResource| one.type_url == *url && one.resource.name == *name;
            let place = match unserved.is_empty() {
                true => None,
                false => given.iter().find(is).map(|one| &one.place),
            };
            for (key, value) in unserved.iter().take(MOST - found.len()) {
                let message = self.message(url, name, key, value);
                found.push(match place {
                    Some(place) => place.wrong(message),
                    None => Detail::new(message),
                });
            }
        }
        found
    }

    fn unserved(&self, variants: &[Constraints]) -> Vec<(String, &str)> {
        let variants: Vec<&Constraints> = variants.iter().collect();
        let values = |key: &str| {
            let values = self.0.get(key).into_iter();
            values.flat_map(|values| values.keys().map(String::as_str))
        };
        // An undecidable case is no warning.
        Constraints::unserved(&variants, values).unwrap_or_default()
    }

    fn message(&self, url: &TypeUrl, name: &Name, key: &str, value: &str) -> String {
        let speaks = self.0.get(key).and_then(|values| values.get(value));
        let speaks = speaks
            .and_then(|speak| speak.some.first())
            .map(|(url, name, _)| {
                let kind = kinds::short(url);
                format!(" ({kind} {name:?} has a variant that speaks of it)")
            });
        format!(
            "no variant of {} {name:?} serves {key}={value}{}: clients with it are told that it \
             does not exist",
            kinds::short(url),
            speaks.unwrap_or_default()
        )
    }
}

/// The names with variants in the body.
pub(super) fn given_names(given: &[BodyResource]) -> impl Iterator<Item = Key> {
    let variants = given.iter();
    let variants = variants.filter(|one| one.resource.constraints.is_some());
    variants.map(|one| (one.type_url.clone(), one.resource.name.clone()))
}
