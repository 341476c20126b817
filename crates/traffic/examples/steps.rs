//! Does one thing so many times, for a program that counts instructions:
//! `steps NAME COUNT`. Without arguments the names are listed.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout
)]

#[path = "../benches/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use support::{assignment, policies, request_headers, routes};
use trunkline_traffic::balance::{Balancer, HostSets, PickContext, Policy};
use trunkline_traffic::route::{Context, RouteTable};
use trunkline_traffic::{Request, Runtime};

/// A match among so many virtual hosts, by the host that is asked for.
const MATCHES: &[(&str, usize, &str)] = &[
    ("match-500", 500, "host250.example.com"),
    ("match-500-wildcard", 500, "x.wild250.example.com"),
    ("match-100000", 100_000, "host250.example.com"),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, count] = arguments.as_slice() else {
        let matches = MATCHES.iter().map(|(name, ..)| (*name).to_owned());
        let picks = policies().into_iter().map(|(name, _)| pick_name(name));
        matches.chain(picks).for_each(|name| println!("{name}"));
        return;
    };
    let count: u64 = count.parse().expect("a number");
    match MATCHES.iter().find(|(known, ..)| known == name) {
        Some((_, hosts, host)) => find(*hosts, host, count),
        None => pick(name, count),
    }
}

fn pick_name(policy: &str) -> String {
    format!("pick-{}", policy.replace(' ', "-"))
}

fn find(hosts: usize, host: &str, count: u64) {
    let mut table = RouteTable::compile(&routes(hosts.min(500), 31)).unwrap();
    for index in 500..hosts {
        let name = format!("routes/host{index}");
        // What is not asked for may be small; making it costs most of the time.
        let one = support::host(index, 1);
        table = table.with_virtual_host(&name, &one).unwrap();
    }
    let headers = request_headers();
    let runtime = Runtime::default();
    let context = Context {
        random: 7,
        runtime: &runtime,
        peer: None,
    };
    let request = Request {
        method: "GET",
        scheme: "http",
        authority: host,
        path: "/r30/item?k=v",
        headers: &headers,
    };
    for _ in 0..count {
        black_box(table.find(black_box(&request), &context).is_ok());
    }
}

fn pick(name: &str, count: u64) {
    let mut all = policies().into_iter();
    let (_, cluster) = all
        .find(|(policy, _)| pick_name(policy) == name)
        .expect("one of those that are listed");
    let hosts = HostSets::read(&assignment(1_000), Duration::ZERO).unwrap();
    let policy = Arc::new(Policy::compile(&cluster).unwrap());
    let mut balancer = Balancer::new(policy, &hosts, None, 3, Duration::ZERO);
    let mut random = 1_u64;
    for _ in 0..count {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let context = PickContext {
            hash: Some(random),
            ..PickContext::default()
        };
        let mut draw = || random >> 8;
        black_box(balancer.pick(&context, &mut draw).is_some());
    }
}
