//! The law of on demand: every host is routed as the whole route configuration
//! would route it, whatever was asked before, in any order, under any change.
//!
//! A proxy as Envoy was seen to be: what it holds it serves without asking, a
//! host is asked for once, a domain that two virtual hosts have is rejected.
//! When a route configuration finds its hosts another way, or has none on
//! demand, it gives up all that it asked for and keeps what it has. Beside it
//! the whole configuration, searched one by one.

#![allow(clippy::unwrap_used)] // a test: what cannot fail here is part of it

mod proxy;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, Database};
use trunkline_core::facts::{Facts, RareFacts};
use trunkline_core::hosts::Domains;
use trunkline_core::kind;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl, Version};

use proxy::{Proxy, is_under};

/// Cases that failed once.
const KEPT: &str = "tests/hosts_law/proptest-regressions.txt";
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

/// A route configuration that finds its hosts in some way.
fn route_configuration(route: usize, way: usize) -> Change {
    let rare = RareFacts {
        vhds_version: (way > 0).then(|| Version::new(way.to_string())),
        ignores_port: route == 1,
        ..RareFacts::default()
    };
    let resource = Resource {
        facts: Some(Box::new(Facts {
            rare: rare.boxed(),
            ..Facts::default()
        })),
        ..Resource::new(Name::new(ROUTES[route]), Bytes::from(way.to_string()))
    };
    Change::Upsert(TypeUrl::from(kind::RDS), Arc::new(resource))
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
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(KEPT))),
        ..ProptestConfig::with_cases(1000)
    })]

    /// S36, S66, S76 under every change: law 2.
    #[test]
    fn on_demand_routes_every_host_as_the_whole_would(ops in proptest::collection::vec(op(), 1..40)) {
        let mut db = Database::new();
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
            // In one order or the other: what is held may serve what comes later.
            let mut hosts = HOSTS;
            if ops.len() % 2 == 0 {
                hosts.reverse();
            }
            for (route, host) in all.iter().flat_map(|r| hosts.map(|h| (*r, h))) {
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
