//! Handles requests: node and type, acknowledgement, subscriptions.

use hashbrown::HashSet;

use super::{Event, MAX_EVENTS, ProtocolError, Refusal, Session};
use crate::database::{Database, Scope, TypeId};
use crate::limits::Limits;
use crate::message::{
    DeltaRequest, ErrorDetail, InitialVersions, Locator, Mode, Node, SotwRequest,
};
use crate::moment::Moment;
use crate::name::{Name, Selector};
use crate::params::ParamsId;
use crate::resource::{Nonce, TypeUrl, Version};
use crate::source::{DeltaSubscriptions, TypeStream, TypeStreamConfig, is_negative_version};

impl Session {
    /// Handles a delta request. Its acknowledgement, subscriptions and initial
    /// versions count independently of each other (S8).
    ///
    /// # Errors
    /// If the stream cannot go on.
    pub fn handle_delta(
        &mut self,
        db: &mut Database,
        request: DeltaRequest,
        now: Moment,
    ) -> Result<(), ProtocolError> {
        while self.continue_changes(db) {}
        let url = self.bind_request(Mode::Delta, request.node, request.type_url)?;
        let Some((index, first)) = self.find_or_open_type(db, &url) else {
            return Ok(());
        };
        if let Some(nonce) = request.nonce.filter(|_| !first) {
            self.acknowledge_delta(db, index, nonce, request.error, now);
        }
        if !first && request.subscribe.is_empty() && request.unsubscribe.is_empty() {
            // An acknowledgement and nothing else, as most requests are.
            self.mark_deferred_dirty();
            return Ok(());
        }
        self.apply_params(db);
        let base = match first {
            true => {
                let (names, initial) = (&request.subscribe, &request.initial_versions);
                self.base_hosts_of_request(db, index, names, initial)
            }
            false => Vec::new(),
        };
        self.adopt_scope_params(db, index, &request.subscribe);
        let (subscribe, unsubscribe) = (request.subscribe, request.unsubscribe);
        let mut subscriptions = self.parse_delta(db, index, subscribe, unsubscribe);
        if first {
            let versions = request.initial_versions;
            subscriptions.initial = self.resume_delta(db, index, versions, now);
            self.add_base_hosts(db, index, base, &mut subscriptions.subscribe);
        }
        let changes = self.type_streams[index].read_delta(subscriptions);
        self.begin_changes(db, url, changes, first, now);
        Ok(())
    }

    /// Handles the nonce of a delta request. One that is not pending is stale,
    /// and the subscriptions of the request count all the same (S7).
    fn acknowledge_delta(
        &mut self,
        db: &mut Database,
        index: usize,
        nonce: Nonce,
        error: Option<ErrorDetail>,
        now: Moment,
    ) {
        if self.is_pending(index, &nonce, error.is_some()) {
            self.handle_acknowledgement(db, index, nonce, error, now);
        } else {
            self.report_stale(index, nonce);
        }
    }

    /// Parses the lists of a delta request, and refuses what is over the
    /// limits.
    fn parse_delta(
        &mut self,
        db: &mut Database,
        index: usize,
        subscribe: Vec<Locator>,
        unsubscribe: Vec<Locator>,
    ) -> DeltaSubscriptions {
        let url = self.type_streams[index].type_url.clone();
        let names = names_something(&subscribe);
        let unsubscribe = self.parse_locators(db, &url, unsubscribe);
        let mut subscribe = self.parse_locators(db, &url, subscribe);
        let ending = EndingSubscriptions {
            names: self.count_subscribed(db, index, &unsubscribe),
            unbounded_hosts: self.count_unbounded_hosts(db, index, &unsubscribe),
        };
        for refusal in self.refuse_over_limits(db, index, &mut subscribe, ending) {
            self.refuse(&url, refusal);
        }
        DeltaSubscriptions {
            subscribe,
            unsubscribe,
            names,
            ..DeltaSubscriptions::default()
        }
    }

    /// Begins the resumption of a client whose first request names versions.
    /// Returns the versions within the limits; those of later requests do not
    /// count (S49).
    fn resume_delta(
        &mut self,
        db: &mut Database,
        index: usize,
        versions: InitialVersions,
        now: Moment,
    ) -> InitialVersions {
        if !versions.is_empty() {
            self.resume(db, index, now);
            self.type_streams[index].count_resumed(&versions);
        }
        let versions = limit_versions(versions, &self.config.limits);
        self.spare_known_refusals(index, &versions);
        versions
    }

