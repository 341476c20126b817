//! The list of a SotW request, which replaces the one before (S10): it is
//! compared with the subscriptions, those that it lacks end, and new names are
//! subscribed to.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::IntoIter;

use hashbrown::HashSet;

use super::slice::{take_slice, weight};
use super::{NameList, NamedParams, UnfinishedRequest, is_empty_set};
use crate::database::{Database, Scope};
use crate::message::Locator;
use crate::name::{Name, Selector};
use crate::session::{Refusal, Session};
use crate::source::{RequestContext, SubscriptionChange, SubscriptionKey, TypeStream};

/// The list of a SotW request; see the module's documentation.
#[derive(Debug)]
pub(super) struct SotwList {
    /// Names that are not compared yet.
    pub(super) names: IntoIter<Locator>,
    /// Subscriptions that the list has.
    listed_keys: HashSet<SubscriptionKey>,
    /// The number of times that the list has each name, if that decides whether
    /// a plain name, a locator or both make its subscription (TP2).
    list_counts: Option<BTreeMap<Name, usize>>,
    scopes: BTreeSet<Scope>,
    new_names: NewNames,
    /// All subscriptions, until each was looked for in `listed_keys`.
    unswept_keys: Option<IntoIter<SubscriptionKey>>,
    /// The limits that names were refused for, and how many names.
    pub(super) refusals: Vec<(Refusal, usize)>,
    /// Whether refusals of the last list were not sent yet.
    pub(super) has_unsent_refusals: bool,
}

/// Names that the client is not subscribed to.
#[derive(Debug)]
enum NewNames {
    Collected(Vec<NamedParams>),
    Unread(IntoIter<NamedParams>),
}

impl SotwList {
    /// Makes a list of which nothing is compared yet.
    pub(super) fn new(names: Vec<Locator>) -> Self {
        Self {
            listed_keys: HashSet::new(),
            list_counts: None,
            scopes: BTreeSet::new(),
            new_names: NewNames::Collected(Vec::new()),
            unswept_keys: None,
            refusals: Vec::new(),
            has_unsent_refusals: false,
            names: names.into_iter(),
        }
    }

    /// Ends subscriptions to names that the list lacks. Returns whether all
    /// subscriptions are visited.
    fn sweep_names(
        &mut self,
        db: &mut Database,
        type_stream: &mut TypeStream,
        context: &mut RequestContext,
        budget: &mut usize,
    ) -> bool {
        let unswept_keys = self.unswept_keys.get_or_insert_with(|| {
            // With every ACK a client repeats its list, and nothing is swept.
            let lists_all = self.listed_keys.len() == type_stream.subscriptions.len();
            let keys: Vec<SubscriptionKey> = match lists_all {
                true => Vec::new(),
                false => type_stream.subscriptions.keys().collect(),
            };
            keys.into_iter()
        });

        for key in unswept_keys.by_ref().take(*budget) {
            *budget -= 1;
            if !self.listed_keys.contains(&key) {
                let name = db.name(type_stream.type_id, key.entry).clone();
                let change = SubscriptionChange::Unsubscribe(name, key.params);
                type_stream.apply_change(db, context, change);
            }
        }
        unswept_keys.len() == 0
    }

    /// Records for listed names whether a plain name, a locator or both make
    /// their subscriptions (TP2). Without locators there is nothing to record.
    /// Returns whether all listed names are visited.
    fn update_origins(
        &mut self,
        db: &Database,
        type_stream: &mut TypeStream,
        budget: &mut usize,
    ) -> bool {
        let Some(list_counts) = &mut self.list_counts else {
            return true;
        };
        while *budget > 0
            && let Some((name, times)) = list_counts.pop_first()
        {
            *budget -= 1;
            type_stream.update_origins(db, &name, times);
        }
        list_counts.is_empty()
    }

    /// Ends subscriptions to scopes that the list lacks.
    fn sweep_scopes(
        &self,
        db: &mut Database,
        type_stream: &mut TypeStream,
        context: &mut RequestContext,
    ) {
        let cursors = type_stream.client_cache.cursors().iter();
        let scopes = cursors.map(|cursor| cursor.scope.clone());
        let unlisted_scopes = scopes.filter(|scope| !self.scopes.contains(scope));
        for scope in unlisted_scopes.collect::<Vec<_>>() {
            let change = SubscriptionChange::UnsubscribeScope(scope);
            type_stream.apply_change(db, context, change);
        }
    }

    /// Counts a name that is refused for this reason.
    fn count_refusal(&mut self, refusal: Refusal) {
        let mut counts = self.refusals.iter_mut();
        match counts.find(|(counted, _)| *counted == refusal) {
            Some((_, count)) => *count += 1,
            None => self.refusals.push((refusal, 1)),
        }
    }
}

impl Session {
    /// Updates the wildcard, and starts the resumption of a client whose first
    /// request names a version.
    pub(super) fn begin_sotw(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
    ) {
        let NameList::Sotw(list) = &mut request.list else {
            return;
        };
        match &request.context.version {
            Some(version) if is_empty_set(version) => self.resume_stream(db, request.now),
            Some(_) => self.resume_type(db, index, request.now),
            None => {}
        }

        let scan = &request.scan;
        let type_stream = &mut self.type_streams[index];
        let legacy = type_stream.kind.legacy_wildcard;
        let wildcard = &mut type_stream.wildcard;
        *wildcard = wildcard.after_sotw(scan.has_star, scan.has_names, legacy);
        list.has_unsent_refusals = !std::mem::take(&mut type_stream.refused).is_empty();
        type_stream.refusing_hash = 0;

        let counts_names = scan.has_locators || type_stream.subscriptions.has_located();
        list.list_counts = counts_names.then(BTreeMap::new);
        // The set has its final capacity, because growth would visit all its
        // keys at once.
        let capacity = list.names.len().min(type_stream.subscriptions.len());
        list.listed_keys = HashSet::with_capacity(capacity);
        if type_stream.wildcard.is_on() && !type_stream.kind.on_demand {
            list.scopes.insert(Scope::All);
        }
    }

