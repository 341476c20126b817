//! The law of on demand: every host is routed as the whole route configuration
//! would route it, whatever was asked before, in any order, under any change.
//!
//! A proxy as Envoy was seen to be: what it holds it serves without asking, a
//! host is asked for once, a domain that two virtual hosts have is rejected.
//! When a route configuration finds its hosts another way, or has none on
//! demand, it gives up all that it asked for and keeps what it has. Beside it
//! the whole configuration, searched one by one.

#![allow(clippy::unwrap_used)] // a test: what cannot fail here is part of it

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, Database};
use trunkline_core::facts::Facts;
use trunkline_core::hosts::Domains;
use trunkline_core::kind;
use trunkline_core::message::{DeltaRequest, DeltaResponse, Locator, Mode, Node};
use trunkline_core::name::Name;
use trunkline_core::params::{Constraints, Params};
use trunkline_core::resource::{Resource, TypeUrl, Version};
use trunkline_core::session::{Config, Session};

const ROUTES: [&str; 2] = ["r", "r/2"];
const DOMAINS: [&str; 16] = [
    "a.foo.com",
    "b.foo.com",
    "x-bar.foo.com",
    "foo.com",
    "foo.com:80",
    "a.*.com",
    "*.foo.com",
    "*-bar.foo.com",
    "*.b.foo.com",
    "*.com",
    "*com",
    "foo.*",
    "foo.com:*",
    "a*",
    "*",
    "é.foo.com",
];
const HOSTS: [&str; 16] = [
    "a.foo.com",
    "b.foo.com",
    "x-bar.foo.com",
    "y-bar.foo.com",
    "foo.com",
    "foo.com:80",
    "foo.com:81",
    "foo.net",
    "c.foo.com",
    "c.b.foo.com",
    ".foo.com",
    "com",
    "a.*.com",
    "junk",
    "v1",
    "é.foo.com",
];
const NAMES: [&str; 4] = ["v1", "v2", "a.foo.com", "c.foo.com"];
const CONSTRAINTS: [Option<&str>; 3] = [None, Some("env=prod"), Some("NOT env=prod")];
const ENVS: [&str; 2] = ["prod", "test"];

#[derive(Clone, Debug)]
enum Op {
    Change(Vec<Edit>),
    /// A route configuration finds its hosts another way; 0 is none at all.
    Way {
        route: usize,
        way: usize,
    },
    /// A request arrives at a proxy.
    Route {
        proxy: usize,
        route: usize,
        host: usize,
    },
    /// A proxy reads what was sent to it, if anything was.
    Read {
        proxy: usize,
    },
    Reconnect {
        proxy: usize,
    },
}

#[derive(Clone, Debug)]
enum Edit {
    Put {
        route: usize,
        name: usize,
        domains: BTreeSet<usize>,
        constraint: usize,
    },
    Remove {
        route: usize,
        name: usize,
    },
}

/// A virtual host as the whole configuration has it.
#[derive(Clone, Debug)]
struct Host {
    domains: Vec<&'static str>,
    constraint: usize,
    mark: u32,
}

type Whole = BTreeMap<(usize, usize, usize), Host>;

/// Envoy's own rule, the slow way.
fn search<'a, T: Copy>(table: impl Iterator<Item = (&'a str, T)> + Clone, host: &str) -> Option<T> {
    let exact = table
        .clone()
        .find(|(domain, _)| *domain == host && !is_wild(domain));
    let fits = |text: &str| host.len() > text.len();
    let suffix = table
        .clone()
        .filter_map(|(domain, who)| Some((domain.strip_prefix('*')?, who)))
        .filter(|(text, _)| !text.is_empty() && fits(text) && host.ends_with(text))
        .max_by_key(|(text, _)| text.len());
    let prefix = table
        .clone()
        .filter(|(domain, _)| !domain.starts_with('*'))
        .filter_map(|(domain, who)| Some((domain.strip_suffix('*')?, who)))
        .filter(|(text, _)| fits(text) && host.starts_with(text))
        .max_by_key(|(text, _)| text.len());
    let any = table.clone().find(|(domain, _)| *domain == "*");
    [exact, suffix, prefix, any]
        .into_iter()
        .flatten()
        .next()
        .map(|(_, who)| who)
}