    /// Handles a SotW request: the newest list counts (S10).
    ///
    /// # Errors
    /// If the stream cannot go on.
    pub fn handle_sotw(
        &mut self,
        db: &mut Database,
        request: SotwRequest,
        now: Moment,
    ) -> Result<(), ProtocolError> {
        while self.continue_changes(db) {}
        let url = self.bind_request(Mode::Sotw, request.node, request.type_url)?;
        let Some((index, first)) = self.find_or_open_type(db, &url) else {
            return Ok(());
        };
        if let Some(nonce) = request.nonce.filter(|_| !first) {
            let version = request.version.as_ref();
            self.acknowledge_sotw(db, index, nonce, version, request.error, now);
        }
        self.apply_params(db);
        self.adopt_scope_params(db, index, &request.names);
        let names = names_something(&request.names);
        let selectors = self.parse_sotw(db, index, request.names);
        let version = request.version.filter(|_| first);
        match &version {
            // A client that names the version of the empty set reconnected, and
            // holds nothing.
            Some(version) if *version == Version::of_hash(0) => self.resume_stream(db, now),
            Some(_) => self.resume(db, index, now),
            None => {}
        }
        let type_stream = &mut self.type_streams[index];
        let changes = type_stream.read_sotw(db, &selectors, names, version);
        self.begin_changes(db, url, changes, first, now);
        Ok(())
    }

    /// Handles the nonce of a SotW request. Without an error it is an ACK only
    /// if the version is that of the response: a change of names may come first
    /// (wire facts 1). If it is not the newest nonce it is stale; the list is
    /// the newest all the same, and new names are sent once the newest response
    /// is acknowledged (S6, S10).
    fn acknowledge_sotw(
        &mut self,
        db: &mut Database,
        index: usize,
        nonce: Nonce,
        version: Option<&Version>,
        error: Option<ErrorDetail>,
        now: Moment,
    ) {
        let is_newest = self.is_newest(index, &nonce);
        let is_nack = error.is_some();
        if self.is_pending(index, &nonce, is_nack)
            && (is_nack || version == self.sent_version(index, &nonce).as_ref())
        {
            self.handle_acknowledgement(db, index, nonce.clone(), error, now);
        }
        if !is_newest {
            self.report_stale(index, nonce);
        }
    }

    /// Parses the list of a SotW request, and refuses what is over the limits.
    fn parse_sotw(
        &mut self,
        db: &mut Database,
        index: usize,
        names: Vec<Locator>,
    ) -> Vec<(Selector, ParamsId)> {
        let url = self.type_streams[index].type_url.clone();
        let mut selectors = self.parse_locators(db, &url, names);
        let all = self.type_streams[index].subscriptions.len();
        let ending = EndingSubscriptions {
            names: all.saturating_sub(self.count_subscribed(db, index, &selectors)),
            unbounded_hosts: 0,
        };
        let due = !std::mem::take(&mut self.type_streams[index].refused).is_empty();
        let refusals = self.refuse_over_limits(db, index, &mut selectors, ending);
        if self.type_streams[index].update_refusals(due) {
            for refusal in refusals {
                self.refuse(&url, refusal);
            }
        }
        selectors
    }

    /// Reports a nonce that is not of the newest response.
    fn report_stale(&mut self, index: usize, nonce: Nonce) {
        let type_url = self.type_streams[index].type_url.clone();
        self.events.push_back(Event::Stale { type_url, nonce });
    }

    /// Binds a request to the node of the stream and to its type (S1, S2, S3).
    /// Returns the type.
    fn bind_request(
        &mut self,
        mode: Mode,
        node: Option<Node>,
        url: Option<TypeUrl>,
    ) -> Result<TypeUrl, ProtocolError> {
        if mode != self.config.mode {
            return Err(ProtocolError::WrongMode);
        }
        match (node, &self.node) {
            (Some(node), None) => self.node = Some(node),
            (Some(node), Some(bound)) if node != *bound => {
                self.events.push_back(Event::NodeChanged { node });
            }
            _ => {}
        }
        let url = url.filter(|url| !url.as_str().is_empty());
        match (url, &self.config.single_type) {
            (Some(got), Some(expected)) if got != *expected => Err(ProtocolError::WrongType {
                expected: expected.clone(),
                got,
            }),
            (_, Some(only)) => Ok(only.clone()),
            (Some(url), None) => Ok(url),
            (None, None) => Err(ProtocolError::NoType),
        }
    }