    /// Compares names of the list with the subscriptions. Returns whether the
    /// whole list is compared.
    pub(super) fn compare_list(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) -> bool {
        let NameList::Sotw(list) = &mut request.list else {
            return true;
        };
        let locators = take_slice(&mut list.names, budget);
        let selectors = self.parse_locators(db, &request.url, locators);

        let type_stream = &self.type_streams[index];
        for (selector, params) in selectors {
            let name = match selector {
                Selector::Name(name) => name,
                Selector::Glob(glob) => {
                    list.scopes.insert(Scope::Glob(glob));
                    continue;
                }
                Selector::Wildcard => continue,
            };

            let entry = db.find(type_stream.type_id, &name);
            let key = entry.map(|entry| SubscriptionKey { entry, params });
            let subscribed_key = key.filter(|key| type_stream.subscriptions.get(*key).is_some());
            match (subscribed_key, &mut list.new_names) {
                (Some(key), _) => {
                    list.listed_keys.insert(key);
                    if let Some(times) = &mut list.list_counts
                        && params == type_stream.params
                    {
                        *times.entry(name).or_default() += 1;
                    }
                }
                (None, NewNames::Collected(new_names)) => new_names.push((name, params)),
                (None, NewNames::Unread(_)) => {}
            }
        }
        list.names.len() == 0
    }

    /// Ends subscriptions that the list lacks, to names and then to scopes.
    /// Returns whether all are visited.
    pub(super) fn sweep_unlisted(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) -> bool {
        let NameList::Sotw(list) = &mut request.list else {
            return true;
        };
        let (type_stream, context) = (&mut self.type_streams[index], &mut request.context);
        if !list.sweep_names(db, type_stream, context, budget)
            || !list.update_origins(db, type_stream, budget)
        {
            return false;
        }
        list.sweep_scopes(db, type_stream, context);
        true
    }

    /// Subscribes to new names of the list, and then to new scopes. A name that
    /// is new on the list is sent even if it was sent before (S30), and with it
    /// the whole set, for types that have one (S38). Returns whether all new
    /// names are read.
    pub(super) fn subscribe_listed(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) -> bool {
        if !self.subscribe_new_names(db, index, request, budget) {
            return false;
        }
        self.subscribe_new_scopes(db, index, request);
        true
    }

    /// Subscribes to the names of the list that are new, and refuses those
    /// beyond the limits. Returns whether all of them are read.
    fn subscribe_new_names(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
        budget: &mut usize,
    ) -> bool {
        let NameList::Sotw(list) = &mut request.list else {
            return true;
        };
        if let NewNames::Collected(new_names) = &mut list.new_names {
            list.new_names = NewNames::Unread(std::mem::take(new_names).into_iter());
        }

        while *budget > 0
            && let NewNames::Unread(names) = &mut list.new_names
            && let Some((name, params)) = names.next()
        {
            *budget = budget.saturating_sub(weight(name.as_str().len()));
            let selector = Selector::Name(name.clone());
            if let Some(refusal) = self.find_refusal(db, index, &selector, params) {
                self.refuse(db, index, &selector, &request.context.initial);
                list.count_refusal(refusal);
                continue;
            }

            let change = SubscriptionChange::Subscribe(name, params);
            self.type_streams[index].apply_change(db, &mut request.context, change);
        }
        match &list.new_names {
            NewNames::Unread(names) => names.len() == 0,
            NewNames::Collected(_) => true,
        }
    }

    /// Subscribes to the scopes of the list that are new, and refuses those
    /// beyond the limits. They are few, so they are read at once.
    fn subscribe_new_scopes(
        &mut self,
        db: &mut Database,
        index: usize,
        request: &mut UnfinishedRequest,
    ) {
        let NameList::Sotw(list) = &mut request.list else {
            return;
        };
        for scope in std::mem::take(&mut list.scopes) {
            let client_cache = &self.type_streams[index].client_cache;
            if client_cache.cursor_of(&scope).is_some() {
                continue;
            }

            if let Scope::Glob(glob) = &scope {
                let selector = Selector::Glob(glob.clone());
                let params = self.type_streams[index].params;
                if let Some(refusal) = self.find_refusal(db, index, &selector, params) {
                    list.count_refusal(refusal);
                    continue;
                }
            }

            let type_stream = &mut self.type_streams[index];
            type_stream.owes_response = true;
            let change = SubscriptionChange::SubscribeScope(scope);
            type_stream.apply_change(db, &mut request.context, change);
        }
    }

    /// Reports the refusals of a list, if they differ from those of the last
    /// list.
    pub(super) fn report_refusals_of_list(
        &mut self,
        index: usize,
        refusals: Vec<(Refusal, usize)>,
        has_unsent_refusals: bool,
    ) {
        let type_stream = &mut self.type_streams[index];
        let url = type_stream.type_url.clone();
        if type_stream.update_refusals(has_unsent_refusals) {
            for (refusal, count) in refusals {
                self.report_refusal(&url, refusal, count);
            }
        }
    }
}
