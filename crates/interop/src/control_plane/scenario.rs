//! What happens at a control plane, and what a client should hold after it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use trunkline::client::{
    Address, ApiSource, CacheState, Client, ConfigSource, ControlPlane, Query, Raw, Specifier,
    Subscription, Transport,
};
use trunkline::core::message::Mode;
use trunkline::core::sink::BackoffConfig;
use trunkline::kind::{CDS, EDS, LDS, RDS};

use super::contents::{Content, TYPES, bad_cluster, content, normal};
use super::plane::{Cache, Plane};

/// How long a client may take to hold what it should.
const PATIENCE: Duration = Duration::from_secs(25);
const PAUSE: Duration = Duration::from_millis(10);
/// How long NACKs are counted.
const WHILE: Duration = Duration::from_secs(1);

/// How a client subscribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// To each name.
    Name,
    /// To all; in state of the world, to all clusters and listeners, and to
    /// endpoints and routes by name.
    Wildcard,
}

/// One way to be a client.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What the control plane has.
    pub cache: Cache,
    /// Whether the client speaks delta.
    pub delta: bool,
    /// Whether one stream has all types.
    pub aggregated: bool,
    /// How it subscribes.
    pub by: By,
}

/// What is held, by type and name, with whether an update was rejected.
type Held = BTreeMap<(String, String), (Vec<u8>, bool)>;

/// Goes through the scenario. Returns what went wrong, step by step, and how
/// often the client had to say NACK in a second for one bad resource.
#[must_use]
pub fn play(program: &Path, case: Case) -> (Vec<String>, u64) {
    let runtime = Runtime::new().unwrap_or_else(|error| panic!("no runtime: {error}"));
    let _entered = runtime.enter();
    let mut scene = Scene::start(program, case);
    scene.begin();
    scene.change();
    scene.remove();
    let nacks = scene.reject();
    scene.mend();
    scene.restart_with_changes();
    scene.restart_without_some();
    (scene.wrong, nacks)
}

/// A client, its control plane, and what is there.
struct Scene {
    case: Case,
    plane: Plane,
    client: Client,
    _subscriptions: Vec<Subscription<Raw>>,
    /// What the control plane has.
    contents: BTreeMap<(&'static str, &'static str), Content>,
    /// What state of the world cannot take away: endpoints and routes that
    /// were sent once.
    kept: BTreeMap<(&'static str, &'static str), Content>,
    wrong: Vec<String>,
}

impl Scene {
    fn start(program: &Path, case: Case) -> Self {
        let plane = Plane::start(program, case.cache);
        let address = format!("127.0.0.1:{}", plane.port);
        let builder = Client::builder().server(&address);
        let builder = builder.unwrap_or_else(|error| panic!("{error}"));
        let client = builder.node_id("client").build();
        Self {
            plane,
            client,
            case,
            _subscriptions: Vec::new(),
            contents: BTreeMap::new(),
            kept: BTreeMap::new(),
            wrong: Vec::new(),
        }
    }

    /// Three of each type, and a client that subscribes to them.
    fn begin(&mut self) {
        for type_url in TYPES {
            for name in ["a", "b", "c"] {
                self.set(content(type_url, name, 1));
            }
        }
        self.put();
        self.subscribe();
        self.compare("all", &[]);
    }

    fn subscribe(&mut self) {
        let source = self.source();
        for type_url in TYPES {
            let is_whole = matches!(type_url, CDS | LDS) || self.case.delta;
            let names: &[&str] = match self.case.by {
                By::Wildcard if is_whole => &["*"],
                _ => &["a", "b", "c"],
            };
            for name in names {
                let query = Query::raw(type_url, name).unwrap_or_else(|error| panic!("{error}"));
                let query = query.from_source(source.clone());
                let made = self.client.subscribe(query);
                let made = made.unwrap_or_else(|error| panic!("{type_url} {name}: {error}"));
                self._subscriptions.push(made);
            }
        }
    }

    fn source(&self) -> ConfigSource {
        let address = Address::Tcp {
            host: "127.0.0.1".to_owned(),
            port: self.plane.port,
        };
        let mode = match self.case.delta {
            true => Mode::Delta,
            false => Mode::Sotw,
        };
        Specifier::Api(Arc::new(ApiSource {
            transport: Transport::Grpc {
                mode,
                aggregated: self.case.aggregated,
            },
            servers: vec![Arc::new(ControlPlane::plaintext(address))],
            rate_limit: None,
            backoff: BackoffConfig::default(),
            node_on_first_message_only: false,
        }))
        .into()
    }