fn is_wild(domain: &str) -> bool {
    domain.starts_with('*') || domain.ends_with('*')
}

/// The second route configuration ignores ports.
fn sought(route: usize, host: &str) -> &str {
    match route {
        0 => host,
        _ => host
            .strip_suffix(":80")
            .or(host.strip_suffix(":81"))
            .unwrap_or(host),
    }
}

fn sees(constraint: usize, env: usize) -> bool {
    match constraint {
        0 => true,
        1 => env == 0,
        _ => env != 0,
    }
}

fn oracle(whole: &Whole, route: usize, host: &str, env: usize) -> Option<u32> {
    let seen = whole
        .iter()
        .filter(|((r, ..), h)| *r == route && sees(h.constraint, env));
    let table = seen.flat_map(|(_, h)| h.domains.iter().map(|d| (*d, h.mark)));
    search(table, sought(route, host))
}

fn field(number: u8, text: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, text.len() as u8], text].concat()
}

fn resource(route: usize, name: usize, host: &Host) -> Arc<Resource> {
    let name = format!("{}/{}", ROUTES[route], NAMES[name]);
    let mut body = field(1, name.as_bytes());
    for domain in &host.domains {
        body.extend(field(2, domain.as_bytes()));
    }
    body.extend(field(3, &host.mark.to_le_bytes()));
    let constraints =
        CONSTRAINTS[host.constraint].map(|text| Constraints::new(&text.parse().unwrap()).unwrap());
    Arc::new(Resource {
        constraints,
        facts: Some(Box::new(Facts {
            domains: Domains::new(&host.domains),
            ..Facts::default()
        })),
        ..Resource::new(Name::new(&name), Bytes::from(body))
    })
}

/// What a proxy reads from a body.
fn read(body: &[u8]) -> (String, Vec<String>, u32) {
    let (mut rest, mut name, mut domains, mut mark) = (body, String::new(), Vec::new(), 0);
    while let [tag, length, tail @ ..] = rest {
        let (value, after) = tail.split_at(*length as usize);
        match tag >> 3 {
            1 => name = String::from_utf8(value.into()).unwrap(),
            2 => domains.push(String::from_utf8(value.into()).unwrap()),
            _ => mark = u32::from_le_bytes(value.try_into().unwrap()),
        }
        rest = after;
    }
    (name, domains, mark)
}

/// A route configuration that finds its hosts in some way.
fn route_configuration(route: usize, way: usize) -> Change {
    let vhds = (way > 0).then(|| Version::new(way.to_string()));
    let resource = Resource {
        facts: Some(Box::new(Facts {
            vhds,
            ..Facts::default()
        })),
        ..Resource::new(Name::new(ROUTES[route]), Bytes::from(way.to_string()))
    };
    Change::Upsert(TypeUrl::from(kind::RDS), Arc::new(resource))
}

fn is_under(name: &str, route: usize) -> bool {
    let host = name.strip_prefix(ROUTES[route]);
    let host = host.and_then(|rest| rest.strip_prefix('/'));
    host.is_some_and(|host| !host.contains('/'))
}

struct Proxy {
    env: usize,
    session: Option<Session>,
    /// How each route configuration finds its hosts, once it is there.
    ways: [Option<usize>; ROUTES.len()],
    /// The versions of these.
    routes: BTreeMap<String, Version>,
    /// Route configurations that wait for a word on their hosts.
    owed: BTreeSet<usize>,
    /// By name: domains, and what tells one from another.
    held: BTreeMap<String, (Vec<String>, u32)>,
    /// What it says at its next start.
    versions: BTreeMap<String, Version>,
    asked: BTreeSet<String>,
    waiting: BTreeSet<String>,
    sent: Option<DeltaResponse>,
}

impl Proxy {
    fn new(env: usize) -> Self {
        Self {
            env,
            session: None,
            ways: [None; ROUTES.len()],
            routes: BTreeMap::new(),
            owed: BTreeSet::new(),
            held: BTreeMap::new(),
            versions: BTreeMap::new(),
            asked: BTreeSet::new(),
            waiting: BTreeSet::new(),
            sent: None,
        }
    }

