//! Values that some variants are for, and that no variant of another name
//! serves: clients with such a value would be told that the other name does not
//! exist.

use std::collections::{BTreeMap, HashMap};

use trunkline::checked::{Document, Fault, Finding, Item, MOST_FINDINGS, Unserved};
use trunkline::{Name, TypeUrl};
use trunkline_core::params::Constraints;

use crate::file::FileId;

/// A variant, and its place.
#[derive(Clone, Copy)]
struct Variant<'a> {
    file: &'a FileId,
    parsed: &'a Document,
    item: &'a Item,
    constraints: &'a Constraints,
}

/// The known values: by key and value, a variant that mentions it.
type Known<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Variant<'a>>>;

/// Finds the values that no variant of a name serves. Returns the warnings by
/// the file with the first variant of the name. The cost follows the number of
/// files with constraints.
pub(crate) fn uncovered<'a>(
    files: impl Iterator<Item = (&'a FileId, &'a Document)>,
) -> BTreeMap<FileId, Vec<Finding>> {
    let mut known = Known::new();
    let mut names = Names::default();
    let constrained = files.filter(|(_, parsed)| parsed.constrained);
    for variant in constrained.flat_map(|(file, parsed)| variants(file, parsed)) {
        for (key, value) in variant.constraints.values() {
            let values = known.entry(key).or_default();
            values.entry(value).or_insert(variant);
        }
        names.add(variant);
    }
    let mut judge = Judge {
        known,
        found: BTreeMap::new(),
        count: 0,
        judged: HashMap::new(),
    };
    let several = names.variants.iter().filter(|variants| variants.len() > 1);
    several.for_each(|variants| judge.name(variants));
    judge.found
}

/// Lists the resources of a file that have constraints.
fn variants<'a>(file: &'a FileId, parsed: &'a Document) -> impl Iterator<Item = Variant<'a>> {
    parsed.items.iter().filter_map(move |item| {
        Some(Variant {
            file,
            parsed,
            item,
            constraints: item.resource.constraints.as_ref()?,
        })
    })
}

/// The variants of each name, names in the order of their first variants.
#[derive(Default)]
struct Names<'a> {
    variants: Vec<Vec<Variant<'a>>>,
    /// The index of each name.
    places: HashMap<(&'a TypeUrl, &'a Name), usize>,
}

impl<'a> Names<'a> {
    /// Adds a variant to those of its name.
    fn add(&mut self, variant: Variant<'a>) {
        let name = (&variant.item.type_url, &variant.item.resource.name);
        let place = *self.places.entry(name).or_insert(self.variants.len());
        match self.variants.get_mut(place) {
            Some(variants) => variants.push(variant),
            None => self.variants.push(vec![variant]),
        }
    }
}

/// Decides which values the variants of a name leave out.
struct Judge<'a> {
    known: Known<'a>,
    found: BTreeMap<FileId, Vec<Finding>>,
    /// The number of warnings in `found`.
    count: usize,
    /// Results by variants: many names have the same ones.
    judged: HashMap<Vec<&'a Constraints>, Vec<(String, &'a str)>>,
}

impl<'a> Judge<'a> {
    /// Adds the warnings for one name, which has these variants.
    fn name(&mut self, variants: &[Variant<'a>]) {
        if self.count >= MOST_FINDINGS {
            return;
        }
        let mut constraints: Vec<_> = variants.iter().map(|one| one.constraints).collect();
        constraints.sort();
        let unserved = match self.judged.get(&constraints) {
            Some(unserved) => unserved.clone(),
            None => {
                let unserved = self.judge(&constraints);
                self.judged.insert(constraints, unserved.clone());
                unserved
            }
        };
        for (key, value) in unserved {
            self.warn(variants[0], &key, value);
        }
    }

    /// Returns the keys and values that none of these constraints matches. If
    /// that cannot be decided, there are none: a warning must be certain.
    fn judge(&self, constraints: &[&'a Constraints]) -> Vec<(String, &'a str)> {
        let values = |key: &str| {
            let values = self.known.get(key).into_iter();
            values.flat_map(|values| values.keys().copied())
        };
        Constraints::unserved(constraints, values).unwrap_or_default()
    }

    /// Adds a warning at the first variant of a name that does not serve a
    /// value, with a variant of another name that mentions the value.
    fn warn(&mut self, variant: Variant<'a>, key: &str, value: &str) {
        let by = self.known.get(key).and_then(|values| values.get(value));
        let Some(by) = by.filter(|_| self.count < MOST_FINDINGS) else {
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
        let problem = variant.parsed.finding(variant.item, fault);
        let file = FileId::clone(variant.file);
        self.found.entry(file).or_default().push(problem);
        self.count += 1;
    }
}
