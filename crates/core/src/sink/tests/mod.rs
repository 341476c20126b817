//! Tests of the sink, named for their rules.
//!
//! A bench holds a sink and writes what it does in short lines:
//!
//! ```text
//!   request   node cds [* a] version=1 nonce=n1 error=3:a: bad
//!             eds +a -b held=a@1 nonce=n1
//!   effect    +cds a@1          upsert          cds a ! Rejected: why    no value
//!             -cds a            remove          cds a ~ Rejected: why    ambient
//!             !cds a NotFound   fail            cds a ~ ok               no longer
//! ```

mod absence;
mod aliases;
mod completion;
mod errors;
mod hostile;
mod model;
mod reconnect;
mod requests;
mod timers;
mod variants;
mod verdicts;
mod wildcards;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::change::Change;
use crate::kind::{self, Kind};
use crate::message::Mode;
use crate::message::{
    DeltaRequest, DeltaResponse, ErrorDetail, Form, Locator, SotwRequest, SotwResponse,
    WireResource,
};
use crate::name::{Name, Selector};
use crate::params::{Constraints, Params};
use crate::resource::{ErrorCode, Resource, ResourceError};

const BOTH: [Mode; 2] = [Mode::Sotw, Mode::Delta];

/// A sink, its time, and short ways to use both.
struct Bench {
    sink: Sink,
    now: Moment,
}

impl Bench {
    fn new(mode: Mode, adjust: impl FnOnce(&mut SinkConfig)) -> Self {
        let node = Node {
            id: "n".into(),
            ..Node::default()
        };
        let mut config = SinkConfig::new(mode, node);
        config.silence = Duration::ZERO;
        adjust(&mut config);
        Self {
            sink: Sink::new(config),
            now: Moment::from_millis(1_000_000),
        }
    }

    /// A connected sink with these subscriptions, whose requests are sent.
    fn subscribed(mode: Mode, wants: &[&str]) -> Self {
        Self::new(mode, |_| {}).up(wants)
    }

    fn up(mut self, wants: &[&str]) -> Self {
        self.sink.handle_connected();
        wants.iter().for_each(|want| self.sub(want));
        self.requests();
        self
    }

    /// `cds a`: subscribes to one name of a type; `cds a{env=prod}` with
    /// parameters.
    fn sub(&mut self, want: &str) {
        assert_eq!(self.sub_again(want), [""; 0]);
    }

    fn sub_again(&mut self, want: &str) -> Vec<String> {
        let (type_url, name) = split(want);
        let subscribed = self.sink.subscribe(&type_url, located(name), self.now);
        subscribed.unwrap();
        self.effects()
    }

    fn unsub(&mut self, want: &str) {
        let (type_url, name) = split(want);
        self.sink.unsubscribe(&type_url, &located(name));
    }

    fn effects(&mut self) -> Vec<String> {
        show(&self.sink.take_effects())
    }

    /// The subscriptions that are answered.
    fn complete(&mut self) -> Vec<String> {
        let effects = self.sink.take_effects();
        let show = |(t, one): &(TypeUrl, Subscription)| {
            format!("{} {}", short(t), show_locator(&one.locator()))
        };
        effects.complete.iter().map(show).collect()
    }

    /// The names that the owner may drop.
    fn forgotten(&mut self) -> Vec<String> {
        let effects = self.sink.take_effects();
        let forgotten = effects.forgotten.iter();
        let show = |(t, name): &(TypeUrl, Name)| format!("{} {name}", short(t));
        forgotten.map(show).collect()
    }

    /// All requests that are due.
    fn requests(&mut self) -> Vec<String> {
        let mut requests = Vec::new();
        while let Some(request) = self.sink.poll_request(self.now) {
            self.check();
            requests.push(show_request(&request));
            assert!(requests.len() < 100, "no end: {requests:?}");
        }
        requests
    }

    fn accept(&mut self, response: impl Into<Response>) -> Vec<String> {
        self.judge(response, &[]).1
    }

    /// Hands a response over and judges it; `("", why)` is a fault without a
    /// name.
    fn judge(
        &mut self,
        response: impl Into<Response>,
        rejected: &[(&str, &str)],
    ) -> (bool, Vec<String>) {
        let delivery = self.sink.handle_response(response).unwrap();
        let rejected = rejected.iter().map(|(name, why)| match *name {
            "" => Rejection::of_response(*why),
            name => Rejection::of(&Name::new(name), *why),
        });
        let verdict = Verdict::reject(rejected.collect());
        let Delivery {
            type_url, nonce, ..
        } = delivery;
        let acked = self
            .sink
            .handle_verdict(&type_url, &nonce, verdict, self.now);
        self.check();
        (acked.unwrap(), self.effects())
    }

