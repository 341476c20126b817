//! A client: a sink, what it holds, and the habits of a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::kind::{CDS, EDS, Kind, LDS, RDS, SDS};
use trunkline_core::message::{Mode, Node};
use trunkline_core::name::{Name, Selector};
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::sink::{Delivery, Rejection, Request, Response, Sink, SinkConfig, Verdict};

use super::contents::{Contents, Published};

/// Whose habits a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Subscribes to all listeners and clusters; withholds the ACK of a changed
    /// cluster until its endpoints come again.
    Envoy,
    /// Subscribes to one listener by name, then to what that leads to.
    Grpc,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Client {
    /// Its protocol half.
    pub sink: Sink,
    /// Which protocol it speaks.
    pub mode: Mode,
    /// Whose habits it has.
    pub habit: Habit,
    /// The resources that it accepted, that were not removed since, and that it
    /// is subscribed to.
    pub held: Published,
    /// Those and the ones that its sink has not forgotten yet.
    database: Published,
    /// NACKs a whole response for one bad resource, as Envoy does with one that
    /// it cannot read.
    pub rejects_whole: bool,
    /// Good contents it was ever sent, to tell a last good version from a wrong
    /// one.
    pub good: BTreeSet<(TypeUrl, Name, Vec<u8>)>,
    /// Names that it resumed with in state of the world, NACKed together with
    /// others or in two versions, and of which it has ACKed nothing since: no
    /// source can tell what it holds of them (S17, S82).
    untold: BTreeSet<(TypeUrl, Selector)>,
    /// Names of which it NACKed one version, and has ACKed nothing since.
    nacked_once: BTreeSet<(TypeUrl, Selector)>,
    /// On this stream a set was NACKed that listed invalid clusters and a bad
    /// resource. A set with invalid clusters gets its NACK anyway, so no source
    /// can tell that there was another reason.
    pub unclear: bool,
    /// A response about clusters that waits for endpoints.
    withheld: Option<(Delivery, BTreeSet<Name>)>,
    asked: BTreeSet<(TypeUrl, Selector)>,
}

impl Client {
    /// A client that holds nothing.
    #[must_use]
    pub fn new(id: usize, mode: Mode, habit: Habit, rejects_whole: bool) -> Self {
        let node = Node {
            id: format!("client-{id}"),
            user_agent: match habit {
                Habit::Envoy => "envoy".to_owned(),
                Habit::Grpc => "gRPC".to_owned(),
            },
            ..Node::default()
        };
        Self {
            sink: Sink::new(SinkConfig::new(mode, node)),
            mode,
            habit,
            held: Published::new(),
            database: Published::new(),
            rejects_whole,
            good: BTreeSet::new(),
            untold: BTreeSet::new(),
            nacked_once: BTreeSet::new(),
            unclear: false,
            withheld: None,
            asked: BTreeSet::new(),
        }
    }

