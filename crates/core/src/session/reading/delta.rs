//! The names of a delta request: first those that it unsubscribes from, then
//! those that it subscribes to.

use std::vec::IntoIter;

use hashbrown::{HashMap, HashSet};

use super::slice::take_slice;
use super::{NameList, UnfinishedRequest};
use crate::database::{Database, Scope};
use crate::interest::DeltaWildcard;
use crate::message::{InitialVersions, Locator};
use crate::name::{Name, Selector};
use crate::params::Params;
use crate::resource::Version;
use crate::session::Session;
use crate::session::refuse::limit_versions;
use crate::source::SubscriptionChange;

/// The lists of a delta request; see the module's documentation.
#[derive(Debug)]
pub(super) struct DeltaList {
    pub(super) subscribe: IntoIter<Locator>,
    pub(super) unsubscribe: IntoIter<Locator>,
    initial: InitialVersions,
    /// Whether the request subscribes to the wildcard, which is not applied
    /// yet.
    subscribes_wildcard: bool,
    /// Base subscriptions that the request lacks.
    base_hosts: IntoIter<Name>,
}

impl DeltaList {
    /// Makes the lists of a request of which nothing is read yet.
    pub(super) fn new(
        subscribe: Vec<Locator>,
        unsubscribe: Vec<Locator>,
        initial: InitialVersions,
    ) -> Self {
        Self {
            subscribe: subscribe.into_iter(),
            unsubscribe: unsubscribe.into_iter(),
            initial,
            subscribes_wildcard: false,
            base_hosts: Vec::new().into_iter(),
        }
    }
}

impl Session {
    /// Updates the wildcard, and starts the resumption of a client whose first
    /// request names versions. Versions in later requests do not count (S49).
    pub(super) fn begin_delta(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
    ) {
        let NameList::Delta(list) = &mut request.list else {
            return;
        };

        let scan = &request.scan;
        let change = DeltaWildcard {
            subscribes_star: scan.has_star,
            subscribes_names: scan.has_names,
            unsubscribes_star: scan.ends_star,
        };
        if request.is_first {
            let names = list.subscribe.as_slice();
            let hosts = self.base_hosts_of_request(db, index, names, &list.initial);
            list.base_hosts = hosts.into_iter();
        }
        list.subscribes_wildcard = self.type_streams[index].update_wildcard(change);
        if !request.is_first {
            return;
        }

        let initial = std::mem::take(&mut list.initial);
        if !initial.is_empty() {
            self.resume_type(db, index, request.now);
        }
        let initial = limit_versions(initial, &self.config.limits);
        request.context.initial = if scan.has_locators {
            let plain_params = db.params(self.type_streams[index].params);
            ignore_ambiguous_versions(list.subscribe.as_slice(), plain_params, initial)
        } else {
            initial
        };
    }

    /// Ends subscriptions, which makes room for new ones. Returns whether all
    /// names to unsubscribe from are read.
    pub(super) fn read_unsubscribed(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) -> bool {
        let NameList::Delta(list) = &mut request.list else {
            return true;
        };
        let locators = take_slice(&mut list.unsubscribe, budget);
        let selectors = self.parse_locators(db, &request.url, locators);

        let type_stream = &mut self.type_streams[index];
        for (selector, params) in selectors {
            let change = match selector {
                Selector::Name(name) => SubscriptionChange::Unsubscribe(name, params),
                Selector::Glob(glob) => SubscriptionChange::UnsubscribeScope(Scope::Glob(glob)),
                Selector::Wildcard => SubscriptionChange::UnsubscribeScope(Scope::All),
            };
            type_stream.apply_change(db, &mut request.context, change);
        }
        list.unsubscribe.len() == 0
    }

