//! A client of variants: its subscriptions, and the cache that holds what comes
//! for them. A caching proxy brings parameters with its subscriptions and
//! matches by them; a leaf subscribes by plain names only, and takes what it is
//! sent.
//!
//! Its cache is core's sink. Where contents are bad, it is core's sink for leaves
//! that take the good part of a response, and [`Simple`] for others: a client
//! that takes nothing of a response that it NACKs is not the sink, and what a
//! proxy has of several variants when it reconnects is in doubt while some are
//! rejected, which the sink does not tell and [`Simple`] does.

use std::collections::BTreeSet;
use std::sync::Arc;

use fastrand::Rng;
use trunkline_core::Moment;
use trunkline_core::kind::CDS;
use trunkline_core::message::Mode;
use trunkline_core::name::Name;
use trunkline_core::params::Params;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::sink::{Request, Response};

use super::contents::{NAMES, Place, TYPES, is_bad, random_params};
use super::held::Held;
use super::simple::Simple;
use super::sinking::Sinking;
use crate::world::Fault;

/// A name or `*`, and parameters if it brings its own.
pub(super) type Asked = (TypeUrl, String, Option<Params>);

/// One name as one set of parameters sees it.
pub(super) type Subscription = (Place, Params);

/// How a client takes a response with a bad resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejects {
    /// It takes nothing of it.
    Whole,
    /// It takes the rest.
    Part,
}

/// What holds the resources of a client, and writes its requests.
#[derive(Debug)]
enum Cache {
    Sink(Box<Sinking>),
    Simple(Simple),
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Client {
    /// Which protocol it speaks.
    pub(super) mode: Mode,
    /// Subscribes by plain names only, and may change its parameters.
    pub(super) is_leaf: bool,
    /// Its parameters.
    pub(super) params: Params,
    /// Its subscriptions.
    pub(super) asked: BTreeSet<Asked>,
    cache: Cache,
    /// Names that it held before this stream, and of which it took no update
    /// since.
    unsettled: BTreeSet<Place>,
    /// Types of which it NACKed the last response.
    rejected: BTreeSet<TypeUrl>,
    /// Some contents are bad. What it held before a stream stays in doubt then
    /// until an update of its name: a request names one version for each name,
    /// and where parameters changed or something was rejected, no server can
    /// tell which variant that is of.
    is_wild: bool,
}

impl Client {
    /// A client that holds nothing.
    pub(super) fn new(rng: &mut Rng, rejects: Option<Rejects>) -> Self {
        let is_leaf = rng.bool();
        let mode = if rng.u8(0..3) > 0 {
            Mode::Delta
        } else {
            Mode::Sotw
        };
        let params = random_params(rng);
        let cache = match rejects {
            Some(Rejects::Part) if is_leaf => Cache::Sink(Box::new(Sinking::new(mode, true))),
            Some(rejects) => Cache::Simple(Simple::new(mode, rejects)),
            None => Cache::Sink(Box::new(Sinking::new(mode, is_leaf))),
        };
        let mut client = Self {
            mode,
            is_leaf,
            params,
            asked: BTreeSet::new(),
            cache,
            unsettled: BTreeSet::new(),
            rejected: BTreeSet::new(),
            is_wild: rejects.is_some(),
        };
        if is_leaf || rng.u8(0..3) == 0 {
            let own = !is_leaf && rng.bool();
            let params = own.then(|| random_params(rng));
            let all = (CDS.into(), "*".to_owned(), client.own(params));
            client.asked.insert(all);
        }
        for _ in 0..rng.usize(2..8) {
            let more = client.random_ask(rng);
            client.asked.insert(more);
        }
        let asked = client.asked.clone();
        match &mut client.cache {
            Cache::Simple(simple) => simple.connect(&asked),
            Cache::Sink(_) => asked.iter().for_each(|one| client.tell_cache(one, true)),
        }
        client
    }