    /// The index of a type stream, and whether it is opened by this request;
    /// `None` if the type is refused.
    fn find_or_open_type(&mut self, db: &mut Database, url: &TypeUrl) -> Option<(usize, bool)> {
        let mut all = self.type_streams.iter();
        if let Some(index) = all.position(|c| c.type_url == *url) {
            return Some((index, false));
        }
        if !self.has_room_for_type(url) {
            let limit = self.config.limits.types;
            self.refuse(url, Refusal::Types { limit });
            return None;
        }
        let config = TypeStreamConfig {
            mode: self.config.mode,
            dialect: self.dialect(),
            supports_resource_errors: self.config.supports_resource_errors,
            denied: self.denied.contains(url),
            params: self.params_of(url),
        };
        let type_id = self.type_id_for(db, url);
        let mut new = TypeStream::new(db, self.stream, url, type_id, config);
        new.kind.legacy_wildcard &= self.allows_legacy_wildcard(url);
        let rank = |c: &TypeStream| (c.kind.rank, c.type_url.clone());
        let new_rank = rank(&new);
        let index = self
            .type_streams
            .binary_search_by_key(&new_rank, rank)
            .unwrap_or_else(|index| index);
        self.type_streams.reserve_exact(1);
        self.type_streams.insert(index, new);
        Some((index, true))
    }

    /// Whether a stream can open another type, of this URL.
    pub(super) fn has_room_for_type(&self, url: &TypeUrl) -> bool {
        let limits = &self.config.limits;
        self.type_streams.len() < limits.types && url.as_str().len() <= limits.name_bytes
    }

    /// The type of the database for a type of the stream. A denied type gets
    /// one that is always empty, so that its names do not exist and no client
    /// waits.
    fn type_id_for(&self, db: &mut Database, url: &TypeUrl) -> TypeId {
        match self.denied.contains(url) {
            true => db.type_id(&TypeUrl::new(format!("denied {url}"))),
            false => db.type_id(url),
        }
    }

    /// The number of these names that the client is subscribed to.
    fn count_subscribed(
        &self,
        db: &Database,
        index: usize,
        selectors: &[(Selector, ParamsId)],
    ) -> usize {
        let type_stream = &self.type_streams[index];
        count_names(selectors, |name, params| {
            type_stream.is_subscribed(db, name, params)
        })
    }

    /// The number of these names that the client is subscribed to as unbounded
    /// hosts.
    fn count_unbounded_hosts(
        &self,
        db: &Database,
        index: usize,
        selectors: &[(Selector, ParamsId)],
    ) -> usize {
        let type_stream = &self.type_streams[index];
        count_names(selectors, |name, params| {
            type_stream.has_unbounded_host(db, name, params)
        })
    }

    /// Takes selectors out of a list that are over the limits, and returns the
    /// refusals. `ending` are the subscriptions that end with the same request.
    /// A refused name gets a negative answer, so that the client does not wait,
    /// and is not remembered (S72).
    #[must_use]
    fn refuse_over_limits(
        &mut self,
        db: &Database,
        index: usize,
        selectors: &mut Vec<(Selector, ParamsId)>,
        ending: EndingSubscriptions,
    ) -> Vec<Refusal> {
        let mut room = self.room_within_limits(index, ending);
        let mut refusals = Vec::new();
        let type_stream = &mut self.type_streams[index];
        selectors.retain(|(selector, params)| {
            let (is_known, left) = match selector {
                Selector::Wildcard => return true,
                Selector::Glob(glob) => {
                    let scope = Scope::Glob(glob.clone());
                    let is_known = type_stream.client_cache.cursor_of(&scope).is_some();
                    (is_known, &mut room.globs)
                }
                Selector::Name(name) if type_stream.kind.on_demand => {
                    let is_known = type_stream.is_subscribed(db, name, *params)
                        || db.is_bounded_host(type_stream.type_id, name);
                    (is_known, &mut room.hosts)
                }
                Selector::Name(name) => {
                    let is_known = type_stream.is_subscribed(db, name, *params);
                    (is_known, &mut room.names)
                }
            };
            if is_known || *left > 0 {
                *left -= usize::from(!is_known);
                return true;
            }
            if let Selector::Name(name) = selector {
                type_stream.refused.insert(name.clone());
            }
            refusals.push(room.refusal(selector, type_stream.kind.on_demand, &self.config.limits));
            false
        });
        refusals
    }

