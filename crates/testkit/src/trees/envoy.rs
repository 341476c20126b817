//! A client with the habits of Envoy: all clusters and listeners, endpoints of
//! clusters, routes of listeners.
//!
//! A changed cluster warms until its endpoints come again, and until then the
//! ACK of the response that brought it is withheld. A changed listener warms
//! until its routes are there; the one that it replaces drains, and goes on
//! using its routes until then. The good part of a NACKed response is applied.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::kind::{CDS, EDS, LDS, RDS};
use trunkline_core::message::{Mode, Response};
use trunkline_core::name::Name;
use trunkline_core::resource::Resource;

use super::contents::{Published, is_bad, is_empty, references};
use super::wire::{Names, News, Wire};
use crate::world::Fault;

/// How long a cluster waits for its endpoints.
const PATIENCE: Duration = Duration::from_secs(15);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Envoy {
    pub(super) wire: Wire,
    /// The resources that it accepted.
    pub(super) held: Published,
    /// Clusters that wait for endpoints, and for how long at most.
    warming: BTreeMap<Name, (Arc<Resource>, Moment)>,
    /// It has had a set of clusters.
    has_clusters: bool,
    /// Responses about clusters that wait for endpoints, and why they are
    /// NACKed.
    withheld: Vec<(News, Option<String>)>,
    active: BTreeMap<Name, Arc<Resource>>,
    /// Listeners that wait for their routes.
    coming: BTreeMap<Name, Arc<Resource>>,
    draining: Vec<(Arc<Resource>, Moment)>,
    /// Listeners with routes inside that drain, or serve until another is warm,
    /// and that this server never saw: no request tells of them.
    untold: Vec<Arc<Resource>>,
    /// A listener that a set lacked, although there always is one of its name.
    lost: Option<Name>,
    drain: Duration,
    /// NACKs a response as a whole for a resource that it cannot read.
    rejects_whole: bool,
}

impl Envoy {
    pub(super) fn new(mode: Mode, rng: &mut Rng) -> Self {
        let mut wire = Wire::new(mode, "envoy");
        wire.ask(CDS, all(), &Published::new());
        Self {
            wire,
            held: Published::new(),
            warming: BTreeMap::new(),
            has_clusters: false,
            withheld: Vec::new(),
            active: BTreeMap::new(),
            coming: BTreeMap::new(),
            draining: Vec::new(),
            untold: Vec::new(),
            lost: None,
            drain: Duration::from_secs([1, 10, 60][rng.usize(0..3)]),
            rejects_whole: rng.bool(),
        }
    }

    pub(super) fn take(&mut self, response: Response, now: Moment) {
        let news = News::from(response);
        self.wire.received(&news);
        let bad = |r: &&Arc<Resource>| is_bad(news.url.as_str(), r);
        let rejected: Vec<_> = news
            .resources
            .iter()
            .filter(bad)
            .map(|r| r.name.clone())
            .collect();
        // An invalid cluster can be read: it is rejected alone.
        let unread = news.resources.iter().filter(bad).any(|r| !is_empty(r));
        let errors = rejected.iter().map(|name| format!("{name}: not good"));
        let error = (!rejected.is_empty()).then(|| errors.collect::<Vec<_>>().join(", "));
        self.wire.unclear |= unread && news.resources.iter().any(|r| is_empty(r));
        if unread && self.rejects_whole {
            self.wire.answer(&news, Some("cannot be read".to_owned()));
            return;
        }
        for name in news.gone(&self.held) {
            self.held.remove(&(news.url.clone(), name));
        }
        match news.url.as_str() {
            CDS => return self.take_clusters(news, error, now),
            LDS => self.take_listeners(&news, now),
            _ => {}
        }
        for resource in news
            .resources
            .iter()
            .filter(|r| !rejected.contains(&r.name))
        {
            let key = (news.url.clone(), resource.name.clone());
            self.held.insert(key, Arc::clone(resource));
            if news.url.as_str() == EDS {
                self.endpoints_came(&resource.name);
            }
        }
        self.wire.answer(&news, error);
        self.go_on(now);
    }

