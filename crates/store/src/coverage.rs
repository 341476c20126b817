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
    document: &'a Document,
    item: &'a Item,
    constraints: &'a Constraints,
}

/// The known values: by key and value, a variant that mentions it.
type Known<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Variant<'a>>>;

/// Finds the values that some variant mentions and that no variant of another
/// name serves. Only names with several variants are checked. Returns the
/// warnings, at most [`MOST_FINDINGS`], by the file with the first variant of
/// the name. Files without constraints cost nothing.
pub(crate) fn find_unserved_values<'a>(
    files: impl Iterator<Item = (&'a FileId, &'a Document)>,
) -> BTreeMap<FileId, Vec<Finding>> {
    let mut known = Known::new();
    let mut names = Names::default();
    let constrained = files.filter(|(_, document)| document.constrained);
    for variant in constrained.flat_map(|(file, document)| list_variants(file, document)) {
        for (key, value) in variant.constraints.values() {
            let values = known.entry(key).or_default();
            values.entry(value).or_insert(variant);
        }
        names.add(variant);
    }

    let mut check = Check {
        known,
        found: BTreeMap::new(),
        count: 0,
        checked: HashMap::new(),
    };
    for variants in names.variants {
        if variants.len() > 1 {
            check.check_name(&variants);
        }
    }
    check.found
}

/// Lists the resources of a file that have constraints.
fn list_variants<'a>(
    file: &'a FileId,
    document: &'a Document,
) -> impl Iterator<Item = Variant<'a>> {
    document.items.iter().filter_map(move |item| {
        Some(Variant {
            file,
            document,
            item,
            constraints: item.resource.constraints.as_ref()?,
        })
    })
}

/// The variants of each name, names in the order of their first variants.
#[derive(Default)]
struct Names<'a> {
    variants: Vec<Vec<Variant<'a>>>,
    /// The index of each name in `variants`.
    indexes: HashMap<(&'a TypeUrl, &'a Name), usize>,
}

impl<'a> Names<'a> {
    /// Adds a variant to those of its name, or as the first of a new name.
    fn add(&mut self, variant: Variant<'a>) {
        let name = (&variant.item.type_url, &variant.item.resource.name);
        let index = *self.indexes.entry(name).or_insert(self.variants.len());
        match self.variants.get_mut(index) {
            Some(variants) => variants.push(variant),
            None => self.variants.push(vec![variant]),
        }
    }
}

/// Checks which values the variants of a name leave out.
struct Check<'a> {
    known: Known<'a>,
    found: BTreeMap<FileId, Vec<Finding>>,
    /// The number of warnings in `found`.
    count: usize,
    /// Results by variants: many names have the same ones.
    checked: HashMap<Vec<&'a Constraints>, Vec<(String, &'a str)>>,
}

impl<'a> Check<'a> {
    /// Adds the warnings for one name, which has these variants; none, if there
    /// are enough already.
    fn check_name(&mut self, variants: &[Variant<'a>]) {
        if self.count >= MOST_FINDINGS {
            return;
        }

        let mut constraints: Vec<_> = variants.iter().map(|v| v.constraints).collect();
        constraints.sort();
        let unserved = match self.checked.get(&constraints) {
            Some(unserved) => unserved.clone(),
            None => {
                let unserved = self.unserved_values(&constraints);
                self.checked.insert(constraints, unserved.clone());
                unserved
            }
        };

        for (key, value) in unserved {
            self.warn(variants[0], &key, value);
        }
    }

    /// Returns the known values that none of these constraints matches, each
    /// after its key. If that cannot be decided, there are none: a warning must
    /// be certain.
    fn unserved_values(&self, constraints: &[&'a Constraints]) -> Vec<(String, &'a str)> {
        let known_values = |key: &str| {
            let values = self.known.get(key).into_iter();
            values.flat_map(|values| values.keys().copied())
        };
        Constraints::unserved(constraints, known_values).unwrap_or_default()
    }

    /// Adds a warning that a name does not serve a value. Its place is that of
    /// the name's first `variant`; it tells of another variant that mentions
    /// the value. Beyond [`MOST_FINDINGS`] nothing is added.
    fn warn(&mut self, variant: Variant<'a>, key: &str, value: &str) {
        if self.count >= MOST_FINDINGS {
            return;
        }
        let Some(by) = self.known.get(key).and_then(|values| values.get(value)) else {
            return;
        };

        let unserved = Unserved {
            type_url: variant.item.type_url.clone(),
            name: variant.item.resource.name.clone(),
            key: key.to_owned(),
            value: value.to_owned(),
            by_type: by.item.type_url.clone(),
            by_name: by.item.resource.name.clone(),
            by: by.document.place(by.item),
        };
        let fault = Fault::Unserved(Box::new(unserved));
        let warning = variant.document.finding(variant.item, fault);
        let file = FileId::clone(variant.file);
        self.found.entry(file).or_default().push(warning);
        self.count += 1;
    }
}
