//! Reading requests: whose they are, what they answer, what they ask for.

use hashbrown::HashSet;

use super::{Event, MAX_EVENTS, ProtocolError, Refusal, Session};
use crate::database::{Database, Scope, TypeId};
use crate::limits::Limits;
use crate::message::{DeltaRequest, InitialVersions, Locator, Mode, Node, SotwRequest};
use crate::moment::Moment;
use crate::name::{Name, Selector};
use crate::params::ParamsId;
use crate::resource::{TypeUrl, Version};
use crate::source::{DeltaSubscriptions, TypeStream, TypeStreamConfig, is_negative_version};

impl Session {
    /// A delta request. Answer, subscriptions and initial versions are each
    /// taken by themselves (S8).
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
            let error = request.error;
            if self.is_pending(index, &nonce, error.is_some()) {
                self.handle_acknowledgement(db, index, nonce, error, now);
            } else {
                // Subscriptions count all the same (S7).
                self.events.push_back(Event::Stale {
                    type_url: url.clone(),
                    nonce,
                });
            }
        }
        if !first && request.subscribe.is_empty() && request.unsubscribe.is_empty() {
            // An answer and nothing else, as most requests are.
            self.mark_deferred_dirty();
            return Ok(());
        }
        self.apply_params(db);
        let hosts = &self.type_streams[index];
        let base = match first && hosts.kind.on_demand {
            true => {
                let (names, initial) = (&request.subscribe, &request.initial_versions);
                self.base_hosts_of_request(db, hosts.type_id, names, initial)
            }
            false => Vec::new(),
        };
        self.adopt_scope_params(db, index, &request.subscribe);
        let mut selectors = DeltaSubscriptions {
            names: names_something(&request.subscribe),
            unsubscribe: self.parse_locators(db, &url, request.unsubscribe),
            ..DeltaSubscriptions::default()
        };
        selectors.subscribe = self.parse_locators(db, &url, request.subscribe);
        let leaving = EndingSubscriptions {
            names: self.count_subscribed(db, index, &selectors.unsubscribe),
            unbounded_hosts: self.count_unbounded_hosts(db, index, &selectors.unsubscribe),
        };
        for refusal in self.refuse_over_limits(db, index, &mut selectors.subscribe, leaving) {
            self.refuse(&url, refusal);
        }
        if first {
            if !request.initial_versions.is_empty() {
                self.resume(db, index, now);
                self.type_streams[index].count_resumed(&request.initial_versions);
            }
            // Later ones do not count (S49).
            let Limits {
                name_bytes,
                subscriptions,
                ..
            } = self.config.limits;
            let versions = request.initial_versions;
            let fits = versions.len() <= subscriptions && versions.longest_name() <= name_bytes;
            selectors.initial = match fits {
                true => versions,
                false => {
                    let versions = versions.iter().take(subscriptions);
                    let fits = |(name, _): &&(Name, _)| name.as_str().len() <= name_bytes;
                    versions.filter(fits).cloned().collect()
                }
            };
            self.spare_known_refusals(index, &selectors.initial);
            self.add_base_hosts(db, index, base, &mut selectors.subscribe);
        }
        let reading = self.type_streams[index].read_delta(selectors);
        self.begin_changes(db, url, reading, first, now);
        Ok(())
    }

    /// A state-of-the-world request: the newest list counts (S10).
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
            let newest = self.is_newest(index, &nonce);
            if self.is_pending(index, &nonce, request.error.is_some()) {
                // Without an error it is an ACK only if it names the version:
                // a change of names may come first (wire facts 1).
                let sent = self.sent_version(index, &nonce);
                if request.error.is_some() || request.version == sent {
                    self.handle_acknowledgement(db, index, nonce.clone(), request.error, now);
                }
            }
            if !newest {
                // It is no answer to the newest response. Its list is the newest
                // all the same (S6, S10); what it asks for is sent once that
                // response has its answer.
                self.events.push_back(Event::Stale {
                    type_url: url.clone(),
                    nonce,
                });
            }
        }
        self.apply_params(db);
        self.adopt_scope_params(db, index, &request.names);
        let names = names_something(&request.names);
        let mut selectors = self.parse_locators(db, &url, request.names);
        let all = self.type_streams[index].subscriptions.len();
        let leaving = EndingSubscriptions {
            names: all.saturating_sub(self.count_subscribed(db, index, &selectors)),
            unbounded_hosts: 0,
        };
        let due = !std::mem::take(&mut self.type_streams[index].refused).is_empty();
        let refusals = self.refuse_over_limits(db, index, &mut selectors, leaving);
        if self.type_streams[index].refusals_changed(due) {
            for refusal in refusals {
                self.refuse(&url, refusal);
            }
        }
        let version = request.version.filter(|_| first);
        match &version {
            // Who names the version of nothing came back, and holds nothing.
            Some(version) if *version == Version::of_hash(0) => self.resume_stream(db, now),
            Some(_) => self.resume(db, index, now),
            None => {}
        }
        let type_stream = &mut self.type_streams[index];
        let reading = type_stream.read_sotw(db, &selectors, names, version);
        self.begin_changes(db, url, reading, first, now);
        Ok(())
    }

    /// Who speaks, and of what (S1, S2, S3).
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

    /// The conversation about a type, and whether it begins with this request.
    fn find_or_open_type(&mut self, db: &mut Database, url: &TypeUrl) -> Option<(usize, bool)> {
        let mut all = self.type_streams.iter();
        if let Some(index) = all.position(|c| c.type_url == *url) {
            return Some((index, false));
        }
        let limit = self.config.limits.types;
        if self.type_streams.len() >= limit || url.as_str().len() > self.config.limits.name_bytes {
            self.refuse(url, Refusal::Types { limit });
            return None;
        }
        let terms = TypeStreamConfig {
            mode: self.config.mode,
            dialect: self.dialect(),
            supports_resource_errors: self.config.supports_resource_errors,
            denied: self.denied.contains(url),
            params: self.params_of(url),
        };
        let table = self.type_id_for(db, url);
        let mut new = TypeStream::new(db, self.stream, url, table, terms);
        new.kind.legacy_wildcard &= self.allows_legacy_wildcard(url);
        let rank = |c: &TypeStream| (c.kind.rank, c.type_url.clone());
        let place = rank(&new);
        let index = self.type_streams.partition_point(|c| rank(c) < place);
        self.type_streams.reserve_exact(1);
        self.type_streams.insert(index, new);
        Some((index, true))
    }

    /// Where a type is looked up. One that the peer may not see is looked up
    /// where nothing ever is, so that its names do not exist and nothing hangs.
    fn type_id_for(&self, db: &mut Database, url: &TypeUrl) -> TypeId {
        match self.denied.contains(url) {
            true => db.type_id(&TypeUrl::new(format!("denied {url}"))),
            false => db.type_id(url),
        }
    }

    /// How many of these names are subscribed.
    fn count_subscribed(
        &self,
        db: &Database,
        index: usize,
        selectors: &[(Selector, ParamsId)],
    ) -> usize {
        let known = |(selector, params): &&(Selector, ParamsId)| match selector {
            Selector::Name(name) => self.type_streams[index].is_subscribed(db, name, *params),
            _ => false,
        };
        selectors.iter().filter(known).count()
    }

    /// How many of these are hosts of which there may be any number.
    fn count_unbounded_hosts(
        &self,
        db: &Database,
        index: usize,
        selectors: &[(Selector, ParamsId)],
    ) -> usize {
        let strange = |(selector, params): &&(Selector, ParamsId)| match selector {
            Selector::Name(name) => self.type_streams[index].has_unbounded_host(db, name, *params),
            _ => false,
        };
        selectors.iter().filter(strange).count()
    }

    /// Refuses what goes beyond the limits; what is `leaving` ends with the
    /// same request. A refused name is answered in the negative, so that
    /// the peer does not wait, and not remembered (S72).
    #[must_use]
    fn refuse_over_limits(
        &mut self,
        db: &Database,
        index: usize,
        selectors: &mut Vec<(Selector, ParamsId)>,
        leaving: EndingSubscriptions,
    ) -> Vec<Refusal> {
        let used = |count: fn(&TypeStream) -> usize| -> usize {
            let all = self.type_streams.iter();
            all.map(count).sum()
        };
        let names = used(TypeStream::subscription_count).saturating_sub(leaving.names);
        let (limits, globs) = (self.config.limits.clone(), used(TypeStream::glob_count));
        let mut room_for_names = limits.subscriptions.saturating_sub(names);
        let mut room_for_globs = limits.globs.saturating_sub(globs);
        let hosts = self.type_streams[index].subscriptions.unbounded_hosts();
        let hosts = hosts.saturating_sub(leaving.unbounded_hosts);
        let mut room_for_hosts = limits.hosts.saturating_sub(hosts);
        let too_many_hosts = room_for_hosts < room_for_names;
        room_for_hosts = room_for_hosts.min(room_for_names);
        let mut refusals = Vec::new();
        let type_stream = &mut self.type_streams[index];
        selectors.retain(|(selector, params)| {
            let (known, room) = match selector {
                Selector::Wildcard => return true,
                Selector::Glob(glob) => {
                    let scope = Scope::Glob(glob.clone());
                    let known = type_stream.client_cache.cursor_of(&scope).is_some();
                    (known, &mut room_for_globs)
                }
                Selector::Name(name) if type_stream.kind.on_demand => {
                    let known = type_stream.is_subscribed(db, name, *params)
                        || db.is_bounded_host(type_stream.type_id, name);
                    (known, &mut room_for_hosts)
                }
                Selector::Name(name) => (
                    type_stream.is_subscribed(db, name, *params),
                    &mut room_for_names,
                ),
            };
            if known || *room > 0 {
                *room -= usize::from(!known);
                return true;
            }
            refusals.push(match selector {
                Selector::Name(name) => {
                    type_stream.refused.insert(name.clone());
                    match type_stream.kind.on_demand && too_many_hosts {
                        true => Refusal::Hosts {
                            limit: limits.hosts,
                        },
                        false => Refusal::Subscriptions {
                            limit: limits.subscriptions,
                        },
                    }
                }
                _ => Refusal::Globs {
                    limit: limits.globs,
                },
            });
            false
        });
        refusals
    }

    /// Takes the base set as asked for, as far as it is not.
    fn add_base_hosts(
        &self,
        db: &Database,
        index: usize,
        base: Vec<Name>,
        subscribe: &mut Vec<(Selector, ParamsId)>,
    ) {
        let type_stream = &self.type_streams[index];
        let room = self.config.limits.subscriptions;
        let asked: HashSet<_> = subscribe
            .iter()
            .map(|(selector, _)| selector.clone())
            .collect();
        let known = |name: &Name| db.has_exact_domain(type_stream.type_id, name);
        let base = base.into_iter().filter(known).map(Selector::Name);
        let new = base.filter(|selector| !asked.contains(selector)).take(room);
        subscribe.extend(new.map(|selector| (selector, type_stream.params)));
    }

    /// What a client knows not to exist need not be refused again: a proxy lists
    /// every host that it ever asked for.
    fn spare_known_refusals(&mut self, index: usize, initial: &InitialVersions) {
        let knows = |name: &Name| initial.get(name).is_some_and(is_negative_version);
        let refused = &mut self.type_streams[index].refused;
        refused.retain(|name| !knows(name));
    }

    /// One request can hold millions of bad names: beyond a number they are
    /// only counted.
    pub(super) fn refuse(&mut self, url: &TypeUrl, reason: Refusal) {
        if self.events.len() >= MAX_EVENTS {
            self.dropped_events += 1;
            return;
        }
        let type_url = url.clone();
        self.events.push_back(Event::Refused { type_url, reason });
    }
}

/// How much of what a stream holds ends with a request.
#[derive(Clone, Copy)]
struct EndingSubscriptions {
    names: usize,
    unbounded_hosts: usize,
}

/// Whether a list names anything but the whole. A name that is refused is one
/// all the same: the list is not empty (S27).
fn names_something(list: &[Locator]) -> bool {
    list.iter().any(|locator| locator.name != "*")
}