    fn take_clusters(&mut self, news: News, error: Option<String>, now: Moment) {
        if news.whole {
            let listed = |name: &Name| news.resources.iter().any(|r| r.name == *name);
            self.warming.retain(|name, _| listed(name));
        }
        for name in &news.removed {
            self.warming.remove(name);
        }
        for resource in news.resources.iter().filter(|r| !is_bad(CDS, r)) {
            let key = (CDS.into(), resource.name.clone());
            if self.held.get(&key) == Some(resource) {
                self.warming.remove(&resource.name);
            } else if references(resource, EDS).next().is_some() {
                let waits = (Arc::clone(resource), now + PATIENCE);
                self.warming.insert(resource.name.clone(), waits);
            } else {
                self.held.insert(key, Arc::clone(resource));
            }
        }
        if error.is_none() {
            self.wire.accepted(&news);
        }
        self.has_clusters = true;
        self.withheld.push((news, error));
        self.go_on(now);
    }

    fn endpoints_came(&mut self, name: &Name) {
        self.end_warming(|resource, _| references(resource, EDS).any(|to| to == name));
    }

    fn end_warming(&mut self, ends: impl Fn(&Resource, Moment) -> bool) {
        let ends = |_: &Name, (resource, until): &mut (Arc<Resource>, _)| ends(resource, *until);
        for (name, (resource, _)) in self.warming.extract_if(.., ends) {
            self.held.insert((CDS.into(), name), resource);
        }
    }

    /// Clusters that got no endpoints in time: on a stream that resumes nobody may
    /// know of them, on others that is a fault of the server.
    pub(super) fn waits_in_vain(&self, now: Moment) -> Result<(), Fault> {
        let mut late = self.warming.iter().filter(|(_, (_, until))| *until <= now);
        match late.next().filter(|_| !self.wire.resumed) {
            None => Ok(()),
            Some((name, _)) => Err(format!("{name} waits for its endpoints in vain")),
        }
    }

    fn take_listeners(&mut self, news: &News, now: Moment) {
        let held = |name: &Name| self.held.contains_key(&(LDS.into(), name.clone()));
        let listed = |name: &Name| held(name) || news.resources.iter().any(|r| r.name == *name);
        self.coming.retain(|name, _| listed(name));
        let until = now + self.drain;
        for (name, old) in self.active.extract_if(.., |name, _| !listed(name)) {
            self.lost = Some(name);
            self.draining.push((old, until));
        }
        for resource in &news.resources {
            let name = resource.name.clone();
            match self.active.get(&name) == Some(resource) {
                true => self.coming.remove(&name),
                false => self.coming.insert(name, Arc::clone(resource)),
            };
        }
    }

    /// The consequences of what it holds now.
    pub(super) fn go_on(&mut self, now: Moment) {
        self.end_warming(|_, until| until <= now);
        if self.warming.is_empty() {
            for (news, error) in std::mem::take(&mut self.withheld) {
                self.wire.answer(&news, error);
            }
            // It subscribes to listeners once the first clusters are warm, be
            // it on another stream, where nobody repeats them.
            if self.has_clusters {
                self.wire.ask(LDS, all(), &self.held);
            }
        }
        self.draining.retain(|(_, until)| now < *until);
        let held = &self.held;
        let is_there = |_: &Name, r: &mut Arc<Resource>| {
            references(r, RDS).all(|n| held.contains_key(&(RDS.into(), n.clone())))
        };
        for (name, resource) in self.coming.extract_if(.., is_there) {
            if let Some(old) = self.active.insert(name, resource) {
                self.draining.push((old, now + self.drain));
            }
        }
        let clusters = self.held.iter().filter(|((url, _), _)| url.as_str() == CDS);
        let warming = self.warming.values().map(|(r, _)| r);
        let clusters = clusters.map(|(_, r)| r).chain(warming);
        let endpoints = clusters
            .flat_map(|r| references(r, EDS))
            .map(ToString::to_string);
        let endpoints: Names = endpoints.collect();
        let coming = self.coming.values();
        let listeners = self.in_use().chain(coming);
        let routes: Names = listeners
            .flat_map(|r| references(r, RDS))
            .map(ToString::to_string)
            .collect();
        self.ask(EDS, endpoints);
        self.ask(RDS, routes);
    }

