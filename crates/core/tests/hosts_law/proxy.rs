//! A proxy as Envoy was seen to be: what it holds it serves without asking, and
//! a domain that two virtual hosts have is rejected.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use trunkline_core::Moment;
use trunkline_core::database::Database;
use trunkline_core::kind;
use trunkline_core::message::{DeltaRequest, DeltaResponse, Locator, Mode, Node};
use trunkline_core::name::Name;
use trunkline_core::params::Params;
use trunkline_core::resource::{TypeUrl, Version};
use trunkline_core::session::{Config, Session};

use super::{ENVS, ROUTES, search, sought};

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

pub(crate) fn is_under(name: &str, route: usize) -> bool {
    let host = name.strip_prefix(ROUTES[route]);
    let host = host.and_then(|rest| rest.strip_prefix('/'));
    host.is_some_and(|host| !host.contains('/'))
}

pub(crate) struct Proxy {
    pub(crate) env: usize,
    pub(crate) session: Option<Session>,
    /// How each route configuration finds its hosts, once it is there.
    pub(crate) ways: [Option<usize>; ROUTES.len()],
    /// The versions of these.
    pub(crate) routes: BTreeMap<String, Version>,
    /// Route configurations that wait for a word on their hosts.
    pub(crate) owed: BTreeSet<usize>,
    /// By name: domains, and what tells one from another.
    pub(crate) held: BTreeMap<String, (Vec<String>, u32)>,
    /// What it says at its next start.
    pub(crate) versions: BTreeMap<String, Version>,
    pub(crate) asked: BTreeSet<String>,
    pub(crate) waiting: BTreeSet<String>,
    pub(crate) sent: Option<DeltaResponse>,
}

impl Proxy {
    pub(crate) fn new(env: usize) -> Self {
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

    pub(crate) fn connect(&mut self, db: &mut Database) {
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
                initial_versions: held(&self.routes).into(),
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
                initial_versions: held(&self.versions).into(),
                ..DeltaRequest::default()
            },
        );
    }

    pub(crate) fn say(&mut self, db: &mut Database, url: &str, request: DeltaRequest) {
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

    pub(crate) fn local(&self, route: usize, host: &str) -> Option<u32> {
        let mine = self.held.iter().filter(|(name, _)| is_under(name, route));
        let table =
            mine.flat_map(|(_, (domains, mark))| domains.iter().map(|d| (d.as_str(), *mark)));
        search(table, sought(route, host))
    }

    pub(crate) fn route(&mut self, db: &mut Database, route: usize, host: &str) {
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
    pub(crate) fn read(&mut self, db: &mut Database) -> Result<bool, TestCaseError> {
        let session = self.session.as_mut().unwrap();
        let Some(response) = self.sent.take().or_else(|| {
            session
                .poll(db, Moment::START)
                .and_then(trunkline_core::message::Response::into_delta)
        }) else {
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
    pub(crate) fn read_routes(&mut self, db: &mut Database, response: &DeltaResponse) {
        for delivered in response.resources.iter() {
            let resource = &delivered.resource;
            let name = resource.name.to_string();
            let route = ROUTES.iter().position(|route| *route == name).unwrap();
            let vhds = resource.facts().vhds_version();
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

fn held(versions: &BTreeMap<String, Version>) -> Vec<(Name, Version)> {
    let held = versions.iter();
    held.map(|(name, version)| (Name::new(name), version.clone()))
        .collect()
}