    /// Subscribes to what follows from what it holds.
    ///
    /// # Panics
    /// If the sink refuses, which on an aggregated stream it never does.
    pub fn want(&mut self, now: Moment) {
        let wanted = self.wanted();
        for (url, ask) in self.asked.difference(&wanted) {
            self.sink.unsubscribe(url, &ask.clone().into());
        }
        for (url, ask) in wanted.difference(&self.asked) {
            let subscribed = self.sink.subscribe(url, ask.clone(), now);
            #[expect(
                clippy::expect_used,
                reason = "an aggregated stream carries every type"
            )]
            subscribed.expect("any type may be asked for");
        }
        self.asked = wanted;
        self.apply_effects();
    }

    /// Applies the effects of the sink.
    fn apply_effects(&mut self) {
        let effects = self.sink.take_effects();
        for forgotten in &effects.forgotten {
            self.database.remove(forgotten);
        }
        apply(&mut self.database, effects.changes);
        let is_asked = |(url, name): &(TypeUrl, Name)| {
            let asks = [Selector::Wildcard, Selector::Name(name.clone())];
            asks.into_iter()
                .any(|ask| self.asked.contains(&(url.clone(), ask)))
        };
        let used = self.database.iter().filter(|(key, _)| is_asked(key));
        self.held = used.map(|(key, r)| (key.clone(), Arc::clone(r))).collect();
    }

    /// Takes the next request.
    pub fn poll_request(&mut self, now: Moment) -> Option<Request> {
        self.want(now);
        let request = self.sink.poll_request(now)?;
        self.apply_effects();
        self.said(&request);
        Some(request)
    }

    fn wanted(&self) -> BTreeSet<(TypeUrl, Selector)> {
        let name = |url: &str, name: &Name| (TypeUrl::from(url), Selector::Name(name.clone()));
        let mut wanted = BTreeSet::new();
        match self.habit {
            Habit::Envoy => {
                wanted.insert((CDS.into(), Selector::Wildcard));
                wanted.insert((LDS.into(), Selector::Wildcard));
                let warming = self
                    .withheld
                    .iter()
                    .flat_map(|(delivery, _)| &delivery.resources);
                for cluster in self.of(CDS).chain(warming) {
                    wanted.extend(references(cluster, EDS).map(|n| name(EDS, n)));
                }
                for listener in self.of(LDS) {
                    wanted.extend(references(listener, RDS).map(|n| name(RDS, n)));
                    wanted.extend(references(listener, SDS).map(|n| name(SDS, n)));
                }
            }
            Habit::Grpc => {
                wanted.insert(name(LDS, &Name::new("l0")));
                for (from, to) in [(LDS, RDS), (RDS, CDS), (CDS, EDS)] {
                    for resource in self.of(from) {
                        wanted.extend(references(resource, to).map(|n| name(to, n)));
                    }
                }
            }
        }
        wanted
    }

    /// What it holds of a type.
    pub fn of<'a>(&'a self, url: &'a str) -> impl Iterator<Item = &'a Arc<Resource>> {
        let of_type = move |(key, _): &(&(TypeUrl, Name), _)| key.0.as_str() == url;
        self.held
            .iter()
            .filter(of_type)
            .map(|(_, resource)| resource)
    }

    /// Whether it can take a response of this type now.
    #[must_use]
    pub fn can_take(&self, url: &TypeUrl) -> bool {
        !self.sink.is_busy(url)
    }

    /// Takes a response; its ACK may be withheld.
    pub fn take(&mut self, response: Response, now: Moment) {
        let Ok(delivery) = self.sink.handle_response(response) else {
            return;
        };
        if delivery.type_url.as_str() == EDS {
            let arrived: Vec<_> = delivery.resources.iter().map(|r| r.name.clone()).collect();
            self.judge(delivery, now);
            self.endpoints_came(&arrived, now);
            return;
        }
        let warming = self.warming(&delivery);
        if warming.is_empty() {
            self.judge(delivery, now);
        } else {
            self.withheld = Some((delivery, warming));
        }
        self.want(now);
    }

    /// The endpoints that Envoy waits for before it sends an ACK.
    fn warming(&self, delivery: &Delivery) -> BTreeSet<Name> {
        if self.habit != Habit::Envoy || delivery.type_url.as_str() != CDS {
            return BTreeSet::new();
        }
        let good = delivery.resources.iter().filter(|r| !Contents::is_bad(r));
        let changed = good.filter(|r| self.held.get(&(CDS.into(), r.name.clone())) != Some(r));
        changed.flat_map(|r| references(r, EDS)).cloned().collect()
    }

    fn endpoints_came(&mut self, arrived: &[Name], now: Moment) {
        let done = self.withheld.as_mut().is_some_and(|(_, waiting)| {
            arrived.iter().for_each(|name| {
                waiting.remove(name);
            });
            waiting.is_empty()
        });
        if done {
            self.give_up_waiting(now);
        }
        self.want(now);
    }

    /// Sends the ACK that was withheld, as Envoy does after fifteen seconds at
    /// the latest.
    pub fn give_up_waiting(&mut self, now: Moment) {
        if let Some((delivery, _)) = self.withheld.take() {
            self.judge(delivery, now);
            self.want(now);
        }
    }

    /// The stream is lost, and with it the ACK that was withheld.
    pub fn disconnected(&mut self) {
        self.withheld = None;
        self.untold.clear();
        self.nacked_once.clear();
        self.unclear = false;
        self.sink.handle_disconnected("gone");
        self.apply_effects();
    }

    /// Takes note of a request: the first of a type may name a version.
    fn said(&mut self, request: &Request) {
        let Request::Sotw(request) = request else {
            return;
        };
        let Some(url) = &request.type_url else { return };
        if request.nonce.is_none() && request.version.is_some() {
            let asked = self.asked.iter().filter(|(other, _)| other == url);
            self.untold.extend(asked.cloned());
        }
    }

    /// Whether no source can tell what it holds of a name.
    #[must_use]
    pub fn is_untold(&self, url: &TypeUrl, name: &Name) -> bool {
        [Selector::Wildcard, Selector::Name(name.clone())]
            .into_iter()
            .any(|ask| self.untold.contains(&(url.clone(), ask)))
    }

    /// An ACK tells what it holds: all of it, for whole sets. Of resources that
    /// it NACKed together some may have been taken all the same, and others
    /// dropped; and of two versions that it NACKed, the first (S17).
    fn tell(&mut self, delivery: &Delivery, rejected: &[Rejection]) {
        let url = &delivery.type_url;
        let brought = delivery.resources.iter().map(|r| &r.name);
        let names = brought.chain(&delivery.removed);
        let asks = names.map(|name| (url.clone(), Selector::Name(name.clone())));
        let whole = Kind::of(url).whole_set && self.mode == Mode::Sotw;
        match rejected.is_empty() {
            true if whole => {
                self.untold.retain(|(other, _)| other != url);
                self.nacked_once.retain(|(other, _)| other != url);
            }
            true => asks.for_each(|ask| {
                self.untold.remove(&ask);
                self.nacked_once.remove(&ask);
            }),
            false if asks.clone().count() > 1 => self.untold.extend(asks),
            false => {
                let again = asks.filter(|ask| !self.nacked_once.insert(ask.clone()));
                self.untold.extend(again);
            }
        }
    }

    fn judge(&mut self, delivery: Delivery, now: Moment) {
        for resource in delivery.resources.iter().filter(|r| !Contents::is_bad(r)) {
            let body = resource.body.clone().unwrap_or_default().to_vec();
            self.good
                .insert((delivery.type_url.clone(), resource.name.clone(), body));
        }
        let all = || delivery.resources.iter();
        let has_invalid = all().any(|r| Contents::is_invalid_cluster(r));
        let unread = all().any(|r| Contents::is_bad(r) && !Contents::is_invalid_cluster(r));
        self.unclear |= has_invalid && unread;
        let whole = self.rejects_whole && unread;
        let rejected = all().filter(|r| whole || Contents::is_bad(r));
        let rejected: Vec<_> = rejected
            .map(|r| Rejection::of(&r.name, "unreadable"))
            .collect();
        self.tell(&delivery, &rejected);
        let verdict = Verdict::reject(rejected);
        let (url, nonce) = (&delivery.type_url, &delivery.nonce);
        // The response of a stream that was lost meanwhile has no verdict.
        let _ = self.sink.handle_verdict(url, nonce, verdict, now);
        self.apply_effects();
        self.want(now);
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Moment) {
        self.sink.handle_timeout(now);
        self.apply_effects();
        self.want(now);
    }
}

/// What a resource refers to of one type.
pub fn references<'a>(resource: &'a Resource, url: &'a str) -> impl Iterator<Item = &'a Name> {
    let references = resource.facts().references.iter();
    references
        .filter(move |r| r.type_url.as_str() == url)
        .map(|r| &r.name)
}

fn apply(held: &mut Published, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Upsert(url, resource) => {
                held.insert((url, resource.name.clone()), resource);
            }
            Change::Remove(url, name) | Change::RemoveVariant(url, name, _) => {
                held.remove(&(url, name));
            }
            Change::ReplaceAll(url, resources) => {
                held.retain(|(other, _), _| *other != url);
                for resource in resources {
                    held.insert((url.clone(), resource.name.clone()), resource);
                }
            }
            Change::Fail(url, name, _) => {
                held.remove(&(url, name));
            }
        }
    }
}

/// By type, how many it holds: for traces.
#[must_use]
pub fn summary(held: &Published) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for (url, _) in held.keys() {
        *counts.entry(url.as_str()).or_insert(0) += 1;
    }
    counts
}
