//! Handles requests: node and type, acknowledgement, subscriptions.

use hashbrown::HashSet;

use super::refuse::{EndingSubscriptions, limit_versions};
use super::{Event, ProtocolError, Refusal, Session};
use crate::database::{Database, TypeId};
use crate::message::{
    DeltaRequest, ErrorDetail, InitialVersions, Locator, Mode, Node, SotwRequest,
};
use crate::moment::Moment;
use crate::name::{Name, Selector};
use crate::params::ParamsId;
use crate::resource::{Nonce, TypeUrl, Version};
use crate::source::{DeltaSubscriptions, TypeStream, TypeStreamConfig};

impl Session {
    /// Handles a delta request. Its acknowledgement, subscriptions and initial
    /// versions count independently of each other (S8). A request of a type
    /// that is refused is ignored. Many subscriptions are read in slices; the
    /// rest is read by polls (S85).
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
        let base_hosts = match first {
            true => {
                let initial = &request.initial_versions;
                self.base_hosts_of_request(db, index, &request.subscribe, initial)
            }
            false => Vec::new(),
        };
        self.adopt_scope_params(db, index, &request.subscribe);

        let (subscribe, unsubscribe) = (request.subscribe, request.unsubscribe);
        let mut subscriptions = self.parse_delta(db, index, subscribe, unsubscribe);
        if first {
            let versions = request.initial_versions;
            subscriptions.initial = self.resume_delta(db, index, versions, now);
            self.add_base_hosts(db, index, base_hosts, &mut subscriptions.subscribe);
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

    /// Parses the lists of a delta request, and refuses and reports what is
    /// over the limits. Names that the request unsubscribes from make room. The
    /// result has no initial versions yet.
    fn parse_delta(
        &mut self,
        db: &mut Database,
        index: usize,
        subscribe: Vec<Locator>,
        unsubscribe: Vec<Locator>,
    ) -> DeltaSubscriptions {
        let url = self.type_streams[index].type_url.clone();
        let names = has_names(&subscribe);
        let unsubscribe = self.parse_locators(db, &url, unsubscribe);
        let mut subscribe = self.parse_locators(db, &url, subscribe);
        let ending = EndingSubscriptions {
            names: self.count_subscribed(db, index, &unsubscribe),
            unbounded_hosts: self.count_unbounded_hosts(db, index, &unsubscribe),
        };
        for refusal in self.refuse_over_limits(db, index, &mut subscribe, ending) {
            self.report_refusal(&url, refusal);
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
            self.resume_type(db, index, now);
            self.type_streams[index].count_resumed(&versions);
        }
        let versions = limit_versions(versions, &self.config.limits);
        self.forget_known_refusals(index, &versions);
        versions
    }

    /// Handles a SotW request: the newest list counts, whatever the nonce says
    /// (S10). A request of a type that is refused is ignored. A long list is
    /// read in slices; the rest is read by polls (S85).
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
        let lists_names = has_names(&request.names);
        let selectors = self.parse_sotw(db, index, request.names);

        let first_version = request.version.filter(|_| first);
        match &first_version {
            // A client that names the version of the empty set reconnected, and
            // holds nothing.
            Some(version) if *version == Version::of_hash(0) => self.resume_stream(db, now),
            Some(_) => self.resume_type(db, index, now),
            None => {}
        }

        let type_stream = &mut self.type_streams[index];
        let changes = type_stream.read_sotw(db, &selectors, lists_names, first_version);
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
        let is_acknowledgement = is_nack || version == self.sent_version(index, &nonce).as_ref();
        if is_acknowledgement && self.is_pending(index, &nonce, is_nack) {
            self.handle_acknowledgement(db, index, nonce.clone(), error, now);
        }
        if !is_newest {
            self.report_stale(index, nonce);
        }
    }

    /// Parses the list of a SotW request, and refuses what is over the limits.
    /// Names that the list lacks make room. Refusals are reported only if they
    /// differ from those of the last list.
    fn parse_sotw(
        &mut self,
        db: &mut Database,
        index: usize,
        names: Vec<Locator>,
    ) -> Vec<(Selector, ParamsId)> {
        let url = self.type_streams[index].type_url.clone();
        let mut selectors = self.parse_locators(db, &url, names);
        let subscribed = self.type_streams[index].subscriptions.len();
        let still_listed = self.count_subscribed(db, index, &selectors);
        let ending = EndingSubscriptions {
            names: subscribed.saturating_sub(still_listed),
            unbounded_hosts: 0,
        };

        let due = !std::mem::take(&mut self.type_streams[index].refused).is_empty();
        let refusals = self.refuse_over_limits(db, index, &mut selectors, ending);
        if self.type_streams[index].update_refusals(due) {
            for refusal in refusals {
                self.report_refusal(&url, refusal);
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
    /// Returns the type; that of a stream for one type may be left out. The
    /// first node counts, and another one is only reported.
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
        let mut type_streams = self.type_streams.iter();
        if let Some(index) = type_streams.position(|other| other.type_url == *url) {
            return Some((index, false));
        }
        if !self.has_room_for_type(url) {
            let limit = self.config.limits.types;
            self.report_refusal(url, Refusal::Types { limit });
            return None;
        }

        let config = TypeStreamConfig {
            mode: self.config.mode,
            dialect: self.dialect(),
            supports_resource_errors: self.config.supports_resource_errors,
            denied: self.denied.contains(url),
            withholds_keys: self.config.withholds_keys,
            params: self.params_of(url),
        };
        let type_id = self.type_id_for(db, url);
        let mut new = TypeStream::new(db, self.stream, url, type_id, config);
        new.kind.legacy_wildcard &= self.allows_legacy_wildcard(url);

        let rank = |type_stream: &TypeStream| (type_stream.kind.rank, type_stream.type_url.clone());
        let new_rank = rank(&new);
        let place = self.type_streams.binary_search_by_key(&new_rank, rank);
        let index = place.unwrap_or_else(|index| index);
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

    /// Adds base subscriptions to those of a request that lacks them, as far as
    /// a virtual host has the host as a domain, and at most as many as a stream
    /// may have.
    fn add_base_hosts(
        &self,
        db: &Database,
        index: usize,
        base_hosts: Vec<Name>,
        subscribe: &mut Vec<(Selector, ParamsId)>,
    ) {
        let type_stream = &self.type_streams[index];
        let limit = self.config.limits.subscriptions;
        let selectors = subscribe.iter().map(|(selector, _)| selector.clone());
        let requested: HashSet<Selector> = selectors.collect();

        let exists = |name: &Name| db.has_exact_domain(type_stream.type_id, name);
        let existing = base_hosts.into_iter().filter(exists).map(Selector::Name);
        let lacking = existing.filter(|selector| !requested.contains(selector));
        let added = lacking.take(limit);
        subscribe.extend(added.map(|selector| (selector, type_stream.params)));
    }
}

/// Whether a list has anything but `*`. A name counts even if it is refused:
/// the list is not empty (S27).
fn has_names(list: &[Locator]) -> bool {
    list.iter().any(|locator| locator.name != "*")
}