    /// Whether it can change its parameters: those of a proxy whose cache is
    /// the sink are in its subscriptions.
    pub(super) fn may_become_other(&self) -> bool {
        self.is_leaf || matches!(self.cache, Cache::Simple(_))
    }

    /// One thing more to ask for.
    pub(super) fn random_ask(&self, rng: &mut Rng) -> Asked {
        let own = !self.is_leaf && rng.u8(0..4) > 0;
        let name = NAMES[rng.usize(0..NAMES.len())].to_owned();
        let params = own.then(|| random_params(rng));
        let url = TYPES[rng.usize(0..TYPES.len())].into();
        // With the parameters that it has anyway, a locator is a plain name.
        let params = self.own(params);
        let params = params.filter(|params| params != self.params_of(&url));
        (url, name, params)
    }

    /// Parameters that a subscription can bring: a sink's without any is plain.
    fn own(&self, params: Option<Params>) -> Option<Params> {
        let is_simple = matches!(self.cache, Cache::Simple(_));
        params.filter(|params| is_simple || !params.is_empty())
    }

    /// All that it asks for, name by name.
    pub(super) fn subscriptions(&self) -> BTreeSet<Subscription> {
        self.expand(&self.asked)
    }

    /// The same for its subscriptions of some earlier time.
    pub(super) fn expand(&self, asked: &BTreeSet<Asked>) -> BTreeSet<Subscription> {
        let each = asked.iter().flat_map(|(url, name, params)| {
            let names: &[&str] = if name == "*" { &NAMES } else { &[name] };
            let params = params.as_ref().unwrap_or_else(|| self.params_of(url));
            let place = |name: &&str| ((url.clone(), Name::new(name)), params.clone());
            names.iter().map(place).collect::<Vec<_>>()
        });
        each.collect()
    }

    /// The parameters of plain names: those of a wildcard, or its own.
    fn params_of(&self, url: &TypeUrl) -> &Params {
        let of_type = |(of, name, _): &&Asked| of == url && name == "*";
        let wildcard = self.asked.iter().find(of_type);
        let given = wildcard.and_then(|(.., params)| params.as_ref());
        given.unwrap_or(&self.params)
    }

    /// The resources that a subscription resolves to.
    pub(super) fn found(&self, (place, params): &Subscription) -> Vec<Arc<Resource>> {
        let mut found = self.held().at(place);
        found.retain(|resource| self.is_leaf || matches(resource, params));
        found
    }

    /// All that it holds.
    pub(super) fn held(&self) -> &Held {
        match &self.cache {
            Cache::Sink(sink) => sink.held(),
            Cache::Simple(simple) => &simple.held,
        }
    }

    /// Whether no server can tell what it has of a name, and a trial replaces
    /// that: it has it from before and NACKs something now, or it took it from
    /// a set that it NACKed (S17).
    pub(super) fn is_doubtful(&self, place: &Place, rejects: bool) -> bool {
        let before = rejects && self.is_unsettled(place);
        before || self.rejected.contains(&place.0)
    }

    /// Whether it has something of a name from before this stream and changed
    /// its parameters, or NACKed something, since: the first update of the name
    /// that it takes settles that.
    pub(super) fn is_unsettled(&self, place: &Place) -> bool {
        self.is_wild && self.unsettled.contains(place)
    }

    /// A new stream: messages of the old one do not count.
    pub(super) fn reconnect(&mut self) {
        match &mut self.cache {
            Cache::Sink(sink) => sink.reconnect(),
            Cache::Simple(simple) => simple.connect(&self.asked),
        }
        self.unsettled = self.held().places();
        self.rejected.clear();
    }

