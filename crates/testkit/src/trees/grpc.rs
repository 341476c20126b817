//! A client with the habits of gRPC: one listener by name, and down the tree
//! from there, each name when it is known.
//!
//! When the tree changes, it goes on routing by the one that it has until the
//! new one is whole, and drops the names of the old one then; but the name of
//! the old routes it drops first (Go by an empty list, C-core by the new name),
//! if it is not Java.

use std::collections::BTreeSet;
use std::sync::Arc;

use fastrand::Rng;
use trunkline_core::kind::{CDS, EDS, LDS, RDS};
use trunkline_core::message::{Mode, Response};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl};

use super::contents::{Published, is_bad, is_empty, references};
use super::wire::{Names, News, Wire};
use crate::world::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Go,
    Core,
    Java,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Grpc {
    pub(super) wire: Wire,
    /// The resources that it accepted.
    pub(super) held: Published,
    listener: Name,
    language: Language,
    /// The clusters that calls go to now, and the routes that lead there.
    used: BTreeSet<Name>,
    used_routes: Option<Name>,
    /// Those of them that were removed when that could do no harm.
    spared: BTreeSet<Name>,
}

impl Grpc {
    pub(super) fn new(mode: Mode, rng: &mut Rng) -> Self {
        let language = [Language::Go, Language::Core, Language::Java][rng.usize(0..3)];
        let listener = Name::new(["l0", "l1"][rng.usize(0..2)]);
        let mut grpc = Self {
            wire: Wire::new(mode, "gRPC"),
            held: Published::new(),
            listener,
            language,
            used: BTreeSet::new(),
            used_routes: None,
            spared: BTreeSet::new(),
        };
        grpc.go_on();
        grpc
    }

    pub(super) fn take(&mut self, response: Response) -> Result<(), Fault> {
        let news = News::from(response);
        self.wire.received(&news);
        for name in news.gone(&self.held) {
            self.held.remove(&(news.url.clone(), name));
        }
        let mut error = None;
        for resource in &news.resources {
            if is_bad(news.url.as_str(), resource) {
                error = Some(format!("{}: not good", resource.name));
                continue;
            }
            let key = (news.url.clone(), resource.name.clone());
            self.held.insert(key, Arc::clone(resource));
        }
        self.wire.answer(&news, error);
        self.spare();
        let fine = self.can_route();
        self.go_on();
        fine
    }

    fn get(&self, url: &str, name: &Name) -> Option<&Arc<Resource>> {
        let found = self.held.get(&(url.into(), name.clone()));
        found.filter(|resource| !is_empty(resource))
    }

    /// The routes that the listener names now.
    fn routes(&self) -> Option<Name> {
        let listener = self.get(LDS, &self.listener)?;
        references(listener, RDS).next().cloned()
    }

    /// The clusters that the newest routes lead to, if those are there.
    fn next(&self) -> Option<BTreeSet<Name>> {
        let listener = self.get(LDS, &self.listener)?;
        let routes = match self.routes() {
            None => listener,
            Some(name) => self.get(RDS, &name)?,
        };
        Some(references(routes, CDS).cloned().collect())
    }

    fn has(&self, cluster: &Name) -> bool {
        let Some(found) = self.get(CDS, cluster) else {
            return false;
        };
        references(found, EDS).all(|name| self.get(EDS, name).is_some())
    }

    /// Moves to the new tree if it is whole, and subscribes to the names that
    /// are needed now.
    fn go_on(&mut self) {
        let next = self.next();
        if let Some(next) = &next
            && next.iter().all(|cluster| self.has(cluster))
        {
            self.used.clone_from(next);
            self.used_routes = self.routes();
            self.spared.clear();
        }
        self.ask(LDS, Names::from([self.listener.to_string()]));
        let mut routes: Names = self.routes().iter().map(ToString::to_string).collect();
        if self.language == Language::Java {
            routes.extend(self.used_routes.iter().map(ToString::to_string));
        }
        let asked = self.wire.names(RDS);
        if self.language == Language::Go && !asked.is_empty() && asked != routes {
            self.ask(RDS, Names::new());
        }
        self.ask(RDS, routes);
        let clusters: BTreeSet<Name> = next
            .into_iter()
            .flatten()
            .chain(self.used.clone())
            .collect();
        self.ask(CDS, clusters.iter().map(ToString::to_string).collect());
        let there = clusters.iter().filter_map(|name| self.get(CDS, name));
        let endpoints = there
            .flat_map(|r| references(r, EDS))
            .map(ToString::to_string)
            .collect();
        self.ask(EDS, endpoints);
    }

    fn ask(&mut self, url: &str, names: Names) {
        let of = TypeUrl::from(url);
        self.held
            .retain(|(url, name), _| *url != of || names.contains(name.as_str()));
        self.wire.ask(url, names, &self.held);
    }

    pub(super) fn reconnect(&mut self, rng: &mut Rng) {
        self.wire.reconnect(&self.held, rng);
    }

    /// On a stream that resumes, a server may not know what the client held: it
    /// may leave that out once the new routes are there (S81, S82).
    fn spare(&mut self) {
        let successor = self.next().is_some_and(|next| next != self.used);
        if self.wire.resumed && successor {
            let gone = self.used.iter().filter(|cluster| !self.has(cluster));
            let gone: Vec<_> = gone.cloned().collect();
            self.spared.extend(gone);
        }
    }

    /// The client holds what calls go to (S81, S82).
    pub(super) fn can_route(&self) -> Result<(), Fault> {
        if !self.used.is_empty() && self.get(LDS, &self.listener).is_none() {
            return Err(format!("lost {}", self.listener));
        }
        let lost = |name: &&Name| !self.has(name) && !self.spared.contains(*name);
        match self.used.iter().find(lost) {
            None => Ok(()),
            Some(cluster) => Err(format!("{:?} uses {cluster}, which it lost", self.language)),
        }
    }

    /// In the end it uses the newest tree.
    pub(super) fn has_moved(&self) -> Result<(), Fault> {
        match self.next().as_ref() == Some(&self.used) && !self.used.is_empty() {
            true => Ok(()),
            false => Err(format!("uses {:?}, and not {:?}", self.used, self.next())),
        }
    }
}
