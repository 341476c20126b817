//! A client of variants: its subscriptions, what it holds, and how it takes a
//! response. It matches by itself, as a caching proxy does; a leaf, which
//! subscribes by plain names only, takes what it is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use trunkline_core::kind::CDS;
use trunkline_core::message::{
    DeltaRequest, DeltaResponse, ErrorDetail, Locator, Mode, Node, SotwRequest, SotwResponse,
    WireResource,
};
use trunkline_core::name::Name;
use trunkline_core::params::{Constraints, Params};
use trunkline_core::resource::{Nonce, Resource, TypeUrl, Version};
use trunkline_core::sink::{Request, Response};

use super::contents::{NAMES, Place, TYPES, is_bad, random_params};

/// A name or `*`, and parameters if it brings its own.
pub(super) type Asked = (TypeUrl, String, Option<Params>);

/// One name as one set of parameters sees it.
pub(super) type Subscription = (Place, Params);

type Held = BTreeMap<(Place, Option<Constraints>), Arc<Resource>>;

/// How a client takes a response with a bad resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejects {
    /// It takes nothing of it.
    Whole,
    /// It takes the rest.
    Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replaced {
    All,
    Contradicted,
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
    held: Held,
    /// Held from before this stream. The first update of a name replaces all of
    /// it if one version could not stand for it; else only what it contradicts.
    stale: BTreeMap<Place, Replaced>,
    last: BTreeMap<TypeUrl, (Nonce, Option<Version>)>,
    node_sent: bool,
    /// Types of which it NACKed the last response.
    rejected: BTreeSet<TypeUrl>,
    /// How it NACKs.
    pub(super) rejects: Rejects,
    /// Resources from before this stream are dropped with the first update of
    /// their name. A request names one version for each name: where parameters
    /// changed or something was rejected, no server can tell which variant that
    /// is of.
    pub(super) starts_over: bool,
}

impl Client {
    /// A client that holds nothing.
    pub(super) fn new(rng: &mut Rng) -> Self {
        let is_leaf = rng.bool();
        let mut client = Self {
            mode: if rng.u8(0..3) > 0 {
                Mode::Delta
            } else {
                Mode::Sotw
            },
            is_leaf,
            params: random_params(rng),
            asked: BTreeSet::new(),
            held: Held::new(),
            stale: BTreeMap::new(),
            last: BTreeMap::new(),
            node_sent: false,
            rejected: BTreeSet::new(),
            rejects: Rejects::Whole,
            starts_over: false,
        };
        if is_leaf || rng.u8(0..3) == 0 {
            let own = !is_leaf && rng.bool();
            let params = own.then(|| random_params(rng));
            client.asked.insert((CDS.into(), "*".to_owned(), params));
        }
        for _ in 0..rng.usize(2..8) {
            let more = client.random_ask(rng);
            client.asked.insert(more);
        }
        client
    }

    /// One thing more to ask for.
    pub(super) fn random_ask(&self, rng: &mut Rng) -> Asked {
        let own = !self.is_leaf && rng.u8(0..4) > 0;
        let name = NAMES[rng.usize(0..NAMES.len())].to_owned();
        let params = own.then(|| random_params(rng));
        let url = TYPES[rng.usize(0..TYPES.len())].into();
        // With the parameters that it has anyway, a locator is a plain name.
        let params = params.filter(|params| params != self.params_of(&url));
        (url, name, params)
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
        let own = self.held.iter().filter(|((at, _), _)| at == place);
        own.map(|(_, resource)| Arc::clone(resource))
            .filter(|resource| self.is_leaf || matches(resource, params))
            .collect()
    }

    /// Everything, by place and constraints.
    pub(super) fn all(&self) -> &BTreeMap<(Place, Option<Constraints>), Arc<Resource>> {
        &self.held
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
        self.starts_over && self.stale.contains_key(place)
    }

    /// A new stream: messages of the old one do not count. In state of the
    /// world a client that names no version holds nothing (S82): it was started
    /// anew.
    pub(super) fn reconnect(&mut self) {
        self.last.clear();
        if self.mode == Mode::Sotw {
            self.held.clear();
        }
        self.rejected.clear();
        self.node_sent = false;
        let wanted = self.subscriptions();
        let places = self.held.keys().map(|(place, _)| place);
        let stale = places.map(|place| {
            let several = wanted.iter().filter(|(at, _)| at == place).count() > 1;
            let replaced = match several || self.is_leaf || self.starts_over {
                true => Replaced::All,
                false => Replaced::Contradicted,
            };
            (place.clone(), replaced)
        });
        self.stale = stale.collect();
    }

