//! Any server and any owner around one sink: it goes on, and its cache stays
//! sound.
#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trunkline_core::Moment;
use trunkline_core::database::Database;
use trunkline_core::limits::Limits;
use trunkline_core::message::{DeltaResponse, Form, Mode, Node, SotwResponse, WireResource};
use trunkline_core::name::Name;
use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_core::sink::{
    DataErrors, FetchStart, FetchTimeout, Rejection, Response, Sink, SinkConfig, StreamScope,
    Verdict,
};
use trunkline_fuzz::{Content, Failure, For, Named, Peer, Type};

#[derive(Arbitrary, Debug)]
struct Input {
    config: Behaviour,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
struct Behaviour {
    is_delta: bool,
    only: Option<Type>,
    node_every_request: bool,
    fetch_timeout: u8,
    from_subscription: bool,
    data_errors: u8,
    glob_versions: bool,
    tight: bool,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Subscribe(Type, Named),
    Unsubscribe(Type, Named),
    Connected,
    Disconnected,
    Respond(Answer),
    /// A verdict on the oldest delivery that awaits one.
    Judge(Vec<Option<Named>>),
    /// A verdict on no delivery.
    Misjudge(Type, u8),
    Poll,
    Wait(u16),
    Node(Peer),
    ForgetVersions,
}

#[derive(Arbitrary, Debug)]
struct Answer {
    wrong_mode: bool,
    of: Type,
    nonce: u8,
    version: u8,
    resources: Vec<(Content, u8)>,
    removed: Vec<Named>,
    removed_variants: Vec<(Named, For)>,
    errors: Vec<(Named, Failure)>,
}

struct World {
    sink: Sink,
    mode: Mode,
    cache: Database,
    judging: Vec<(TypeUrl, Nonce)>,
    now: Moment,
}

fuzz_target!(|input: Input| {
    let config = input.config.config();
    let mut world = World {
        mode: config.mode,
        sink: Sink::new(config),
        cache: Database::cache(),
        judging: Vec::new(),
        now: Moment::START,
    };
    for step in &input.steps {
        world.step(step);
        world.apply_effects();
        world.look();
    }
});

impl Behaviour {
    fn config(&self) -> SinkConfig {
        let mode = if self.is_delta {
            Mode::Delta
        } else {
            Mode::Sotw
        };
        let mut config = SinkConfig::new(mode, Node::default());
        if let Some(only) = self.only {
            config.scope = StreamScope::Single(only.url());
        }
        config.node_every_request = self.node_every_request;
        config.fetch_timeout = match self.fetch_timeout % 3 {
            0 => FetchTimeout::Never,
            1 => FetchTimeout::NOT_FOUND,
            _ => FetchTimeout::UNAVAILABLE,
        };
        if self.from_subscription {
            config.fetch_start = FetchStart::Subscribed;
        }
        config.data_errors = match self.data_errors % 3 {
            0 => DataErrors::Obey,
            1 => DataErrors::Keep,
            _ => DataErrors::Fail,
        };
        config.glob_versions = self.glob_versions;
        if self.tight {
            config.limits = Limits {
                name_bytes: 13,
                error_bytes: 2,
                ..Limits::default()
            };
        }
        config
    }
}

impl World {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Subscribe(of, name) => {
                let Some(ask) = name.ask() else { return };
                // A stream of one type carries no other.
                let _ = self.sink.subscribe(&of.url(), ask, self.now);
            }
            Step::Unsubscribe(of, name) => {
                let Some(ask) = name.ask() else { return };
                self.sink.unsubscribe(&of.url(), &ask.into());
            }
            Step::Connected => {
                self.sink.handle_connected();
                self.judging.clear();
            }
            Step::Disconnected => {
                self.sink.handle_disconnected("it ended");
                self.judging.clear();
            }
            Step::Respond(answer) => {
                let response = answer.response(self.mode);
                if let Ok(delivery) = self.sink.handle_response(response) {
                    assert!(self.sink.is_busy(&delivery.type_url));
                    self.judging.push((delivery.type_url, delivery.nonce));
                }
            }
            Step::Judge(rejected) => self.judge(rejected),
            Step::Misjudge(of, nonce) => {
                let (url, nonce) = (of.url(), nonce.to_string().as_str().into());
                if !self.judging.contains(&(url.clone(), Nonce::clone(&nonce))) {
                    let verdict = Verdict::accept();
                    let judged = self.sink.handle_verdict(&url, &nonce, verdict, self.now);
                    assert!(judged.is_err());
                }
            }
            Step::Poll => {
                let mut requests = 0;
                while self.sink.poll_request(self.now).is_some() {
                    requests += 1;
                    assert!(requests < 100, "it does not come to an end");
                }
                if self.sink.may_read() {
                    self.check_wanted();
                }
            }
            Step::Wait(millis) => {
                self.now = self.now + Duration::from_millis(u64::from(*millis) * 10);
                self.sink.handle_timeout(self.now);
                assert!(self.sink.poll_timeout().is_none_or(|at| at > self.now));
            }
            Step::Node(peer) => self.sink.set_node(peer.node()),
            Step::ForgetVersions => self.sink.forget_versions(),
        }
    }

    fn judge(&mut self, rejected: &[Option<Named>]) {
        if self.judging.is_empty() {
            return;
        }
        let (url, nonce) = self.judging.remove(0);
        let rejections = rejected.iter().map(|name| match name {
            Some(name) => Rejection::of(&name.name(), "ünfit"),
            None => Rejection::of_response("ünfit"),
        });
        let verdict = Verdict::reject(rejections.collect());
        let acked = self.sink.handle_verdict(&url, &nonce, verdict, self.now);
        let acked = acked.expect("it waits for a verdict");
        assert!(!acked || rejected.is_empty());
    }

    /// Variants that overlap are for the owner to reject, which this one does
    /// not.
    fn apply_effects(&mut self) {
        let effects = self.sink.take_effects();
        for (url, name) in &effects.forgotten {
            let type_id = self.cache.type_id(url);
            self.cache.forget(type_id, name);
        }
        let _ = self.cache.apply(effects.changes);
        self.cache.check().expect("the invariants hold");
    }

    /// The status can be read at any time.
    fn look(&self) {
        for status in self.sink.states() {
            let _ = self.sink.replay(status.type_url, status.name);
            let _ = self.sink.version(status.type_url);
        }
    }

    /// Once all of its interest was sent, the sink has no state of other names.
    fn check_wanted(&self) {
        for status in self.sink.states() {
            let interest = self.sink.interest(status.type_url);
            let wants = |name: &Name| interest.is_some_and(|wanted| wanted.contains(name));
            let aliases = status.held.iter().flat_map(|held| held.aliases());
            let mut names = aliases.chain([status.name]);
            assert!(names.any(wants), "nobody wants {status:?}");
        }
    }
}

impl Answer {
    fn response(&self, mode: Mode) -> Response {
        let type_url = self.of.url();
        let nonce = self.nonce.to_string().as_str().into();
        let resources = self.resources.iter().map(|(content, form)| WireResource {
            resource: content.resource(),
            form: match form % 4 {
                0 => Form::Heartbeat,
                1 => Form::Wrapped,
                _ => Form::Full,
            },
        });
        let resources: Vec<_> = resources.collect();
        let errors = self
            .errors
            .iter()
            .map(|(name, failure)| (name.name(), failure.error()));
        let errors = errors.collect();
        let is_delta = (mode == Mode::Delta) != self.wrong_mode;
        if is_delta {
            let variants = self.removed_variants.iter();
            Response::Delta(DeltaResponse {
                type_url,
                nonce,
                resources: resources.into(),
                removed: self.removed.iter().map(|name| name.name()).collect(),
                removed_variants: variants
                    .map(|(name, of)| (name.name(), Some(of.constraints())))
                    .collect(),
                errors,
            })
        } else {
            Response::Sotw(SotwResponse {
                type_url,
                version: self.version.to_string().as_str().into(),
                nonce,
                resources: resources.into(),
                errors,
                removed: Vec::new(),
            })
        }
    }
}
