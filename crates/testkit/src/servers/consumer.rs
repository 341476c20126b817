//! One source of the client, its subscriptions, and watches of all names.

use std::collections::BTreeMap;

use trunkline_core::Moment;
use trunkline_core::client::{Client, FallbackPolicy, ServerId, SourceId, State, WatchId, Watched};
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::Subscription;

use super::{NAMES, TYPES};
use crate::world::Fault;

/// A name of a type.
pub(super) type Key = (TypeUrl, Name);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Consumer {
    /// The places of its servers, the best first.
    pub(super) places: Vec<usize>,
    pub(super) policy: FallbackPolicy,
    source: SourceId,
    /// The subscriptions, and the step in which each was made.
    subscribed: BTreeMap<(TypeUrl, Selector), usize>,
    /// One watch for each name.
    watches: BTreeMap<Key, WatchId>,
    /// One watch for each type, and what it has been told.
    many: BTreeMap<TypeUrl, (WatchId, BTreeMap<Name, State>)>,
    /// The bodies that watches showed after the last step.
    pub(super) shown: BTreeMap<Key, String>,
}

impl Consumer {
    pub(super) fn new(
        client: &mut Client,
        places: Vec<usize>,
        ids: &[ServerId],
        policy: FallbackPolicy,
    ) -> Self {
        let servers = places.iter().map(|place| ids[*place]).collect();
        let source = client.add_source(servers, policy);
        let mut watch = |url: &TypeUrl, selector: Selector| {
            client.watch(Watched {
                type_url: url.clone(),
                selector,
                params: Params::default(),
                source: Some(source),
            })
        };
        let mut watches = BTreeMap::new();
        let mut many = BTreeMap::new();
        for url in TYPES.map(TypeUrl::from) {
            for name in NAMES.map(Name::new) {
                let id = watch(&url, Selector::Name(name.clone()));
                watches.insert((url.clone(), name), id);
            }
            let id = watch(&url, Selector::Wildcard);
            many.insert(url, (id, BTreeMap::new()));
        }
        Self {
            places,
            policy,
            source,
            subscribed: BTreeMap::new(),
            watches,
            many,
            shown: BTreeMap::new(),
        }
    }

    /// Makes or ends a subscription. Returns what it did, in words.
    pub(super) fn toggle(
        &mut self,
        client: &mut Client,
        url: TypeUrl,
        selector: Selector,
        step: usize,
        now: Moment,
    ) -> Result<String, Fault> {
        let subscription: Subscription = selector.clone().into();
        let words = format!("{} {}", short(&url), selector.as_str());
        let key = (url.clone(), selector);
        if self.subscribed.remove(&key).is_some() {
            client.unsubscribe(self.source, &url, &subscription, now);
            return Ok(format!("unsubscribes {words}"));
        }
        self.subscribed.insert(key, step);
        let added = client.subscribe(self.source, &url, subscription, now);
        added.map_err(|error| error.to_string())?;
        Ok(format!("subscribes {words}"))
    }

    /// The first step of the subscriptions that cover a name.
    pub(super) fn subscribed_since(&self, key: &Key) -> Option<usize> {
        let subscribed = self.subscribed.iter();
        let covering =
            subscribed.filter(|((url, selector), _)| *url == key.0 && selector.covers(&key.1));
        covering.map(|(_, step)| *step).min()
    }

    /// What the watches of single names show.
    pub(super) fn states(&self, client: &Client) -> BTreeMap<Key, State> {
        let watches = self.watches.iter();
        let states = watches.map(|(key, id)| {
            let state = client.state(*id).cloned().unwrap_or_default();
            (key.clone(), state)
        });
        states.collect()
    }

    /// What the watches of all names were told so far.
    pub(super) fn told(&mut self, client: &mut Client) -> BTreeMap<Key, State> {
        let mut told = BTreeMap::new();
        for (url, (id, names)) in &mut self.many {
            names.extend(client.take_changes(*id));
            let names = names.iter();
            told.extend(names.map(|(name, state)| ((url.clone(), name.clone()), state.clone())));
        }
        told
    }
}

/// The last word of a type's name.
pub(super) fn short(url: &TypeUrl) -> &str {
    url.as_str().rsplit('.').next().unwrap_or_default()
}

/// The body of a value.
pub(super) fn body(state: &State) -> Option<String> {
    let body = state.value.as_ref()?.body.as_deref()?;
    Some(String::from_utf8_lossy(body).into_owned())
}
