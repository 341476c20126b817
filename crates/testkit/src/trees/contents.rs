//! The operator of a world of trees: listeners that lead to a cluster with
//! endpoints, by routes of their own or by routes inside.
//!
//! Every transaction leaves each tree whole, so a client that ever had one can
//! route for ever. Names are used again: one that was removed may return within
//! a drain. Beside the trees there are clusters that nothing leads to, and only
//! they are bad.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use trunkline_core::change::{Change, Transaction};
use trunkline_core::facts::{Facts, Reference};
use trunkline_core::kind::{CDS, EDS, LDS, RDS};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl};

/// How many listeners there are.
pub(super) const LISTENERS: usize = 2;
/// Clusters, and as many names of routes.
const NAMES: usize = 5;
/// Clusters beside the trees; the second half under a glob.
pub(super) const EXTRAS: [&str; 6] = [
    "x0",
    "x1",
    "x2",
    "xdstp://a/t/g/y0",
    "xdstp://a/t/g/y1",
    "xdstp://a/t/h/y2",
];

/// All that is published, by type and name.
pub(super) type Published = BTreeMap<(TypeUrl, Name), Arc<Resource>>;

/// Where a listener leads.
#[derive(Clone, Copy, Debug)]
struct Tree {
    /// `None` if its routes are inside.
    route: Option<usize>,
    cluster: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) published: Published,
    trees: [Tree; LISTENERS],
    edits: u64,
    bad: bool,
}

impl Contents {
    /// Whole trees from the start; with bad clusters beside them or without.
    pub(super) fn new(rng: &mut Rng, bad: bool) -> Self {
        let tree = |route| Tree {
            route: Some(route),
            cluster: 0,
        };
        let mut contents = Self {
            published: Published::new(),
            trees: [tree(0), tree(1)],
            edits: 0,
            bad,
        };
        for listener in 0..LISTENERS {
            contents.lead(rng, listener);
        }
        contents
    }

    /// A random transaction.
    pub(super) fn edit(&mut self, rng: &mut Rng) {
        let listener = rng.usize(0..LISTENERS);
        match rng.u8(0..12) {
            // To other routes and another cluster.
            0..3 => self.trees[listener] = random_tree(rng, Some(listener)),
            // To another cluster by the same routes.
            3..5 => self.trees[listener].cluster = rng.usize(0..NAMES),
            5 => self.trees[listener].route = None,
            6 => self.touch(rng, EDS),
            7 => self.touch(rng, CDS),
            8 => self.touch(rng, RDS),
            9 => self.touch(rng, LDS),
            _ => self.edit_extra(rng),
        }
        self.lead(rng, listener);
    }

    /// Every resource that a tree needs exists, and no other.
    fn lead(&mut self, rng: &mut Rng, listener: usize) {
        let Tree { route, cluster } = self.trees[listener];
        let cluster = Name::new(&format!("k{cluster}"));
        self.ensure(EDS, &cluster, &[]);
        self.ensure(CDS, &cluster, &[(EDS, cluster.clone())]);
        let name = Name::new(&format!("l{listener}"));
        match route {
            None => self.ensure(LDS, &name, &[(CDS, cluster)]),
            Some(route) => {
                let route = Name::new(&format!("r{route}"));
                self.ensure(RDS, &route, &[(CDS, cluster)]);
                self.ensure(LDS, &name, &[(RDS, route)]);
            }
        }
        // Now and then a resource stays for a while that nothing leads to.
        if rng.u8(0..4) > 0 {
            self.drop_unused();
        }
    }

    fn drop_unused(&mut self) {
        let listeners = (0..LISTENERS).map(|l| (TypeUrl::from(LDS), Name::new(&format!("l{l}"))));
        let mut used: BTreeSet<_> = listeners.collect();
        let mut found: Vec<_> = used.iter().cloned().collect();
        while let Some(key) = found.pop() {
            let refers = self.published.get(&key).into_iter();
            for to in refers.flat_map(|r| r.facts().references.iter()) {
                let key = (to.type_url.clone(), to.name.clone());
                if used.insert(key.clone()) {
                    found.push(key);
                }
            }
        }
        let extra = |name: &Name| EXTRAS.contains(&name.as_str());
        self.published
            .retain(|key, _| used.contains(key) || extra(&key.1));
    }