    /// The first requests of a stream.
    pub(super) fn first_requests(&mut self) -> Vec<Request> {
        let types: BTreeSet<TypeUrl> = self.asked.iter().map(|(url, ..)| url.clone()).collect();
        let first = |url: &TypeUrl| match self.mode {
            Mode::Delta => {
                let mut request = self.subscribe(self.asked.iter().filter(|a| a.0 == *url));
                request.initial_versions = self.versions(url).into();
                Request::Delta(request)
            }
            Mode::Sotw => self.list(url),
        };
        let mut all: Vec<Request> = types.iter().map(first).collect();
        if let Some(first) = all.first_mut() {
            self.introduce(first);
        }
        all
    }

    fn introduce(&mut self, request: &mut Request) {
        let node = Node {
            client_features: vec!["xds.config.supports-resource-in-sotw".to_owned()],
            ..Node::default()
        };
        if !std::mem::replace(&mut self.node_sent, true) {
            match request {
                Request::Delta(request) => request.node = Some(node),
                Request::Sotw(request) => request.node = Some(node),
            }
        }
    }

    /// Of several variants it names one, as the message has no room for more.
    fn versions(&self, url: &TypeUrl) -> Vec<(Name, Version)> {
        let own = self.held.iter().filter(|((place, _), _)| place.0 == *url);
        let named: BTreeMap<_, _> = own
            .map(|(_, r)| (r.name.clone(), r.version.clone()))
            .collect();
        named.into_iter().collect()
    }

    /// Subscribes, or unsubscribes if it is subscribed.
    pub(super) fn toggle(&mut self, asked: Asked) -> Option<Request> {
        if self
            .stale
            .contains_key(&(asked.0.clone(), Name::new(&asked.1)))
        {
            // What it held before is not settled: no server could say which
            // variant of it is removed while others come.
            return None;
        }
        let is_new = !self.asked.remove(&asked);
        if is_new {
            self.asked.insert(asked.clone());
        }
        if self.asked.iter().all(|other| other.0 != asked.0) {
            // An empty list would be a wildcard.
            self.asked.insert(asked);
            return None;
        }
        if self.mode == Mode::Sotw {
            // A list counts with the newest acknowledgement only (S6): a name
            // that leaves the list and returns before that was never
            // unsubscribed.
            return Some(self.list(&asked.0));
        }
        let mut request = self.subscribe([&asked].into_iter());
        if !is_new {
            self.drop_unasked();
            request.unsubscribe = std::mem::take(&mut request.subscribe);
        }
        Some(Request::Delta(request))
    }