    fn connect(&mut self, db: &mut Database) {
        if let Some(session) = self.session.take() {
            session.close(db);
        }
        self.sent = None;
        let mut config = Config::new(Mode::Delta);
        config.params = Params::new([("env", ENVS[self.env])]).unwrap();
        self.session = Some(Session::open(db, config));
        // A request waits until its client goes if what it waits for was given
        // up, or is said to be known not to exist.
        let (asked, versions) = (&self.asked, &self.versions);
        let is_known = |name: &String| {
            versions
                .get(name)
                .is_some_and(|v| v.as_str().starts_with('-'))
        };
        self.waiting
            .retain(|name| asked.contains(name) && !is_known(name));
        self.say(
            db,
            kind::RDS,
            DeltaRequest {
                node: Some(Node {
                    user_agent: "envoy".into(),
                    ..Node::default()
                }),
                subscribe: ROUTES.iter().map(|name| (*name).into()).collect(),
                initial_versions: self.routes.clone().into_iter().collect(),
                ..DeltaRequest::default()
            },
        );
        let mut subscribe: Vec<Locator> = self.asked.iter().map(|n| n.as_str().into()).collect();
        subscribe.push("*".into());
        self.say(
            db,
            kind::VHDS,
            DeltaRequest {
                subscribe,
                initial_versions: self.versions.clone().into_iter().collect(),
                ..DeltaRequest::default()
            },
        );
    }

    fn say(&mut self, db: &mut Database, url: &str, request: DeltaRequest) {
        let request = DeltaRequest {
            type_url: Some(TypeUrl::from(url)),
            ..request
        };
        self.session
            .as_mut()
            .unwrap()
            .handle_delta(db, request, Moment::START)
            .unwrap();
    }

    fn local(&self, route: usize, host: &str) -> Option<u32> {
        let mine = self.held.iter().filter(|(name, _)| is_under(name, route));
        let table =
            mine.flat_map(|(_, (domains, mark))| domains.iter().map(|d| (d.as_str(), *mark)));
        search(table, sought(route, host))
    }

    fn route(&mut self, db: &mut Database, route: usize, host: &str) {
        let name = format!("{}/{host}", ROUTES[route]);
        let finds = self.ways[route].is_some_and(|way| way > 0);
        if finds && self.local(route, host).is_none() && self.asked.insert(name.clone()) {
            self.waiting.insert(name.clone());
            self.say(
                db,
                kind::VHDS,
                DeltaRequest {
                    subscribe: vec![name.as_str().into()],
                    ..DeltaRequest::default()
                },
            );
        }
    }

    /// Reads one response; whether there was one.
    fn read(&mut self, db: &mut Database) -> Result<bool, TestCaseError> {
        let session = self.session.as_mut().unwrap();
        let Some(response) = self
            .sent
            .take()
            .or_else(|| session.poll_delta(db, Moment::START))
        else {
            return Ok(false);
        };
        if response.type_url.as_str() == kind::RDS {
            self.read_routes(db, &response);
            return Ok(true);
        }
        let ways = self.ways;
        let finding = |name: &str| {
            let found = (0..ROUTES.len()).find(|route| is_under(name, *route));
            found.is_some_and(|route| ways[route].is_some_and(|way| way > 0))
        };
        let names = response.resources.iter().map(|d| &d.resource.name);
        for name in names.chain(&response.removed) {
            self.owed.retain(|route| !is_under(name.as_str(), *route));
        }
        for name in &response.removed {
            self.versions.remove(name.as_str());
            if finding(name.as_str()) {
                self.held.remove(name.as_str());
            }
        }
        for delivered in response.resources.iter() {
            let resource = &delivered.resource;
            let known = self.versions.get(resource.name.as_str());
            if resource.body.is_none() && known == Some(&resource.version) {
                continue; // a heartbeat, whatever it was meant to be
            }
            prop_assert!(
                !response.removed.contains(&resource.name),
                "there and gone: {response:?}"
            );
            self.versions
                .insert(resource.name.to_string(), resource.version.clone());
            if !finding(resource.name.as_str()) {
                continue;
            }
            let names: Vec<String> = resource.other_names().map(|n| n.to_string()).collect();
            self.waiting
                .retain(|name| !names.contains(name) && name != resource.name.as_str());
            let Some(body) = &resource.body else { continue };
            let (name, domains, mark) = read(body);
            prop_assert_eq!(&name, resource.name.as_str());
            self.held.insert(name, (domains, mark));
        }
        let mut seen = BTreeSet::new();
        for (name, (domains, _)) in &self.held {
            let (route, _) = name.rsplit_once('/').unwrap();
            for domain in domains {
                prop_assert!(
                    seen.insert((route, domain)),
                    "{domain} twice: {:?} after {response:?}",
                    self.held
                );
            }
        }
        self.say(
            db,
            kind::VHDS,
            DeltaRequest {
                nonce: Some(response.nonce),
                ..DeltaRequest::default()
            },
        );
        Ok(true)
    }

