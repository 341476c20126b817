//! Reading requests: whose they are, what they answer, what they ask for.

use hashbrown::HashSet;

use super::{EVENTS, Event, ProtocolError, Refusal, Session};
use crate::database::{Database, Scope, TypeId};
use crate::limits::Limits;
use crate::message::{DeltaRequest, Locator, Mode, Node, SotwRequest};
use crate::moment::Moment;
use crate::name::{Name, Selector};
use crate::params::ParamsId;
use crate::resource::{TypeUrl, Version};
use crate::source::{
    DeltaSubscriptions, InitialVersions, TypeStream, TypeStreamConfig, is_negative_version,
};

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
        while self.read_on(db) {}
        let url = self.begin(Mode::Delta, request.node, request.type_url)?;
        let Some((index, first)) = self.conversation(db, &url) else {
            return Ok(());
        };
        if let Some(nonce) = request.nonce.filter(|_| !first) {
            let error = request.error;
            if self.awaits(index, &nonce, error.is_some()) {
                self.verdict(db, index, nonce, error, now);
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
            self.look_again();
            return Ok(());
        }
        self.take_up_params(db);
        let hosts = &self.conversations[index];
        let base = match first && hosts.kind.on_demand {
            true => {
                let (names, initial) = (&request.subscribe, &request.initial_versions);
                self.base_of_request(db, hosts.type_id, names, initial)
            }
            false => Vec::new(),
        };
        self.take_params_of_whole(db, index, &request.subscribe);
        let mut asks = DeltaSubscriptions {
            names: names_something(&request.subscribe),
            unsubscribe: self.read(db, &url, request.unsubscribe),
            ..DeltaSubscriptions::default()
        };
        asks.subscribe = self.read(db, &url, request.subscribe);
        let leaving = Leaving {
            names: self.known(db, index, &asks.unsubscribe),
            strangers: self.strangers_among(db, index, &asks.unsubscribe),
        };
        for refusal in self.refuse_beyond(db, index, &mut asks.subscribe, leaving) {
            self.refuse(&url, refusal);
        }
        if first {
            if !request.initial_versions.is_empty() {
                self.resume(db, index, now);
                self.conversations[index].count_resumed(&request.initial_versions);
            }
            // Later ones do not count (S49).
            let Limits {
                name_bytes,
                subscriptions,
                ..
            } = self.config.limits;
            let versions = request.initial_versions.into_iter().take(subscriptions);
            asks.initial.reserve(versions.len());
            let ours = versions.filter(|(name, _)| name.as_str().len() <= name_bytes);
            asks.initial.extend(ours);
            self.spare_known_refusals(index, &asks.initial);
            self.add_base(db, index, base, &mut asks.subscribe);
        }
        let reading = self.conversations[index].read_delta(asks);
        self.read_later(db, url, reading, first, now);
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
        while self.read_on(db) {}
        let url = self.begin(Mode::Sotw, request.node, request.type_url)?;
        let Some((index, first)) = self.conversation(db, &url) else {
            return Ok(());
        };
        if let Some(nonce) = request.nonce.filter(|_| !first) {
            let newest = self.is_newest(index, &nonce);
            if self.awaits(index, &nonce, request.error.is_some()) {
                // Without an error it is an ACK only if it names the version:
                // a change of names may come first (wire facts 1).
                let sent = self.sent_version(index, &nonce);
                if request.error.is_some() || request.version == sent {
                    self.verdict(db, index, nonce.clone(), request.error, now);
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
        self.take_up_params(db);
        self.take_params_of_whole(db, index, &request.names);
        let names = names_something(&request.names);
        let mut asks = self.read(db, &url, request.names);
        let all = self.conversations[index].subscriptions.len();
        let leaving = Leaving {
            names: all.saturating_sub(self.known(db, index, &asks)),
            strangers: 0,
        };
        let due = !std::mem::take(&mut self.conversations[index].refused).is_empty();
        let refusals = self.refuse_beyond(db, index, &mut asks, leaving);
        if self.conversations[index].refusals_changed(due) {
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
        let conversation = &mut self.conversations[index];
        let reading = conversation.read_sotw(db, &asks, names, version);
        self.read_later(db, url, reading, first, now);
        Ok(())
    }

    /// Who speaks, and of what (S1, S2, S3).
    fn begin(
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
        match (url, &self.config.only) {
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
    fn conversation(&mut self, db: &mut Database, url: &TypeUrl) -> Option<(usize, bool)> {
        let mut all = self.conversations.iter();
        if let Some(index) = all.position(|c| c.type_url == *url) {
            return Some((index, false));
        }
        let limit = self.config.limits.types;
        if self.conversations.len() >= limit || url.as_str().len() > self.config.limits.name_bytes {
            self.refuse(url, Refusal::Types { limit });
            return None;
        }
        let terms = TypeStreamConfig {
            mode: self.config.mode,
            dialect: self.dialect(),
            supports_resource_errors: self.config.speaks_errors,
            denied: self.denied.contains(url),
            params: self.params_of(url),
        };
        let table = self.table(db, url);
        let mut new = TypeStream::new(db, self.stream, url, table, terms);
        new.kind.legacy_wildcard &= self.knows_legacy_wildcard(url);
        let rank = |c: &TypeStream| (c.kind.rank, c.type_url.clone());
        let place = rank(&new);
        let index = self.conversations.partition_point(|c| rank(c) < place);
        self.conversations.reserve_exact(1);
        self.conversations.insert(index, new);
        Some((index, true))
    }

    /// Where a type is looked up. One that the peer may not see is looked up
    /// where nothing ever is, so that its names do not exist and nothing hangs.
    fn table(&self, db: &mut Database, url: &TypeUrl) -> TypeId {
        match self.denied.contains(url) {
            true => db.type_id(&TypeUrl::new(format!("denied {url}"))),
            false => db.type_id(url),
        }
    }

    /// How many of these names are subscribed.
    fn known(&self, db: &Database, index: usize, asks: &[(Selector, ParamsId)]) -> usize {
        let known = |(ask, params): &&(Selector, ParamsId)| match ask {
            Selector::Name(name) => self.conversations[index].is_subscribed(db, name, *params),
            _ => false,
        };
        asks.iter().filter(known).count()
    }

    /// How many of these are hosts of which there may be any number.
    fn strangers_among(&self, db: &Database, index: usize, asks: &[(Selector, ParamsId)]) -> usize {
        let strange = |(ask, params): &&(Selector, ParamsId)| match ask {
            Selector::Name(name) => self.conversations[index].has_unbounded_host(db, name, *params),
            _ => false,
        };
        asks.iter().filter(strange).count()
    }

    /// Refuses what goes beyond the limits; what is `leaving` ends with the
    /// same request. A refused name is answered in the negative, so that
    /// the peer does not wait, and not remembered (S72).
    #[must_use]
    fn refuse_beyond(
        &mut self,
        db: &Database,
        index: usize,
        asks: &mut Vec<(Selector, ParamsId)>,
        leaving: Leaving,
    ) -> Vec<Refusal> {
        let used = |count: fn(&TypeStream) -> usize| -> usize {
            let all = self.conversations.iter();
            all.map(count).sum()
        };
        let names = used(TypeStream::subscription_count).saturating_sub(leaving.names);
        let (limits, globs) = (self.config.limits.clone(), used(TypeStream::glob_count));
        let mut room_for_names = limits.subscriptions.saturating_sub(names);
        let mut room_for_globs = limits.globs.saturating_sub(globs);
        let hosts = self.conversations[index].subscriptions.unbounded_hosts();
        let hosts = hosts.saturating_sub(leaving.strangers);
        let mut room_for_hosts = limits.hosts.saturating_sub(hosts);
        let too_many_hosts = room_for_hosts < room_for_names;
        room_for_hosts = room_for_hosts.min(room_for_names);
        let mut refusals = Vec::new();
        let conversation = &mut self.conversations[index];
        asks.retain(|(ask, params)| {
            let (known, room) = match ask {
                Selector::Wildcard => return true,
                Selector::Glob(glob) => {
                    let scope = Scope::Glob(glob.clone());
                    let known = conversation.client_cache.cursor_of(&scope).is_some();
                    (known, &mut room_for_globs)
                }
                Selector::Name(name) if conversation.kind.on_demand => {
                    let known = conversation.is_subscribed(db, name, *params)
                        || db.is_bounded_host(conversation.type_id, name);
                    (known, &mut room_for_hosts)
                }
                Selector::Name(name) => (
                    conversation.is_subscribed(db, name, *params),
                    &mut room_for_names,
                ),
            };
            if known || *room > 0 {
                *room -= usize::from(!known);
                return true;
            }
            refusals.push(match ask {
                Selector::Name(name) => {
                    conversation.refused.insert(name.clone());
                    match conversation.kind.on_demand && too_many_hosts {
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
    fn add_base(
        &self,
        db: &Database,
        index: usize,
        base: Vec<Name>,
        subscribe: &mut Vec<(Selector, ParamsId)>,
    ) {
        let conversation = &self.conversations[index];
        let room = self.config.limits.subscriptions;
        let asked: HashSet<_> = subscribe.iter().map(|(ask, _)| ask.clone()).collect();
        let known = |name: &Name| db.has_exact_domain(conversation.type_id, name);
        let base = base.into_iter().filter(known).map(Selector::Name);
        let new = base.filter(|ask| !asked.contains(ask)).take(room);
        subscribe.extend(new.map(|ask| (ask, conversation.params)));
    }

    /// What a client knows not to exist need not be refused again: a proxy lists
    /// every host that it ever asked for.
    fn spare_known_refusals(&mut self, index: usize, initial: &InitialVersions) {
        let knows = |name: &Name| initial.get(name).is_some_and(is_negative_version);
        let refused = &mut self.conversations[index].refused;
        refused.retain(|name| !knows(name));
    }

    /// One request can hold millions of bad names: beyond a number they are
    /// only counted.
    pub(super) fn refuse(&mut self, url: &TypeUrl, reason: Refusal) {
        if self.events.len() >= EVENTS {
            self.unreported += 1;
            return;
        }
        let type_url = url.clone();
        self.events.push_back(Event::Refused { type_url, reason });
    }
}

/// How much of what a stream holds ends with a request.
#[derive(Clone, Copy)]
struct Leaving {
    names: usize,
    strangers: usize,
}

/// Whether a list names anything but the whole. A name that is refused is one
/// all the same: the list is not empty (S27).
fn names_something(list: &[Locator]) -> bool {
    list.iter().any(|locator| locator.name != "*")
}