    fn subscribe<'a>(&self, asked: impl Iterator<Item = &'a Asked>) -> DeltaRequest {
        let mut request = DeltaRequest::default();
        for (url, name, params) in asked {
            request.type_url = Some(url.clone());
            request.subscribe.push(locator(name, params.as_ref()));
        }
        request
    }

    /// The whole list, with the last acknowledgement.
    fn list(&self, url: &TypeUrl) -> Request {
        let own = self.asked.iter().filter(|(of, ..)| of == url);
        let (nonce, version) = self.last.get(url).cloned().unzip();
        Request::Sotw(SotwRequest {
            type_url: Some(url.clone()),
            names: own.map(|(_, n, p)| locator(n, p.as_ref())).collect(),
            nonce,
            version: version.flatten(),
            ..SotwRequest::default()
        })
    }

    /// No message is on its way: a resource without an update is confirmed.
    pub(super) fn rest(&mut self) {
        if !self.starts_over {
            self.stale.clear();
        }
        self.drop_unasked();
    }

    /// The one resource of a name that it holds from before, for one
    /// subscription, is the one whose version it named. A server that has just
    /// that is silent, and goes on from there: it is no longer from before.
    /// `given` is what the server has.
    pub(super) fn confirm(&mut self, given: impl Fn(&Subscription) -> Option<Arc<Resource>>) {
        let wanted = self.subscriptions();
        let held = &self.held;
        self.stale.retain(|place, _| {
            let mut own = held.iter().filter(|((at, _), _)| at == place);
            let mut asks = wanted.iter().filter(|(at, _)| at == place);
            match (own.next(), own.next(), asks.next(), asks.next()) {
                (Some((_, only)), None, Some(one), None) => given(one).as_ref() != Some(only),
                _ => true,
            }
        });
    }

    /// Drops what no subscription covers.
    fn drop_unasked(&mut self) {
        let wanted = self.subscriptions();
        let leaf = self.is_leaf;
        let reaches = |(place, params): &Subscription, r: &Resource, at: &Place| {
            place == at && (leaf || matches(r, params))
        };
        self.held
            .retain(|(at, _), r| wanted.iter().any(|one| reaches(one, r, at)));
    }

    /// Takes a response and acknowledges it.
    pub(super) fn take(&mut self, response: Response) -> Request {
        match response {
            Response::Delta(response) => self.take_delta(response),
            Response::Sotw(response) => self.take_sotw(response),
        }
    }

    fn take_delta(&mut self, response: DeltaResponse) -> Request {
        let error = rejection(response.resources.iter());
        if error.is_none() || self.rejects == Rejects::Part {
            self.apply_delta(&response);
        }
        Request::Delta(DeltaRequest {
            type_url: Some(response.type_url),
            nonce: Some(response.nonce),
            error,
            ..DeltaRequest::default()
        })
    }

    fn apply_delta(&mut self, response: &DeltaResponse) {
        let url = &response.type_url;
        for name in &response.removed {
            self.forget(&(url.clone(), name.clone()));
        }
        for (name, gone) in &response.removed_variants {
            let place = (url.clone(), name.clone());
            self.held.remove(&(place, gone.clone()));
        }
        for delivered in response.resources.iter().filter(|d| !is_bad(&d.resource)) {
            self.replace_stale(url, &delivered.resource);
            self.keep(url, delivered);
        }
        self.drop_unasked();
    }

    fn take_sotw(&mut self, response: SotwResponse) -> Request {
        let url = &response.type_url;
        let error = rejection(response.resources.iter());
        match &error {
            None => _ = self.rejected.remove(url),
            Some(_) => _ = self.rejected.insert(url.clone()),
        }
        if error.is_none() || self.rejects == Rejects::Part {
            self.apply_sotw(&response);
        }
        let accepted = match &error {
            None => Some(response.version.clone()),
            Some(_) => self.last.get(url).and_then(|(_, version)| version.clone()),
        };
        self.last
            .insert(url.clone(), (response.nonce.clone(), accepted));
        let mut request = self.list(url);
        if let Request::Sotw(request) = &mut request {
            request.error = error;
        }
        request
    }

    fn apply_sotw(&mut self, response: &SotwResponse) {
        let url = &response.type_url;
        let listed: BTreeSet<&Name> = response
            .resources
            .iter()
            .map(|d| &d.resource.name)
            .collect();
        let whole = url.as_str() == CDS;
        let bad = response.resources.iter().filter(|d| is_bad(&d.resource));
        let rejected: BTreeSet<_> = bad
            .map(|d| (&d.resource.name, &d.resource.constraints))
            .collect();
        self.held.retain(|((of, name), only), _| {
            of != url || !(whole || listed.contains(name)) || rejected.contains(&(name, only))
        });
        for delivered in response.resources.iter().filter(|d| !is_bad(&d.resource)) {
            self.keep(url, delivered);
        }
        self.drop_unasked();
    }

    fn replace_stale(&mut self, url: &TypeUrl, resource: &Resource) {
        let place = (url.clone(), resource.name.clone());
        match self.stale.remove(&place) {
            None => {}
            Some(Replaced::All) => self.forget(&place),
            Some(Replaced::Contradicted) => self.held.retain(|(at, only), _| {
                *at != place || *only == resource.constraints || !overlap(only, resource)
            }),
        }
    }

    fn forget(&mut self, place: &Place) {
        self.stale.remove(place);
        self.held.retain(|(at, _), _| at != place);
    }

    /// A body that only says that there is nothing is dropped like a removal.
    fn keep(&mut self, url: &TypeUrl, delivered: &WireResource) {
        let resource = &delivered.resource;
        let place = (url.clone(), resource.name.clone());
        if resource
            .body
            .as_ref()
            .is_none_or(|body| body.first() == Some(&0x0a))
        {
            return self.forget(&place);
        }
        let key = (place, resource.constraints.clone());
        self.held.insert(key, Arc::clone(resource));
    }
}

/// The text of a NACK.
fn rejection<'a>(mut all: impl Iterator<Item = &'a WireResource>) -> Option<ErrorDetail> {
    let bad = all.any(|delivered| is_bad(&delivered.resource));
    bad.then(|| ErrorDetail {
        code: 3,
        message: "something is not good".to_owned(),
    })
}

/// Whether a client could match both.
fn overlap(only: &Option<Constraints>, resource: &Resource) -> bool {
    match (only, &resource.constraints) {
        (Some(a), Some(b)) => !matches!(a.overlap(b), Ok(None)),
        _ => true,
    }
}

fn matches(resource: &Resource, params: &Params) -> bool {
    let constraints = resource.constraints.as_ref();
    constraints.is_none_or(|only| only.matches(params))
}

fn locator(name: &str, params: Option<&Params>) -> Locator {
    Locator {
        name: name.to_owned(),
        params: params.cloned(),
    }
}