    /// A cluster beside the trees is added, changed, made bad or removed.
    fn edit_extra(&mut self, rng: &mut Rng) {
        let name = Name::new(EXTRAS[rng.usize(0..EXTRAS.len())]);
        match rng.u8(0..5) {
            0 => {
                self.published.remove(&(CDS.into(), name));
            }
            1 if self.bad => self.put(CDS, &name, &[], "bad"),
            _ => self.put(CDS, &name, &[], "good"),
        }
    }

    /// Another body for an existing resource.
    fn touch(&mut self, rng: &mut Rng, url: &str) {
        let of_type =
            |(of, name): &&(TypeUrl, Name)| of.as_str() == url && !EXTRAS.contains(&name.as_str());
        let keys: Vec<_> = self.published.keys().filter(of_type).cloned().collect();
        if let Some(key) = rng.choice(keys) {
            let to = self.published[&key].facts().references.clone();
            let to: Vec<_> = to
                .iter()
                .map(|r| (r.type_url.as_str(), r.name.clone()))
                .collect();
            self.put(url, &key.1, &to, "good");
        }
    }

    /// The resource exists and has this reference, with the body it has if that
    /// is so.
    fn ensure(&mut self, url: &str, name: &Name, to: &[(&str, Name)]) {
        let held = self.published.get(&(url.into(), name.clone()));
        let same = held.is_some_and(|held| {
            let refers = held.facts().references.iter();
            refers
                .map(|r| (r.type_url.as_str(), r.name.clone()))
                .eq(to.iter().cloned())
        });
        if !same {
            self.put(url, name, to, "good");
        }
    }

    fn put(&mut self, url: &str, name: &Name, to: &[(&str, Name)], word: &str) {
        self.edits += 1;
        let references = to.iter().map(|(url, name)| Reference {
            type_url: (*url).into(),
            name: name.clone(),
        });
        let facts = Facts {
            references: references.collect::<Vec<_>>().into(),
            ..Facts::default()
        };
        let body = Bytes::from(format!("{word} {name} {}", self.edits));
        let resource = Resource {
            facts: Some(Box::new(facts)),
            ..Resource::new(name.clone(), body)
        };
        let key = (TypeUrl::from(url), name.clone());
        self.published.insert(key, Arc::new(resource));
    }
}

fn random_tree(rng: &mut Rng, listener: Option<usize>) -> Tree {
    // Routes of two listeners have different names: each leads to one cluster.
    let own = listener.unwrap_or_default();
    Tree {
        route: Some(own + LISTENERS * rng.usize(0..NAMES)),
        cluster: rng.usize(0..NAMES),
    }
}

/// The changes from one state of the contents to another.
pub(super) fn difference(before: &Published, after: &Published) -> Transaction {
    let gone = before.keys().filter(|key| !after.contains_key(key));
    let removed = gone.map(|(url, name)| Change::Remove(url.clone(), name.clone()));
    let new = after.iter().filter(|(key, r)| before.get(*key) != Some(r));
    let upserts = new.map(|((url, _), r)| Change::Upsert(url.clone(), Arc::clone(r)));
    removed.chain(upserts).collect()
}

/// The names of one type that a resource refers to.
pub(super) fn references<'a>(
    resource: &'a Resource,
    url: &'a str,
) -> impl Iterator<Item = &'a Name> {
    let all = resource.facts().references.iter();
    all.filter(move |r| r.type_url.as_str() == url)
        .map(|r| &r.name)
}

/// A resource that has its name and nothing that could be used.
pub(super) fn is_empty(resource: &Resource) -> bool {
    let body = resource.body.as_deref().unwrap_or_default();
    body.is_empty() || body.first() == Some(&0x0a)
}

/// Whether every client rejects it: bad ones, and invalid clusters (S82).
pub(super) fn is_bad(url: &str, resource: &Resource) -> bool {
    let body = resource.body.as_deref().unwrap_or_default();
    body.starts_with(b"bad") || (url == CDS && is_empty(resource))
}
