//! What the server has: bodies with a number and the names that they refer to,
//! such as `good 17 rds/r1`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use trunkline_core::facts::{Facts, Reference};
use trunkline_core::kind::{CDS, EDS, LDS, RDS};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl};

/// The names that may be roots.
pub(super) const ROOTS: [&str; 3] = ["lds/l0", "lds/l1", "cds/k0"];

/// See the module's documentation. Resources are named `cds/k0`.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) bodies: BTreeMap<String, String>,
    edits: u64,
}

impl Contents {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let mut contents = Self {
            bodies: BTreeMap::new(),
            edits: 0,
        };
        for root in ROOTS {
            contents.build(rng, root);
        }
        contents
    }

    /// A transaction, which it returns in words.
    pub(super) fn edit(&mut self, rng: &mut Rng) -> String {
        let before = self.bodies.clone();
        match rng.u8(..10) {
            // A whole tree anew, with what it refers to.
            0..=4 => {
                let root = ROOTS[rng.usize(..ROOTS.len())];
                self.build(rng, root);
            }
            // Another body with the same references.
            5..=7 => {
                let names: Vec<_> = self.bodies.keys().cloned().collect();
                let name = &names[rng.usize(..names.len())];
                let references = references(&self.bodies[name]);
                let word = if rng.u8(..6) == 0 { "bad" } else { "good" };
                self.put(name, word, &references);
            }
            // Something is gone, whoever refers to it.
            8 => {
                let names = self.bodies.keys().filter(|name| !name.starts_with("lds"));
                let names: Vec<_> = names.cloned().collect();
                if let Some(name) = names.get(rng.usize(..names.len().max(1))) {
                    self.bodies.remove(name);
                }
            }
            _ => self.remove_unused(),
        }
        let changed = self
            .bodies
            .iter()
            .filter(|(name, body)| before.get(*name) != Some(*body));
        let changed: Vec<_> = changed
            .map(|(name, body)| format!("{name} = {body}"))
            .collect();
        let gone = before
            .keys()
            .filter(|name| !self.bodies.contains_key(*name));
        let gone: Vec<_> = gone.collect();
        format!("server: {changed:?}, without {gone:?}")
    }

    /// A resource gets other references, and these exist.
    fn build(&mut self, rng: &mut Rng, name: &str) {
        let (kind, _) = name.split_once('/').unwrap_or_default();
        let references = match kind {
            "lds" => vec![format!("rds/r{}", rng.u8(..3))],
            "rds" => (0..rng.u8(1..=2))
                .map(|_| format!("cds/k{}", rng.u8(..4)))
                .collect(),
            "cds" => cluster(rng, name),
            _ => Vec::new(),
        };
        self.put(name, "good", &references);
        for reference in &references {
            if !self.bodies.contains_key(reference) || rng.u8(..3) == 0 {
                self.build(rng, reference);
            }
        }
    }

    fn remove_unused(&mut self) {
        let mut used: BTreeSet<String> = ROOTS.iter().map(ToString::to_string).collect();
        let mut open: Vec<_> = used.iter().cloned().collect();
        while let Some(name) = open.pop() {
            let found = self.bodies.get(&name).map(|body| references(body));
            for reference in found.unwrap_or_default() {
                if used.insert(reference.clone()) {
                    open.push(reference);
                }
            }
        }
        self.bodies.retain(|name, _| used.contains(name));
    }

    fn put(&mut self, name: &str, word: &str, references: &[String]) {
        self.edits += 1;
        let body = format!("{word} {} {}", self.edits, references.join(" "));
        self.bodies
            .insert(name.to_owned(), body.trim_end().to_owned());
    }
}

/// A cluster has endpoints, or is one of clusters with greater numbers.
fn cluster(rng: &mut Rng, name: &str) -> Vec<String> {
    let number: u8 = name
        .rsplit('k')
        .next()
        .unwrap_or_default()
        .parse()
        .unwrap_or_default();
    match number < 3 && rng.u8(..4) == 0 {
        true => vec![format!("cds/k{}", number + 1)],
        false => vec![name.replace("cds/", "eds/")],
    }
}

/// The names that a body refers to, each once.
pub(super) fn references(body: &str) -> Vec<String> {
    let words: BTreeSet<_> = body.split(' ').skip(2).map(ToOwned::to_owned).collect();
    words.into_iter().collect()
}

/// The number of a body.
pub(super) fn number(body: &str) -> u64 {
    let number = body.split(' ').nth(1).and_then(|word| word.parse().ok());
    number.unwrap_or_default()
}

/// The type and the name of a text such as `cds/k0`.
pub(super) fn split(text: &str) -> (TypeUrl, Name) {
    let (kind, name) = text.split_once('/').unwrap_or_default();
    let url = match kind {
        "lds" => LDS,
        "rds" => RDS,
        "cds" => CDS,
        _ => EDS,
    };
    (url.into(), Name::new(name))
}

/// The text of a type and a name.
pub(super) fn text(url: &TypeUrl, name: &Name) -> String {
    let kind = match url.as_str() {
        LDS => "lds",
        RDS => "rds",
        CDS => "cds",
        _ => "eds",
    };
    format!("{kind}/{name}")
}

/// A resource with the facts of its body.
pub(super) fn resource(name: &Name, body: &str) -> Arc<Resource> {
    let references = references(body);
    let references = references.iter().map(|reference| {
        let (type_url, name) = split(reference);
        Reference { type_url, name }
    });
    let facts = Facts {
        references: references.collect::<Vec<_>>().into(),
        ..Facts::default()
    };
    Arc::new(Resource {
        facts: Some(Box::new(facts)),
        ..Resource::new(name.clone(), Bytes::from(body.to_owned()))
    })
}
