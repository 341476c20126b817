//! Reading requests: whose they are, what they answer, what they ask for.

use hashbrown::HashSet;

use super::{EVENTS, Event, ProtocolError, Refusal, Session};
use crate::database::{Database, Scope, TypeId};
use crate::facts::Reference;
use crate::interest::Wildcard;
use crate::limits::Limits;
use crate::message::{DeltaRequest, ErrorDetail, Locator, Mode, Node, SotwRequest};
use crate::moment::Moment;
use crate::name::{Ask, Name};
use crate::params::ParamsId;
use crate::resource::{Nonce, TypeUrl};
use crate::source::{Conversation, DeltaAsks, InitialVersions, Terms, is_negative};

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
        let url = self.begin(Mode::Delta, request.node, request.type_url)?;
        let Some((index, first)) = self.conversation(db, &url) else {
            return Ok(());
        };
        if let Some(nonce) = request.nonce.filter(|_| !first) {
            let error = request.error;
            if self.awaits(index, &nonce) {
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
            return Ok(());
        }
        let base = match (first, &self.conversations[index]) {
            (true, Some(hosts)) if hosts.kind.on_demand => {
                let (names, initial) = (&request.subscribe, &request.initial_versions);
                self.base_of_request(db, hosts.type_id, names, initial)
            }
            _ => Vec::new(),
        };
        self.take_params_of_whole(db, index, &request.subscribe);
        let mut asks = DeltaAsks {
            names: names_something(&request.subscribe),
            unsubscribe: self.read(db, &url, request.unsubscribe),
            ..DeltaAsks::default()
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
            if !request.initial_versions.is_empty() && self.config.only.is_none() {
                self.resuming_until.get_or_insert(now + self.config.resume);
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
        if let Some(conversation) = &mut self.conversations[index] {
            conversation.handle_delta(db, asks);
        }
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
        let url = self.begin(Mode::Sotw, request.node, request.type_url)?;
        let Some((index, first)) = self.conversation(db, &url) else {
            return Ok(());
        };
        if let Some(nonce) = request.nonce.filter(|_| !first) {
            let newest = self.is_newest(index, &nonce);
            if self.awaits(index, &nonce) {
                // Without an error it is an ACK only if it names the version:
                // a change of names may come first (wire facts 1).
                let sent = self.sent_version(index, &nonce);
                if request.error.is_some() || request.version == sent {
                    self.verdict(db, index, nonce.clone(), request.error, now);
                }
            }
            if !newest {
                self.note_naming(index, &request.names);
                // The names come again with the answer to the newest (S6).
                self.events.push_back(Event::Stale {
                    type_url: url,
                    nonce,
                });
                return Ok(());
            }
        }
        self.take_params_of_whole(db, index, &request.names);
        let names = names_something(&request.names);
        let mut asks = self.read(db, &url, request.names);
        let conversation = self.conversations[index].as_ref();
        let all = conversation.map_or(0, |c| c.asks.len());
        let leaving = Leaving {
            names: all.saturating_sub(self.known(db, index, &asks)),
            strangers: 0,
        };
        let conversation = self.conversations[index].as_mut();
        let due = conversation.is_some_and(|c| !std::mem::take(&mut c.refused).is_empty());
        let refusals = self.refuse_beyond(db, index, &mut asks, leaving);
        let conversation = self.conversations[index].as_mut();
        if conversation.is_some_and(|c| c.refuses_anew(due)) {
            for refusal in refusals {
                self.refuse(&url, refusal);
            }
        }
        if let Some(conversation) = &mut self.conversations[index] {
            let version = request.version.filter(|_| first);
            conversation.handle_sotw(db, &asks, names, version.as_ref());
        }
        Ok(())
    }

    /// Even in a request that does not count otherwise, naming something ends
    /// the wildcard that names nothing: an empty list means nothing from then
    /// on, and both sides must agree on when (S19).
    fn note_naming(&mut self, index: usize, names: &[Locator]) {
        if let Some(conversation) = &mut self.conversations[index]
            && conversation.wildcard == Wildcard::Legacy
            && !names.is_empty()
        {
            conversation.wildcard = Wildcard::Explicit;
        }
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
        if let Some(index) = all.position(|c| c.as_ref().is_some_and(|c| c.url == *url)) {
            return Some((index, false));
        }
        let limit = self.config.limits.types;
        if self.conversations.len() >= limit || url.as_str().len() > self.config.limits.name_bytes {
            self.refuse(url, Refusal::Types { limit });
            return None;
        }
        let terms = Terms {
            mode: self.config.mode,
            dialect: self.dialect(),
            speaks_errors: self.config.speaks_errors,
            denied: self.denied.contains(url),
            params: self.params_of(url),
        };
        let table = self.table(db, url);
        let mut new = Conversation::new(db, self.stream, url, table, terms);
        new.kind.legacy_wildcard &= self.knows_legacy_wildcard(url);
        if let Some(node) = &self.node {
            new.recall(db, &node.id);
        }
        let rank = |c: &Conversation| (c.kind.rank, c.url.clone());
        let place = rank(&new);
        let index = self
            .conversations
            .partition_point(|c| c.as_ref().is_some_and(|c| rank(c) < place));
        self.conversations.insert(index, Some(Box::new(new)));
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
    fn known(&self, db: &Database, index: usize, asks: &[(Ask, ParamsId)]) -> usize {
        let known = |(ask, params): &&(Ask, ParamsId)| match (ask, &self.conversations[index]) {
            (Ask::Name(name), Some(conversation)) => conversation.has_ask(db, name, *params),
            _ => false,
        };
        asks.iter().filter(known).count()
    }

    /// How many of these are hosts of which there may be any number.
    fn strangers_among(&self, db: &Database, index: usize, asks: &[(Ask, ParamsId)]) -> usize {
        let strange = |(ask, params): &&(Ask, ParamsId)| match (ask, &self.conversations[index]) {
            (Ask::Name(name), Some(conversation)) => conversation.has_stranger(db, name, *params),
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
        asks: &mut Vec<(Ask, ParamsId)>,
        leaving: Leaving,
    ) -> Vec<Refusal> {
        let used = |count: fn(&Conversation) -> usize| -> usize {
            let all = self.conversations.iter().flatten();
            all.map(|conversation| count(conversation)).sum()
        };
        let names = used(Conversation::subscriptions).saturating_sub(leaving.names);
        let (limits, globs) = (self.config.limits.clone(), used(Conversation::globs));
        let mut room_for_names = limits.subscriptions.saturating_sub(names);
        let mut room_for_globs = limits.globs.saturating_sub(globs);
        let conversation = self.conversations[index].as_ref();
        let hosts = conversation.map_or(0, |c| c.strangers);
        let hosts = hosts.saturating_sub(leaving.strangers);
        let mut room_for_hosts = limits.hosts.saturating_sub(hosts);
        let too_many_hosts = room_for_hosts < room_for_names;
        room_for_hosts = room_for_hosts.min(room_for_names);
        let mut refusals = Vec::new();
        let Some(conversation) = &mut self.conversations[index] else {
            return refusals;
        };
        asks.retain(|(ask, params)| {
            let (known, room) = match ask {
                Ask::Wildcard => return true,
                Ask::Glob(glob) => {
                    let known = conversation.cursor_of(&Scope::Glob(glob.clone())).is_some();
                    (known, &mut room_for_globs)
                }
                Ask::Name(name) if conversation.kind.on_demand => {
                    let known = conversation.has_ask(db, name, *params)
                        || db.expects_host(conversation.type_id, name);
                    (known, &mut room_for_hosts)
                }
                Ask::Name(name) => (conversation.has_ask(db, name, *params), &mut room_for_names),
            };
            if known || *room > 0 {
                *room -= usize::from(!known);
                return true;
            }
            refusals.push(match ask {
                Ask::Name(name) => {
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
        subscribe: &mut Vec<(Ask, ParamsId)>,
    ) {
        let Some(conversation) = &self.conversations[index] else {
            return;
        };
        let room = self.config.limits.subscriptions;
        let asked: HashSet<_> = subscribe.iter().map(|(ask, _)| ask.clone()).collect();
        let known = |name: &Name| db.names_host(conversation.type_id, name);
        let base = base.into_iter().filter(known).map(Ask::Name);
        let new = base.filter(|ask| !asked.contains(ask)).take(room);
        subscribe.extend(new.map(|ask| (ask, conversation.params)));
    }

    /// What a client knows not to exist need not be refused again: a proxy lists
    /// every host that it ever asked for.
    fn spare_known_refusals(&mut self, index: usize, initial: &InitialVersions) {
        if let Some(conversation) = &mut self.conversations[index] {
            let knows = |name: &Name| initial.get(name).is_some_and(is_negative);
            conversation.refused.retain(|name| !knows(name));
        }
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

    fn awaits(&self, index: usize, nonce: &Nonce) -> bool {
        self.conversations[index]
            .as_ref()
            .is_some_and(|c| c.awaits(nonce))
    }

    fn is_newest(&self, index: usize, nonce: &Nonce) -> bool {
        let conversation = self.conversations[index].as_ref();
        conversation.is_some_and(|c| c.last_nonce.as_ref() == Some(nonce))
    }

    fn sent_version(&self, index: usize, nonce: &Nonce) -> Option<crate::resource::Version> {
        let conversation = self.conversations[index].as_ref()?;
        let response = conversation
            .outstanding
            .iter()
            .find(|r| r.nonce == *nonce)?;
        response.version.clone()
    }

    /// The answer to a response: rejected if there is an error, and for no
    /// other reason (S11). What was meant to be rejected is accepted by that.
    fn verdict(
        &mut self,
        db: &mut Database,
        index: usize,
        nonce: Nonce,
        error: Option<ErrorDetail>,
        now: Moment,
    ) {
        let Some(conversation) = &mut self.conversations[index] else {
            return;
        };
        let type_url = conversation.url.clone();
        let error = error.filter(|_| !conversation.expects_rejection(&nonce));
        let Some(mut error) = error else {
            let drain = match conversation.kind.drains {
                true => self.config.drain,
                false => self.config.hold,
            };
            for (old, new) in conversation.accept(db, &nonce) {
                let kept = new.resource().map(|r| r.facts());
                let dropped = |r: &&Reference| kept.is_none_or(|facts| !facts.refers_to(r));
                for reference in old.facts().references.iter().filter(dropped) {
                    self.draining.insert(reference.clone(), now + drain);
                }
            }
            conversation.last_acked = Some(nonce.clone());
            if conversation.parked.is_empty() && conversation.suspects.is_empty() {
                conversation.last_error = None;
            }
            self.events.push_back(Event::Acked { type_url, nonce });
            return;
        };
        cut(&mut error.message, self.config.limits.error_bytes);
        let parked = conversation.reject(db, &nonce, &error);
        conversation.last_error = Some(error.clone());
        self.events.push_back(Event::Nacked {
            type_url: type_url.clone(),
            nonce,
            error: error.clone(),
        });
        for parked in parked {
            self.events.push_back(Event::Parked {
                type_url: type_url.clone(),
                name: parked.name,
                version: parked.version,
                error: error.clone(),
            });
        }
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

/// Cuts a text to a number of bytes, at a border between characters.
fn cut(text: &mut String, bytes: usize) {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}