    /// One of each type changes.
    fn change(&mut self) {
        self.revise("a", 2);
        self.put();
        self.compare("changed", &[]);
    }

    /// One of each type is removed.
    fn remove(&mut self) {
        self.withdraw("c");
        self.put();
        self.compare("removed", &[]);
    }

    /// A cluster is not acceptable, and others change with it: it stays as it
    /// was, they change. Returns how often it was rejected in a while.
    fn reject(&mut self) -> u64 {
        self.revise("a", 3);
        let bad = self.contents.insert((CDS, "b"), bad_cluster("b"));
        self.put();
        if let Some(good) = bad {
            self.contents.insert((CDS, "b"), good);
        }
        self.compare("rejected", &[(CDS, "b")]);
        let before = self.nacks();
        thread::sleep(WHILE);
        self.nacks() - before
    }

    fn nacks(&self) -> u64 {
        let samples = self.client.metrics().into_iter();
        let invalid =
            samples.filter(|sample| sample.name == "grpc.xds_client.resource_updates_invalid");
        invalid.map(|sample| sample.value).sum()
    }

    /// The cluster is acceptable again.
    fn mend(&mut self) {
        self.revise("b", 4);
        self.put();
        self.compare("mended", &[]);
    }

    /// The server is away, and comes back with one more of each, and a change.
    fn restart_with_changes(&mut self) {
        self.plane.stop();
        self.revise("a", 5);
        for type_url in TYPES {
            self.set(content(type_url, "c", 5));
        }
        self.plane.start_again();
        self.put();
        self.compare("restarted", &[]);
    }

    /// The server is away, and comes back with one fewer of each.
    fn restart_without_some(&mut self) {
        self.plane.stop();
        self.withdraw("b");
        self.plane.start_again();
        self.put();
        self.compare("restarted with fewer", &[]);
    }

    fn set(&mut self, content: Content) {
        let key = (content.type_url, content.name);
        self.kept.remove(&key);
        self.contents.insert(key, content);
    }

    fn revise(&mut self, name: &'static str, revision: u32) {
        for type_url in TYPES {
            self.set(content(type_url, name, revision));
        }
    }

    fn withdraw(&mut self, name: &'static str) {
        for type_url in TYPES {
            let gone = self.contents.remove(&(type_url, name));
            if let Some(gone) = gone
                && matches!(type_url, EDS | RDS)
                && !self.case.delta
            {
                self.kept.insert((type_url, name), gone);
            }
        }
    }

    fn put(&mut self) {
        let contents: Vec<Content> = self.contents.values().cloned().collect();
        self.plane.put(&contents);
    }

    /// Waits until the client holds what the control plane has, and of what
    /// was rejected the last good one.
    fn compare(&mut self, step: &str, rejected: &[(&str, &str)]) {
        let all = self.contents.values().chain(self.kept.values());
        let expected: Held = all
            .map(|content| {
                let key = (content.type_url.to_owned(), content.name.to_owned());
                let is_rejected = rejected.contains(&(content.type_url, content.name));
                (key, (content.body.clone(), is_rejected))
            })
            .collect();
        let begun = Instant::now();
        while self.held() != expected {
            if begun.elapsed() > PATIENCE {
                let difference = difference(&expected, &self.held());
                self.wrong.push(format!("{step}: {difference}"));
                return;
            }
            thread::sleep(PAUSE);
        }
    }

    fn held(&self) -> Held {
        let mut held = Held::new();
        for of in self.client.dump() {
            let Some(body) = of.resources.first().and_then(|one| one.body.clone()) else {
                continue;
            };
            let (url, name) = (of.type_url.to_string(), of.name.to_string());
            let body = normal(&url, &body);
            held.insert((url, name), (body, of.state == CacheState::Nacked));
        }
        held
    }
}

/// What is not as it should be, in words.
fn difference(expected: &Held, held: &Held) -> String {
    let mut text = String::new();
    for ((url, name), should) in expected {
        let kind = url.rsplit('.').next().unwrap_or(url);
        let what = match held.get(&(url.clone(), name.clone())) {
            None => "is missing",
            Some(is) if is.0 != should.0 => "is another revision",
            Some(is) if is.1 != should.1 => "has or lacks an error",
            Some(_) => continue,
        };
        // Writing to a String cannot fail, here and below.
        let _ = write!(text, "{kind} {name} {what}; ");
    }
    for (url, name) in held.keys().filter(|key| !expected.contains_key(key)) {
        let kind = url.rsplit('.').next().unwrap_or(url);
        let _ = write!(text, "{kind} {name} should not be there; ");
    }
    text
}