    /// Takes route configurations. One that finds its hosts in another way than
    /// before gives up all that it asked for, and waits for a word.
    fn read_routes(&mut self, db: &mut Database, response: &DeltaResponse) {
        for delivered in response.resources.iter() {
            let resource = &delivered.resource;
            let name = resource.name.to_string();
            let route = ROUTES.iter().position(|route| *route == name).unwrap();
            let vhds = resource.facts().vhds.as_ref();
            let way = vhds.map_or(0, |vhds| vhds.as_str().parse().unwrap());
            self.routes.insert(name, resource.version.clone());
            if self.ways[route].replace(way) == Some(way) {
                continue;
            }
            self.owed.remove(&route);
            self.owed.extend(Some(route).filter(|_| way > 0));
            let is_given_up = |name: &String| is_under(name, route);
            let given_up: Vec<_> = self.asked.extract_if(.., is_given_up).collect();
            if !given_up.is_empty() {
                let unsubscribe = given_up.iter().map(|name| name.as_str().into()).collect();
                let request = DeltaRequest {
                    unsubscribe,
                    ..DeltaRequest::default()
                };
                self.say(db, kind::VHDS, request);
            }
        }
        let accept = DeltaRequest {
            nonce: Some(response.nonce.clone()),
            ..DeltaRequest::default()
        };
        self.say(db, kind::RDS, accept);
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let domains = proptest::collection::btree_set(0..DOMAINS.len(), 1..4);
    let route = prop_oneof![4 => Just(0usize), 1 => Just(1usize)];
    let constraint = prop_oneof![3 => Just(0usize), 1 => 0..CONSTRAINTS.len()];
    prop_oneof![
        3 => (route.clone(), 0..NAMES.len(), domains, constraint).prop_map(
            |(route, name, domains, constraint)| Edit::Put { route, name, domains, constraint }
        ),
        1 => (route, 0..NAMES.len()).prop_map(|(route, name)| Edit::Remove { route, name }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let proxy = 0..ENVS.len();
    prop_oneof![
        3 => proptest::collection::vec(edit(), 1..4).prop_map(Op::Change),
        6 => (proxy.clone(), prop_oneof![4 => Just(0usize), 1 => Just(1usize)], 0..HOSTS.len())
            .prop_map(|(proxy, route, host)| Op::Route { proxy, route, host }),
        4 => proxy.clone().prop_map(|proxy| Op::Read { proxy }),
        1 => proxy.prop_map(|proxy| Op::Reconnect { proxy }),
        1 => (0..ROUTES.len(), 0..3usize).prop_map(|(route, way)| Op::Way { route, way }),
    ]
}

/// Whether the whole configuration would be rejected.
fn conflicts(whole: &Whole) -> bool {
    (0..ENVS.len()).any(|env| {
        let mut seen = BTreeSet::new();
        let hosts = whole.iter().filter(|(_, h)| sees(h.constraint, env));
        let mut domains =
            hosts.flat_map(|((route, ..), h)| h.domains.iter().map(move |d| (route, d)));
        domains.any(|domain| !seen.insert(domain))
    })
}

/// Whether one name would have two variants that a client sees.
fn overlaps(whole: &Whole) -> bool {
    (0..ENVS.len()).any(|env| {
        let mut seen = BTreeSet::new();
        let mut hosts = whole.iter().filter(|(_, h)| sees(h.constraint, env));
        hosts.any(|((route, name, _), _)| !seen.insert((route, name)))
    })
}

fn change(
    db: &mut Database,
    whole: &mut Whole,
    edits: &[Edit],
    marks: &mut u32,
) -> Result<(), TestCaseError> {
    let url = TypeUrl::from(kind::VHDS);
    let (mut next, mut changes) = (whole.clone(), Vec::new());
    for edit in edits {
        match edit {
            Edit::Put {
                route,
                name,
                domains,
                constraint,
            } => {
                *marks += 1;
                let host = Host {
                    domains: domains.iter().map(|d| DOMAINS[*d]).collect(),
                    constraint: *constraint,
                    mark: *marks,
                };
                changes.push(Change::Upsert(url.clone(), resource(*route, *name, &host)));
                next.insert((*route, *name, *constraint), host);
            }
            Edit::Remove { route, name } => {
                next.retain(|(r, n, _), _| (r, n) != (route, name));
                let name = format!("{}/{}", ROUTES[*route], NAMES[*name]);
                changes.push(Change::Remove(url.clone(), Name::new(&name)));
            }
        }
    }
    match db.apply(changes) {
        Ok(()) => {
            prop_assert!(!conflicts(&next) && !overlaps(&next), "taken: {next:?}");
            *whole = next;
        }
        Err(ApplyError::Domain { .. }) => prop_assert!(conflicts(&next), "refused: {next:?}"),
        Err(ApplyError::Overlap { .. }) => prop_assert!(overlaps(&next), "refused: {next:?}"),
        Err(other) => return Err(TestCaseError::fail(other.to_string())),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// S36, S66, S76 under every change: law 2.
    #[test]
    fn on_demand_routes_every_host_as_the_whole_would(ops in proptest::collection::vec(op(), 1..40)) {
        let mut db = Database::new();
        let portless = Facts { ignores_port: true, ..Facts::default() };
        let portless = Resource {
            facts: Some(Box::new(portless)),
            ..Resource::new(Name::new(ROUTES[1]), Bytes::new())
        };
        db.apply(vec![Change::Upsert(kind::RDS.into(), Arc::new(portless))]).unwrap();
        let (mut whole, mut marks) = (Whole::new(), 0);
        let mut ways = [1; ROUTES.len()];
        let routes = (0..ROUTES.len()).map(|route| route_configuration(route, 1));
        db.apply(routes.collect()).unwrap();
        let mut proxies: Vec<_> = (0..ENVS.len()).map(Proxy::new).collect();
        proxies.iter_mut().for_each(|proxy| proxy.connect(&mut db));
        for op in &ops {
            match op {
                Op::Change(edits) => change(&mut db, &mut whole, edits, &mut marks)?,
                Op::Way { route, way } => {
                    ways[*route] = *way;
                    db.apply(vec![route_configuration(*route, *way)]).unwrap();
                }
                Op::Route { proxy, route, host } => proxies[*proxy].route(&mut db, *route, HOSTS[*host]),
                Op::Read { proxy } => {
                    proxies[*proxy].read(&mut db)?;
                }
                Op::Reconnect { proxy } => proxies[*proxy].connect(&mut db),
            }
            prop_assert_eq!(db.check(), Ok(()));
        }
        for proxy in &mut proxies {
            let mut reads = 0;
            while proxy.read(&mut db)? {
                reads += 1;
                prop_assert!(reads < 20, "no end");
            }
            prop_assert!(proxy.owed.is_empty(), "no word on: {:?}", proxy.owed);
            let finding = |route: &usize| ways[*route] > 0;
            let all: Vec<_> = (0..ROUTES.len()).filter(finding).collect();
            let waits = |name: &&String| all.iter().any(|route| is_under(name, *route));
            let waiting: Vec<_> = proxy.waiting.iter().filter(waits).collect();
            prop_assert!(waiting.is_empty(), "wait for ever: {waiting:?}");
            for (route, host) in all.iter().flat_map(|r| HOSTS.map(|h| (*r, h))) {
                let right = oracle(&whole, route, host, proxy.env);
                if let Some(local) = proxy.local(route, host) {
                    prop_assert_eq!(Some(local), right, "{} of {}, held {:?}", host, route, proxy.held);
                }
                proxy.route(&mut db, route, host);
                while proxy.read(&mut db)? {}
                prop_assert_eq!(proxy.local(route, host), right, "{} of {}, held {:?}", host, route, proxy.held);
            }
        }
        for proxy in proxies {
            proxy.session.unwrap().close(&mut db);
        }
        prop_assert_eq!(db.check(), Ok(()));
    }
}
