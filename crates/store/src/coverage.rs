//! Values that some variants are for, and that no variant of another name
//! serves: clients with such a value would be told that the other name does not
//! exist.

use std::collections::{BTreeMap, HashMap};

use trunkline::{Name, TypeUrl};
use trunkline_core::params::Constraints;

use crate::file::FileId;
use crate::item::{Item, Parsed};
use crate::problem::{Fault, MOST, Problem, Unserved};

/// A variant, and its place.
#[derive(Clone, Copy)]
struct Variant<'a> {
    file: &'a FileId,
    parsed: &'a Parsed,
    item: &'a Item,
    constraints: &'a Constraints,
}

/// The known values: by key and value, a variant that mentions it.
type Known<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Variant<'a>>>;

/// Unserved values, by the file with the first variant of the name. The cost
/// follows the number of files with constraints.
pub(crate) fn uncovered<'a>(
    files: impl Iterator<Item = (&'a FileId, &'a Parsed)>,
) -> BTreeMap<FileId, Vec<Problem>> {
    let mut known = Known::new();
    let mut names: Vec<Vec<Variant<'a>>> = Vec::new();
    let mut places: HashMap<(&TypeUrl, &Name), usize> = HashMap::new();
    for (file, parsed) in files.filter(|(_, parsed)| parsed.constrained) {
        for item in &parsed.items {
            let Some(constraints) = &item.resource.constraints else {
                continue;
            };
            let variant = Variant {
                file,
                parsed,
                item,
                constraints,
            };
            for (key, value) in constraints.values() {
                let values = known.entry(key).or_default();
                values.entry(value).or_insert(variant);
            }
            let name = (&item.type_url, &item.resource.name);
            let place = *places.entry(name).or_insert(names.len());
            match names.get_mut(place) {
                Some(variants) => variants.push(variant),
                None => names.push(vec![variant]),
            }
        }
    }
    let mut judge = Judge {
        known,
        found: BTreeMap::new(),
        count: 0,
        judged: HashMap::new(),
    };
    let several = names.iter().filter(|variants| variants.len() > 1);
    several.for_each(|variants| judge.name(variants));
    judge.found
}

struct Judge<'a> {
    known: Known<'a>,
    found: BTreeMap<FileId, Vec<Problem>>,
    count: usize,
    /// Results by variants: many names have the same ones.
    judged: HashMap<Vec<&'a Constraints>, Vec<(String, &'a str)>>,
}

impl<'a> Judge<'a> {
    fn name(&mut self, variants: &[Variant<'a>]) {
        if self.count >= MOST {
            return;
        }
        let mut constraints: Vec<_> = variants.iter().map(|one| one.constraints).collect();
        constraints.sort();
        let known = &self.known;
        let values = |key: &str| {
            let values = known.get(key).into_iter();
            values.flat_map(|values| values.keys().copied())
        };
        // An undecidable case is no warning.
        let judge = |all: &[&'a Constraints]| {
            let unserved = Constraints::unserved(all, values);
            unserved.unwrap_or_default()
        };
        let unserved = match self.judged.get(&constraints) {
            Some(unserved) => unserved.clone(),
            None => {
                let unserved = judge(&constraints);
                self.judged.insert(constraints, unserved.clone());
                unserved
            }
        };
        for (key, value) in unserved {
            self.unserved(variants[0], &key, value);
        }
    }

    fn unserved(&mut self, variant: Variant<'a>, key: &str, value: &str) {
        let by = self.known.get(key).and_then(|values| values.get(value));
        let Some(by) = by.filter(|_| self.count < MOST) else {
            return;
        };
        let unserved = Unserved {
            type_url: variant.item.type_url.clone(),
            name: variant.item.resource.name.clone(),
            key: key.to_owned(),
            value: value.to_owned(),
            by_type: by.item.type_url.clone(),
            by_name: by.item.resource.name.clone(),
            by: by.parsed.place(by.item),
        };
        let fault = Fault::Unserved(Box::new(unserved));
        let problem = variant.parsed.problem(variant.item, fault);
        let file = FileId::clone(variant.file);
        self.found.entry(file).or_default().push(problem);
        self.count += 1;
    }
}