    fn ask(&mut self, url: &str, names: Names) {
        let dropped = |(of, name): &(_, Name), _: &mut _| {
            trunkline_core::resource::TypeUrl::from(url) == *of && !names.contains(name.as_str())
        };
        self.held.extract_if(.., dropped).for_each(drop);
        self.wire.ask(url, names, &self.held);
    }

    /// Listeners that take requests, or finish those that they took.
    fn in_use(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let draining = self.draining.iter().map(|(old, _)| old);
        self.active.values().chain(draining)
    }

    /// The stream is lost, and the ACKs that were withheld. Clusters go on
    /// warming; one whose endpoints are there from before makes do with those.
    /// `published` is the contents of the server, if it is not the one before.
    pub(super) fn reconnect(&mut self, rng: &mut Rng, published: Option<&Published>) {
        self.withheld.clear();
        if let Some(published) = published {
            // A client that names as many routes as it has listeners looks like
            // one that has none inside, whatever drains.
            let alike = self.wire.names(RDS).len() >= self.active.len();
            let is_untold = |(name, old): &(&Name, &Arc<Resource>)| {
                // In deltas a server sees that the routes are missing.
                let replaced = self.coming.contains_key(*name) && self.wire.mode == Mode::Sotw;
                let known = published.get(&(LDS.into(), (*name).clone())) == Some(old);
                replaced || (alike && !known)
            };
            let serving = self.active.iter().filter(is_untold).map(|(_, old)| old);
            let old = serving.chain(self.draining.iter().map(|(old, _)| old));
            let inside = old.filter(|old| references(old, CDS).next().is_some());
            self.untold = inside.cloned().collect();
        }
        let endpoints = self.held.keys().filter(|(url, _)| url.as_str() == EDS);
        let endpoints: Vec<Name> = endpoints.map(|(_, name)| name.clone()).collect();
        for name in &endpoints {
            self.endpoints_came(name);
        }
        let mut known = self.held.clone();
        let warming = self.warming.iter();
        known.extend(warming.map(|(name, (r, _))| ((CDS.into(), name.clone()), Arc::clone(r))));
        self.wire.reconnect(&known, rng);
    }

    /// When a listener has drained, or a cluster waits no longer.
    pub(super) fn timeout(&self) -> Option<Moment> {
        let drained = self.draining.iter().map(|(_, until)| *until);
        drained
            .chain(self.warming.values().map(|(_, until)| *until))
            .min()
    }

    /// Every listener in use has its routes, clusters and endpoints (S81, S82).
    pub(super) fn can_route(&self) -> Result<(), Fault> {
        if let Some(name) = &self.lost {
            return Err(format!("lost its listener {name}"));
        }
        for listener in self.in_use().filter(|l| !self.untold.contains(l)) {
            let mut clusters: Vec<&Name> = references(listener, CDS).collect();
            for name in references(listener, RDS) {
                let route = self.held.get(&(RDS.into(), name.clone()));
                let route = route.filter(|route| !is_empty(route));
                let route = route.ok_or_else(|| format!("{listener:?} lost its routes {name}"))?;
                clusters.extend(references(route, CDS));
            }
            for name in clusters {
                let has = |url: &str| {
                    let found = self.held.get(&(url.into(), name.clone()));
                    found.is_some_and(|found| !is_empty(found))
                };
                if !has(CDS) {
                    return Err(format!("{listener:?} leads to {name}, which is not there"));
                }
                if !has(EDS) {
                    return Err(format!(
                        "{listener:?} leads to {name}, which has no endpoints"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Nothing waits for ever.
    pub(super) fn is_warm(&self) -> Result<(), Fault> {
        match self.warming.is_empty() && self.coming.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "warms for ever: {:?} {:?}",
                self.warming, self.coming
            )),
        }
    }
}

fn all() -> Names {
    Names::from(["*".to_owned()])
}
