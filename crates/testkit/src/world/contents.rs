//! The operator of a world: listeners, routes, clusters and endpoints that
//! always fit together.
//!
//! After every transaction each reference leads to a resource, so whatever a
//! client lacks at some moment, it lacks because of the order of its responses.
//! Some resources are bad: every client rejects them.
//!
//! In some worlds listeners also refer to secrets. Those need not be there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use trunkline_core::change::{Change, Transaction};
use trunkline_core::facts::{Facts, Reference};
use trunkline_core::kind::{CDS, EDS, LDS, RDS, SDS};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl};

/// Clusters below this number are never bad: a route that loses one of them is
/// a fault of the order.
pub const SOUND_CLUSTERS: usize = 4;
const CLUSTERS: usize = 7;
const ROUTES: usize = 3;

/// All that is published now, by type and name.
pub type Published = BTreeMap<(TypeUrl, Name), Arc<Resource>>;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Contents {
    published: Published,
    /// Which clusters each route leads to.
    routes: BTreeMap<usize, BTreeSet<usize>>,
    edits: u64,
    secrets: bool,
}

impl Contents {
    /// Nothing yet. One world of sixteen has secrets; no seed that is kept for
    /// what it once found is among them, so those go on finding it.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self {
            secrets: seed % 16 == 15,
            ..Self::default()
        }
    }

    /// Everything that is published.
    #[must_use]
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// Whether any client would reject it.
    #[must_use]
    pub fn is_bad(resource: &Resource) -> bool {
        let bad = |body: &Bytes| body.starts_with(b"bad");
        let refused = Self::is_unreadable(resource) || Self::is_invalid_cluster(resource);
        refused || resource.body.as_ref().is_some_and(bad)
    }

    /// Whether it is a negative answer (S35).
    #[must_use]
    pub fn is_unreadable(resource: &Resource) -> bool {
        let unreadable = |body: &Bytes| body.starts_with(b"\x0a") && body.ends_with(b"\x07");
        resource.body.as_ref().is_some_and(unreadable)
    }

    /// Whether it is an invalid cluster (S82). It can be read, and is rejected
    /// alone.
    #[must_use]
    pub fn is_invalid_cluster(resource: &Resource) -> bool {
        let invalid = |body: &Bytes| body.starts_with(b"\x0a") && body.ends_with(b"\x10\x03");
        resource.body.as_ref().is_some_and(invalid)
    }

    /// The name of a cluster and of its endpoints.
    #[must_use]
    pub fn cluster(number: usize) -> Name {
        Name::new(&format!("c{number}"))
    }

    /// All of it as one transaction, for a server that begins.
    #[must_use]
    pub fn load(&self) -> Transaction {
        let upsert = |((url, _), resource): (&(TypeUrl, Name), &Arc<Resource>)| {
            Change::Upsert(url.clone(), Arc::clone(resource))
        };
        self.published.iter().map(upsert).collect()
    }

    /// A random transaction that keeps everything fitting together.
    pub fn edit(&mut self, rng: &mut Rng) -> Transaction {
        let before = self.published.clone();
        for _ in 0..rng.usize(1..4) {
            match rng.u8(0..10) {
                0..4 => self.point_route_elsewhere(rng),
                4..6 => self.touch(rng, CDS),
                6..8 => self.touch(rng, EDS),
                8 => self.drop_route(rng),
                _ => self.touch(rng, LDS),
            }
        }
        self.drop_unused(rng);
        if self.secrets {
            self.edit_secret(rng);
        }
        difference(&before, &self.published)
    }

    fn point_route_elsewhere(&mut self, rng: &mut Rng) {
        let route = rng.usize(0..ROUTES);
        let clusters: BTreeSet<_> = (0..rng.usize(1..4))
            .map(|_| rng.usize(0..CLUSTERS))
            .collect();
        for cluster in &clusters {
            self.ensure_cluster(rng, *cluster);
        }
        let to = clusters.iter().map(|c| (CDS, Self::cluster(*c)));
        self.put(rng, RDS, &format!("r{route}"), to.collect(), 20);
        self.routes.insert(route, clusters);
        let mut to = vec![(RDS, Name::new(&format!("r{route}")))];
        if self.secrets {
            to.push((SDS, Name::new(&format!("s{route}"))));
        }
        if !self.has(LDS, &format!("l{route}")) {
            self.put(rng, LDS, &format!("l{route}"), to, 30);
        }
    }

    fn edit_secret(&mut self, rng: &mut Rng) {
        let secret = format!("s{}", rng.usize(0..ROUTES));
        match rng.u8(0..3) {
            0 => {}
            1 => self.remove(SDS, &secret),
            _ => self.put(rng, SDS, &secret, Vec::new(), 8),
        }
    }

    fn drop_route(&mut self, rng: &mut Rng) {
        let route = rng.usize(0..ROUTES);
        self.routes.remove(&route);
        self.remove(LDS, &format!("l{route}"));
        self.remove(RDS, &format!("r{route}"));
    }

    fn touch(&mut self, rng: &mut Rng, url: &str) {
        let of_type = |(key, _): &(&(TypeUrl, Name), _)| key.0.as_str() == url;
        let names: Vec<_> = self
            .published
            .iter()
            .filter(of_type)
            .map(|(k, _)| k.1.clone())
            .collect();
        if let Some(name) = rng.choice(names) {
            let old = &self.published[&(url.into(), name.clone())];
            let to = old.facts().references.iter();
            let to = to
                .map(|r| (leak_free(&r.type_url), r.name.clone()))
                .collect();
            self.put(rng, url, name.as_str(), to, 8);
        }
    }

    fn ensure_cluster(&mut self, rng: &mut Rng, number: usize) {
        let name = Self::cluster(number);
        if !self.has(CDS, name.as_str()) {
            self.put(rng, EDS, name.as_str(), Vec::new(), 20);
            self.put(rng, CDS, name.as_str(), vec![(EDS, name.clone())], 8);
        }
    }

    fn drop_unused(&mut self, rng: &mut Rng) {
        for number in 0..CLUSTERS {
            let used = self
                .routes
                .values()
                .any(|clusters| clusters.contains(&number));
            if !used && rng.bool() {
                self.remove(CDS, Self::cluster(number).as_str());
                self.remove(EDS, Self::cluster(number).as_str());
            }
        }
    }

    /// Publishes something new; one in `bad` of it is bad, where that may be.
    fn put(&mut self, rng: &mut Rng, url: &str, name: &str, to: Vec<(&str, Name)>, bad: usize) {
        self.edits += 1;
        let sound = (0..SOUND_CLUSTERS).any(|n| url == CDS && Self::cluster(n).as_str() == name);
        let prefix = if !sound && rng.usize(0..bad) == 0 {
            "bad"
        } else {
            "good"
        };
        let body = Bytes::from(format!("{prefix} {name} {}", self.edits));
        let mut references: Vec<_> = to
            .into_iter()
            .map(|(url, name)| Reference {
                type_url: url.into(),
                name,
            })
            .collect();
        references.sort();
        let resource = Resource {
            facts: Some(Box::new(Facts {
                references: references.into(),
                ..Facts::default()
            })),
            ..Resource::new(Name::new(name), body)
        };
        self.published
            .insert((url.into(), Name::new(name)), Arc::new(resource));
    }

    fn has(&self, url: &str, name: &str) -> bool {
        self.published.contains_key(&(url.into(), Name::new(name)))
    }

    fn remove(&mut self, url: &str, name: &str) {
        self.published.remove(&(url.into(), Name::new(name)));
    }
}

/// The table's own spelling of a type that is in it.
fn leak_free(url: &TypeUrl) -> &'static str {
    let known = trunkline_core::kind::ALL
        .iter()
        .find(|known| **known == url.as_str());
    known.copied().unwrap_or(CDS)
}

fn difference(before: &Published, after: &Published) -> Transaction {
    let gone = before.keys().filter(|key| !after.contains_key(key));
    let removed = gone.map(|(url, name)| Change::Remove(url.clone(), name.clone()));
    let new = after
        .iter()
        .filter(|(key, resource)| before.get(*key) != Some(resource));
    let upserts = new.map(|((url, _), r)| Change::Upsert(url.clone(), Arc::clone(r)));
    removed.chain(upserts).collect()
}