    /// The numbers of subscriptions that a type can still add to the stream.
    fn room_within_limits(&self, index: usize, ending: EndingSubscriptions) -> Room {
        let used = |count: fn(&TypeStream) -> usize| -> usize {
            let all = self.type_streams.iter();
            all.map(count).sum()
        };
        let limits = &self.config.limits;
        let used_names = used(TypeStream::subscription_count).saturating_sub(ending.names);
        let names = limits.subscriptions.saturating_sub(used_names);
        let used_hosts = self.type_streams[index].subscriptions.unbounded_hosts();
        let used_hosts = used_hosts.saturating_sub(ending.unbounded_hosts);
        let hosts = limits.hosts.saturating_sub(used_hosts);
        Room {
            names,
            hosts: hosts.min(names),
            globs: limits.globs.saturating_sub(used(TypeStream::glob_count)),
            hosts_end_first: hosts < names,
        }
    }

    /// Adds base subscriptions to those of a request that lacks them, as far as
    /// a virtual host has the host as a domain.
    fn add_base_hosts(
        &self,
        db: &Database,
        index: usize,
        base: Vec<Name>,
        subscribe: &mut Vec<(Selector, ParamsId)>,
    ) {
        let type_stream = &self.type_streams[index];
        let limit = self.config.limits.subscriptions;
        let requested: HashSet<_> = subscribe
            .iter()
            .map(|(selector, _)| selector.clone())
            .collect();
        let exists = |name: &Name| db.has_exact_domain(type_stream.type_id, name);
        let base = base.into_iter().filter(exists).map(Selector::Name);
        let new = base
            .filter(|selector| !requested.contains(selector))
            .take(limit);
        subscribe.extend(new.map(|selector| (selector, type_stream.params)));
    }

    /// Forgets the refusals of names that a reconnecting client knows not to
    /// exist: a proxy lists every host that it ever requested.
    fn spare_known_refusals(&mut self, index: usize, initial: &InitialVersions) {
        let is_known = |name: &Name| initial.get(name).is_some_and(is_negative_version);
        let refused = &mut self.type_streams[index].refused;
        refused.retain(|name| !is_known(name));
    }

    /// Reports a refusal. One request can have millions of bad names, so beyond
    /// [`MAX_EVENTS`] they are not reported.
    pub(super) fn refuse(&mut self, url: &TypeUrl, reason: Refusal) {
        if self.events.len() < MAX_EVENTS {
            let type_url = url.clone();
            self.events.push_back(Event::Refused { type_url, reason });
        }
    }
}

/// The subscriptions that end with a request.
#[derive(Clone, Copy)]
struct EndingSubscriptions {
    names: usize,
    unbounded_hosts: usize,
}

/// The numbers of subscriptions that a stream may still add.
struct Room {
    names: usize,
    /// Unbounded hosts of one type.
    hosts: usize,
    globs: usize,
    /// Whether the limit of hosts is reached before that of names.
    hosts_end_first: bool,
}

impl Room {
    /// The refusal of a selector for which there is no room.
    fn refusal(&self, selector: &Selector, on_demand: bool, limits: &Limits) -> Refusal {
        match selector {
            Selector::Name(_) if on_demand && self.hosts_end_first => Refusal::Hosts {
                limit: limits.hosts,
            },
            Selector::Name(_) => Refusal::Subscriptions {
                limit: limits.subscriptions,
            },
            Selector::Glob(_) | Selector::Wildcard => Refusal::Globs {
                limit: limits.globs,
            },
        }
    }
}

/// Leaves out initial versions that are too many, or whose names are too long.
fn limit_versions(versions: InitialVersions, limits: &Limits) -> InitialVersions {
    let (most, longest) = (limits.subscriptions, limits.name_bytes);
    if versions.len() <= most && versions.longest_name() <= longest {
        return versions;
    }
    let fits = |(name, _): &&(Name, Version)| name.as_str().len() <= longest;
    versions.iter().take(most).filter(fits).cloned().collect()
}

/// Whether a list has anything but `*`. A name counts even if it is refused:
/// the list is not empty (S27).
fn names_something(list: &[Locator]) -> bool {
    list.iter().any(|locator| locator.name != "*")
}

/// Counts the names among selectors of which something is true.
fn count_names(
    selectors: &[(Selector, ParamsId)],
    is_counted: impl Fn(&Name, ParamsId) -> bool,
) -> usize {
    let is_counted = |(selector, params): &&(Selector, ParamsId)| match selector {
        Selector::Name(name) => is_counted(name, *params),
        Selector::Glob(_) | Selector::Wildcard => false,
    };
    selectors.iter().filter(is_counted).count()
}