    fn down(&mut self, reason: &str) -> Vec<String> {
        self.sink.handle_disconnected(reason);
        self.check();
        self.effects()
    }

    /// Lets time pass; returns the effects.
    fn wait(&mut self, millis: u64) -> Vec<String> {
        self.now = self.now + Duration::from_millis(millis);
        self.sink.handle_timeout(self.now);
        self.check();
        self.effects()
    }

    /// The time until the next deadline, in milliseconds.
    fn due(&self) -> Option<u128> {
        let at = self.sink.poll_timeout()?;
        Some((at - self.now).as_millis())
    }

    fn replay(&self, want: &str) -> Vec<String> {
        let (type_url, name) = split(want);
        let events = self.sink.replay(&type_url, &Name::new(name));
        events.iter().map(show_event).collect()
    }

    /// `cds a Acked 1`: name, state, cached versions.
    fn states(&self) -> Vec<String> {
        let state = |status: Status<'_>| {
            let held: Vec<_> = status.held.iter().map(|r| r.version.as_str()).collect();
            let error = status.error.map(|error| format!(" {:?}", error.cause));
            let line = format!(
                "{} {} {:?} {}",
                short(status.type_url),
                status.name,
                status.state,
                held.join(",")
            );
            format!("{}{}", line.trim_end(), error.unwrap_or_default())
        };
        self.sink.states().map(state).collect()
    }

    fn check(&self) {
        self.sink.types.iter().for_each(|t| t.interest.check());
    }
}

/// `a`, or `a{env=prod,zone=b}`.
fn located(text: &str) -> Subscription {
    let (name, params) = text.split_once('{').unwrap_or((text, ""));
    Subscription::new(selector(name), params_of(params.trim_end_matches('}')))
}

fn params_of(text: &str) -> Params {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    Params::new(pairs).unwrap()
}

fn show_locator(locator: &Locator) -> String {
    let params = locator.params.iter().map(|params| format!("{{{params}}}"));
    format!("{}{}", locator.name, params.collect::<String>())
}

fn selector(text: &str) -> Selector {
    Selector::parse(text, 4096).unwrap()
}

fn type_of(short: &str) -> TypeUrl {
    let known = kind::ALL.iter().map(|url| TypeUrl::from(*url));
    let mut named = known.filter(|url| Kind::of(url).short == short);
    named.next().unwrap_or_else(|| short.into())
}

fn short(type_url: &TypeUrl) -> &str {
    match Kind::of(type_url).short {
        "" => type_url.as_str(),
        short => short,
    }
}

fn split(want: &str) -> (TypeUrl, &str) {
    let (short, name) = want.split_once(' ').unwrap();
    (type_of(short), name)
}

/// `a@1`, `a@1[k=v]` for some clients, `a@1#x` with alias x, `a@1!5` with a TTL
/// of 5 ms; the body is name and version.
fn resource(text: &str) -> Arc<Resource> {
    let (rest, ttl) = match text.split_once('!') {
        Some((rest, ttl)) => (rest, Some(Duration::from_millis(ttl.parse().unwrap()))),
        None => (text, None),
    };
    let (rest, aliases) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, constraints) = rest.split_once('[').unwrap_or((rest, ""));
    let constraints = constraints.strip_suffix(']');
    let (name, version) = rest.split_once('@').unwrap();
    let aliases = aliases.split('#').filter(|alias| !alias.is_empty());
    Arc::new(Resource {
        version: version.into(),
        constraints: constraints.map(constraint),
        aliases: aliases.map(Name::new).collect(),
        ttl,
        ..Resource::new(Name::new(name), Bytes::copy_from_slice(rest.as_bytes()))
    })
}

fn constraint(text: &str) -> Constraints {
    text.parse().unwrap()
}

/// As [`resource`], without its body.
fn beat(text: &str) -> WireResource {
    let mut resource = Arc::unwrap_or_clone(resource(text));
    resource.body = None;
    WireResource {
        resource: Arc::new(resource),
        form: Form::Heartbeat,
    }
}