    /// Starts subscriptions, and refuses those beyond the limits. Returns
    /// whether all names to subscribe to are read.
    pub(super) fn read_subscribed(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) -> bool {
        self.subscribe_wildcard(db, index, request);
        let NameList::Delta(list) = &mut request.list else {
            return true;
        };

        let locators = take_slice(&mut list.subscribe, budget);
        let selectors = self.parse_locators(db, &request.url, locators);
        for (selector, params) in selectors {
            // The wildcard was subscribed to before all names.
            if selector == Selector::Wildcard {
                continue;
            }
            if let Some(refusal) = self.find_refusal(db, index, &selector, params) {
                let initial = &request.context.initial;
                self.refuse(db, index, &selector, initial);
                self.report_refusal(&request.url, refusal, 1);
                continue;
            }

            let type_stream = &mut self.type_streams[index];
            let change = match selector {
                Selector::Name(name) => SubscriptionChange::Subscribe(name, params),
                Selector::Glob(glob) => {
                    type_stream.owes_response = true;
                    SubscriptionChange::SubscribeScope(Scope::Glob(glob))
                }
                Selector::Wildcard => continue,
            };
            type_stream.apply_change(db, &mut request.context, change);
        }
        list.subscribe.len() == 0 && self.read_base_hosts(db, index, request, budget)
    }

    /// Subscribes to the wildcard if the request does so, before its names; the
    /// client is owed a response then. Does nothing when it is called again.
    fn subscribe_wildcard(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
    ) {
        let NameList::Delta(list) = &mut request.list else {
            return;
        };
        if !std::mem::take(&mut list.subscribes_wildcard) {
            return;
        }
        let type_stream = &mut self.type_streams[index];
        type_stream.owes_response = true;
        if !type_stream.kind.on_demand {
            let change = SubscriptionChange::SubscribeScope(Scope::All);
            type_stream.apply_change(db, &mut request.context, change);
        }
    }

    /// Adds base subscriptions that a request lacks. One is left out without a
    /// report if no virtual host has the host as a domain, or the stream may
    /// have no more subscriptions. Returns whether all are read.
    fn read_base_hosts(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) -> bool {
        let NameList::Delta(list) = &mut request.list else {
            return true;
        };
        for name in list.base_hosts.by_ref().take(*budget) {
            *budget -= 1;
            let type_stream = &mut self.type_streams[index];
            let params = type_stream.params;
            let selector = Selector::Name(name.clone());
            if type_stream.is_subscribed(db, &name, params)
                || !db.has_exact_domain(type_stream.type_id, &name)
                || self.find_refusal(db, index, &selector, params).is_some()
            {
                continue;
            }

            let change = SubscriptionChange::Subscribe(name, params);
            self.type_streams[index].apply_change(db, &mut request.context, change);
        }
        list.base_hosts.len() == 0
    }
}

/// Replaces the versions of names that may have several variants by an unknown
/// version, so that all variants are sent (TP2): a client names one version of
/// a name, and does not say of which variant. `plain_params` are the parameters
/// of names without their own.
fn ignore_ambiguous_versions(
    names: &[Locator],
    plain_params: &Params,
    initial: InitialVersions,
) -> InitialVersions {
    if initial.is_empty() {
        return initial;
    }
    let ambiguous_names = names_with_variants(names, plain_params);
    if !ambiguous_names
        .iter()
        .any(|name| initial.get(name).is_some())
    {
        return initial;
    }

    let replace = |(name, version): &(Name, Version)| {
        if ambiguous_names.contains(name) {
            (name.clone(), Version::unknown())
        } else {
            (name.clone(), version.clone())
        }
    };
    initial.iter().map(replace).collect()
}

/// Returns the names of which a list may subscribe to several variants: the
/// list has them with several sets of parameters, or with other parameters than
/// its wildcard or glob (TP2).
fn names_with_variants(list: &[Locator], plain_params: &Params) -> HashSet<Name> {
    let parsed_locators: Vec<_> = list
        .iter()
        .filter_map(|locator| {
            let selector = Selector::parse(&locator.name, usize::MAX).ok()?;
            Some((selector, locator.params.as_ref().unwrap_or(plain_params)))
        })
        .collect();
    let has_scope = parsed_locators
        .iter()
        .any(|(selector, _)| !matches!(selector, Selector::Name(_)));

    let mut first_params: HashMap<&Name, &Params> = HashMap::new();
    let mut names = HashSet::new();
    for (selector, params) in &parsed_locators {
        let Selector::Name(name) = selector else {
            continue;
        };
        let first = *first_params.entry(name).or_insert(params);
        if first != *params || (has_scope && *params != plain_params) {
            names.insert(name.clone());
        }
    }
    names
}
