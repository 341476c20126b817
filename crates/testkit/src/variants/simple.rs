//! The cache of a client that rejects, and that takes nothing of what it NACKs or
//! the good part of it. It shares nothing with the sink.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_core::kind::CDS;
use trunkline_core::message::{
    DeltaRequest, DeltaResponse, ErrorDetail, Locator, Mode, Node, SotwRequest, SotwResponse,
};
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, TypeUrl, Version};
use trunkline_core::sink::{Request, Response};

use super::client::{Asked, Rejects, Subscription, matches};
use super::contents::{Place, is_bad};
use super::held::Held;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Simple {
    mode: Mode,
    rejects: Rejects,
    pub(super) held: Held,
    /// Requests that are due.
    pub(super) requests: Vec<Request>,
    last: BTreeMap<TypeUrl, (Nonce, Option<Version>)>,
    node_sent: bool,
}

impl Simple {
    /// A cache that is empty.
    pub(super) fn new(mode: Mode, rejects: Rejects) -> Self {
        Self {
            mode,
            rejects,
            held: Held::default(),
            requests: Vec::new(),
            last: BTreeMap::new(),
            node_sent: false,
        }
    }

    /// Begins a stream, with one request for each type. In state of the world a
    /// client that names no version holds nothing (S82): it was started anew.
    pub(super) fn connect(&mut self, asked: &BTreeSet<Asked>) {
        self.requests.clear();
        self.last.clear();
        self.node_sent = false;
        if self.mode == Mode::Sotw {
            self.held = Held::default();
        }
        let types: BTreeSet<&TypeUrl> = asked.iter().map(|(url, ..)| url).collect();
        for url in types {
            let of_type = asked.iter().filter(|(of, ..)| of == url);
            let request = match self.mode {
                Mode::Sotw => self.list(url, asked, None),
                Mode::Delta => Request::Delta(DeltaRequest {
                    type_url: Some(url.clone()),
                    subscribe: of_type.map(locator).collect(),
                    initial_versions: self.versions(url).into(),
                    ..DeltaRequest::default()
                }),
            };
            self.send(request);
        }
    }

    /// Requests a subscription that is new, or ends one.
    pub(super) fn toggle(&mut self, one: &Asked, asked: &BTreeSet<Asked>, is_new: bool) {
        let url = &one.0;
        if self.mode == Mode::Sotw {
            // A list counts with the newest acknowledgement only (S6): a name
            // that leaves the list and returns before that was never
            // unsubscribed.
            let request = self.list(url, asked, None);
            return self.send(request);
        }
        let list = vec![locator(one)];
        let (subscribe, unsubscribe) = match is_new {
            true => (list, Vec::new()),
            false => (Vec::new(), list),
        };
        self.send(Request::Delta(DeltaRequest {
            type_url: Some(url.clone()),
            subscribe,
            unsubscribe,
            ..DeltaRequest::default()
        }));
    }

    fn send(&mut self, mut request: Request) {
        let node = Node {
            client_features: vec!["xds.config.supports-resource-in-sotw".to_owned()],
            ..Node::default()
        };
        if !std::mem::replace(&mut self.node_sent, true) {
            match &mut request {
                Request::Delta(request) => request.node = Some(node),
                Request::Sotw(request) => request.node = Some(node),
            }
        }
        self.requests.push(request);
    }

    /// Of several variants it names one, as the message has no room for more.
    fn versions(&self, url: &TypeUrl) -> Vec<(Name, Version)> {
        let own = self.held.iter().filter(|((place, _), _)| place.0 == *url);
        let named: BTreeMap<_, _> = own
            .map(|(_, r)| (r.name.clone(), r.version.clone()))
            .collect();
        named.into_iter().collect()
    }

    /// The whole list, with the last acknowledgement.
    fn list(&self, url: &TypeUrl, asked: &BTreeSet<Asked>, error: Option<ErrorDetail>) -> Request {
        let own = asked.iter().filter(|(of, ..)| of == url);
        let (nonce, version) = self.last.get(url).cloned().unzip();
        Request::Sotw(SotwRequest {
            type_url: Some(url.clone()),
            names: own.map(locator).collect(),
            nonce,
            version: version.flatten(),
            error,
            ..SotwRequest::default()
        })
    }