/// The negative answer of VHDS.
fn nothing(text: &str) -> WireResource {
    let mut beat = beat(text);
    beat.form = Form::Full;
    beat
}

fn full(resources: &[&str]) -> Vec<WireResource> {
    let full = |text: &&str| WireResource::full(resource(text));
    resources.iter().map(full).collect()
}

fn sotw(short: &str, version: &str, nonce: &str, resources: &[&str]) -> SotwResponse {
    SotwResponse {
        type_url: type_of(short),
        version: version.into(),
        nonce: nonce.into(),
        resources: full(resources).into(),
        errors: Vec::new(),
        removed: Vec::new(),
    }
}

fn delta(short: &str, nonce: &str, resources: &[&str], removed: &[&str]) -> DeltaResponse {
    DeltaResponse {
        type_url: type_of(short),
        nonce: nonce.into(),
        resources: full(resources).into(),
        removed: removed.iter().map(|name| Name::new(name)).collect(),
        removed_variants: Vec::new(),
        errors: Vec::new(),
    }
}

fn said(name: &str, code: ErrorCode, message: &str) -> (Name, Arc<ResourceError>) {
    let message = message.into();
    (Name::new(name), Arc::new(ResourceError { code, message }))
}

fn join(names: &[Locator]) -> String {
    let names: Vec<_> = names.iter().map(show_locator).collect();
    names.join(" ")
}

fn show_request(request: &Request) -> String {
    let mut line = Vec::new();
    match request {
        Request::Sotw(request) => show_sotw(request, &mut line),
        Request::Delta(request) => show_delta(request, &mut line),
    }
    line.join(" ")
}

fn show_head(node: Option<&Node>, type_url: Option<&TypeUrl>, line: &mut Vec<String>) {
    line.extend(node.map(|node| format!("node:{}", node.id)));
    line.push(short(type_url.unwrap()).to_owned());
}

fn show_tail(nonce: Option<&Nonce>, error: Option<&ErrorDetail>, line: &mut Vec<String>) {
    line.extend(nonce.map(|nonce| format!("nonce={nonce}")));
    line.extend(error.map(|error| format!("error={}:{}", error.code, error.message)));
}

fn show_sotw(request: &SotwRequest, line: &mut Vec<String>) {
    show_head(request.node.as_ref(), request.type_url.as_ref(), line);
    line.push(format!("[{}]", join(&request.names)));
    line.extend(request.version.as_ref().map(|v| format!("version={v}")));
    show_tail(request.nonce.as_ref(), request.error.as_ref(), line);
}

fn show_delta(request: &DeltaRequest, line: &mut Vec<String>) {
    show_head(request.node.as_ref(), request.type_url.as_ref(), line);
    line.extend(
        request
            .subscribe
            .iter()
            .map(|l| format!("+{}", show_locator(l))),
    );
    line.extend(
        request
            .unsubscribe
            .iter()
            .map(|l| format!("-{}", show_locator(l))),
    );
    let held = request.initial_versions.iter();
    line.extend(held.map(|(name, version)| format!("held={name}@{version}")));
    show_tail(request.nonce.as_ref(), request.error.as_ref(), line);
}

fn show(effects: &Effects) -> Vec<String> {
    let changes = effects.changes.iter().map(show_change);
    changes
        .chain(effects.events.iter().map(show_event))
        .collect()
}

fn show_change(change: &Change) -> String {
    match change {
        Change::Upsert(t, r) => format!("+{} {r:?}", short(t)),
        Change::Remove(t, name) => format!("-{} {name}", short(t)),
        Change::RemoveVariant(t, name, of) => {
            let of = of.as_ref().map_or("all".to_owned(), ToString::to_string);
            format!("-{} {name}[{of}]", short(t))
        }
        Change::Fail(t, name, error) => format!("!{} {name} {:?}", short(t), error.code),
        Change::ReplaceAll(..) => unreachable!("a sink says what changed"),
    }
}

fn show_error(error: &WatchError) -> String {
    format!("{:?}: {}", error.cause, error.message)
}

fn show_event(event: &Event) -> String {
    match event {
        Event::Failed(t, name, e) => format!("{} {name} ! {}", short(t), show_error(e)),
        Event::Ambient(t, name, e) => {
            let error = e.as_ref().map_or("ok".to_owned(), show_error);
            format!("{} {name} ~ {error}", short(t))
        }
    }
}