    /// Subscribes, or unsubscribes if it is subscribed.
    pub(super) fn toggle(&mut self, asked: Asked) {
        let place = (asked.0.clone(), Name::new(&asked.1));
        if self.unsettled.contains(&place) {
            // What it held before is not settled: no server could say which
            // variant of it is removed while others come.
            return;
        }
        let is_new = !self.asked.remove(&asked);
        let of_type = |other: &Asked| other.0 == asked.0;
        if is_new || !self.asked.iter().any(of_type) {
            // An empty list would be a wildcard.
            self.asked.insert(asked.clone());
        }
        if is_new == self.asked.contains(&asked) {
            self.tell_cache(&asked, is_new);
        }
    }

    /// Has the cache request what the client subscribes to, or what it does not
    /// any more.
    fn tell_cache(&mut self, asked: &Asked, is_new: bool) {
        // The parameters of a leaf are the server's to know.
        let params = match self.is_leaf {
            true => Params::default(),
            false => self.params_of(&asked.0).clone(),
        };
        let subscriptions = self.subscriptions();
        let is_leaf = self.is_leaf;
        match &mut self.cache {
            Cache::Sink(sink) => sink.toggle(asked, &params, is_new),
            Cache::Simple(simple) => {
                simple.toggle(asked, &self.asked, is_new);
                simple.drop_unasked(&subscriptions, is_leaf);
            }
        }
    }

    /// The requests that are due.
    pub(super) fn requests(&mut self, now: Moment) -> Vec<Request> {
        match &mut self.cache {
            Cache::Sink(sink) => sink.requests(now),
            Cache::Simple(simple) => std::mem::take(&mut simple.requests),
        }
    }

    /// No message is on its way: a resource without an update is confirmed.
    pub(super) fn rest(&mut self) {
        if !self.is_wild {
            self.unsettled.clear();
        }
    }

    /// The one resource of a name that it holds from before, for one
    /// subscription, is the one whose version it named. A server that has just
    /// that is silent, and goes on from there: it is no longer from before.
    /// `given` is what the server has.
    pub(super) fn confirm(&mut self, given: impl Fn(&Subscription) -> Option<Arc<Resource>>) {
        let wanted = self.subscriptions();
        let mut unsettled = std::mem::take(&mut self.unsettled);
        unsettled.retain(|place| {
            let own = self.held().at(place);
            let mut asks = wanted.iter().filter(|(at, _)| at == place);
            match (&own[..], asks.next(), asks.next()) {
                ([only], Some(one), None) => given(one).as_ref() != Some(only),
                _ => true,
            }
        });
        self.unsettled = unsettled;
    }

    /// Takes a response; what it makes due is in [`Self::requests`].
    ///
    /// # Errors
    /// The server has broken the protocol.
    pub(super) fn take(&mut self, response: Response, now: Moment) -> Result<(), Fault> {
        let url = response.type_url().clone();
        let resources = match &response {
            Response::Delta(response) => &response.resources,
            Response::Sotw(response) => &response.resources,
        };
        let is_rejected = resources.iter().any(|one| is_bad(&one.resource));
        match is_rejected && self.mode == Mode::Sotw {
            true => self.rejected.insert(url.clone()),
            false => self.rejected.remove(&url),
        };
        let good = resources.iter().filter(|one| !is_bad(&one.resource));
        let updated = good.map(|one| (url.clone(), one.resource.name.clone()));
        let updated: Vec<Place> = updated.collect();
        let subscriptions = self.subscriptions();
        let takes = match &mut self.cache {
            Cache::Sink(sink) => {
                sink.take(response, now)?;
                true
            }
            Cache::Simple(simple) => {
                let takes = simple.take(response, &self.unsettled, &self.asked);
                simple.drop_unasked(&subscriptions, self.is_leaf);
                takes
            }
        };
        if takes {
            updated.iter().for_each(|place| {
                self.unsettled.remove(place);
            });
        }
        Ok(())
    }
}

/// Whether a client with these parameters gets a variant.
pub(super) fn matches(resource: &Resource, params: &Params) -> bool {
    let constraints = resource.constraints.as_ref();
    constraints.is_none_or(|only| only.matches(params))
}