    /// Drops what no subscription covers.
    pub(super) fn drop_unasked(&mut self, wanted: &BTreeSet<Subscription>, is_leaf: bool) {
        self.held.retain(|at, resource| {
            let reaches = |(place, params): &Subscription| {
                place == at && (is_leaf || matches(resource, params))
            };
            wanted.iter().any(reaches)
        });
    }

    /// Takes a response, or what of it is taken if some is bad. What was held of
    /// the `unsettled` names goes with the first update of each. Returns whether
    /// it takes anything.
    pub(super) fn take(
        &mut self,
        response: Response,
        unsettled: &BTreeSet<Place>,
        asked: &BTreeSet<Asked>,
    ) -> bool {
        let resources = match &response {
            Response::Delta(response) => &response.resources,
            Response::Sotw(response) => &response.resources,
        };
        let is_rejected = resources.iter().any(|one| is_bad(&one.resource));
        let takes = !is_rejected || self.rejects == Rejects::Part;
        if takes {
            match &response {
                Response::Delta(response) => self.apply_delta(response, unsettled),
                Response::Sotw(response) => self.apply_sotw(response),
            }
        }
        let error = is_rejected.then(|| ErrorDetail {
            code: 3,
            message: "something is not good".to_owned(),
        });
        let request = match response {
            Response::Delta(response) => Request::Delta(DeltaRequest {
                type_url: Some(response.type_url),
                nonce: Some(response.nonce),
                error,
                ..DeltaRequest::default()
            }),
            Response::Sotw(response) => self.answer_sotw(response, error, asked),
        };
        self.send(request);
        takes
    }

    fn apply_delta(&mut self, response: &DeltaResponse, unsettled: &BTreeSet<Place>) {
        let place = |name: &Name| (response.type_url.clone(), name.clone());
        for name in &response.removed {
            self.held.remove(&place(name));
        }
        for (name, gone) in &response.removed_variants {
            self.held.remove_variant(place(name), gone.clone());
        }
        let good = response.resources.iter();
        let good = good.filter(|one| !is_bad(&one.resource));
        let names = good.clone().map(|one| &one.resource.name);
        let updated: BTreeSet<Place> = names.map(place).collect();
        for stale in updated.intersection(unsettled) {
            self.held.remove(stale);
        }
        for one in good {
            self.held.put(place(&one.resource.name), &one.resource);
        }
    }

    fn answer_sotw(
        &mut self,
        response: SotwResponse,
        error: Option<ErrorDetail>,
        asked: &BTreeSet<Asked>,
    ) -> Request {
        let url = &response.type_url;
        let accepted = match &error {
            None => Some(response.version),
            Some(_) => self.last.get(url).and_then(|(_, version)| version.clone()),
        };
        self.last.insert(url.clone(), (response.nonce, accepted));
        self.list(url, asked, error)
    }

    fn apply_sotw(&mut self, response: &SotwResponse) {
        let url = &response.type_url;
        let all = || response.resources.iter().map(|one| &one.resource);
        let listed: BTreeSet<&Name> = all().map(|resource| &resource.name).collect();
        let bad = all().filter(|resource| is_bad(resource));
        let bad: BTreeSet<_> = bad.map(|r| (&r.name, &r.constraints)).collect();
        let whole = url.as_str() == CDS;
        self.held.retain(|(of, name), held| {
            let is_listed = whole || listed.contains(name);
            of != url || !is_listed || bad.contains(&(name, &held.constraints))
        });
        for resource in all().filter(|resource| !is_bad(resource)) {
            let place = (url.clone(), resource.name.clone());
            self.held.put(place, resource);
        }
    }
}

fn locator((_, name, params): &Asked) -> Locator {
    Locator {
        name: name.clone(),
        params: params.clone(),
    }
}
