//! What a match, a host on demand and a pick cost.
#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used)]

mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use support::{assignment, host, policies, request_headers, routes};
use trunkline_traffic::balance::{Balancer, HostSets, PickContext, Policy};
use trunkline_traffic::route::{Context, RouteTable};
use trunkline_traffic::{Request, Runtime};

fn matches(c: &mut Criterion) {
    let headers = request_headers();
    let runtime = Runtime::default();
    let context = Context {
        random: 7,
        runtime: &runtime,
        peer: None,
    };
    let mut table = RouteTable::compile(&routes(500, 31)).unwrap();
    let request = |authority| Request {
        method: "GET",
        scheme: "http",
        authority,
        path: "/r30/item?k=v",
        headers: &headers,
    };
    let exact = request("host250.example.com");
    c.bench_function("match: 500 virtual hosts, last of 31 routes", |b| {
        b.iter(|| black_box(table.find(black_box(&exact), &context).is_ok()));
    });
    let wildcard = request("x.wild250.example.com");
    c.bench_function("match: 500 virtual hosts, by a wildcard", |b| {
        b.iter(|| black_box(table.find(black_box(&wildcard), &context).is_ok()));
    });
    for index in 500..100_000 {
        let name = format!("routes/host{index}");
        table = table.with_virtual_host(&name, &host(index, 31)).unwrap();
    }
    c.bench_function("match: 100000 virtual hosts, last of 31 routes", |b| {
        b.iter(|| black_box(table.find(black_box(&exact), &context).is_ok()));
    });
    let one = host(100_000, 1);
    c.bench_function("one host more on demand, of 100000", |b| {
        b.iter(|| black_box(table.with_virtual_host("routes/new", &one).is_ok()));
    });
}

fn picks(c: &mut Criterion) {
    for (name, cluster) in policies() {
        let hosts = HostSets::read(&assignment(1_000), Duration::ZERO).unwrap();
        let policy = Arc::new(Policy::compile(&cluster).unwrap());
        let mut balancer = Balancer::new(policy, &hosts, None, 3, Duration::ZERO);
        let mut random = 1_u64;
        c.bench_function(&format!("pick: {name}, 1000 endpoints"), |b| {
            b.iter(|| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let context = PickContext {
                    hash: Some(random),
                    ..PickContext::default()
                };
                let mut draw = || random >> 8;
                black_box(balancer.pick(&context, &mut draw).is_some())
            });
        });
    }
}

criterion_group!(benches, matches, picks);
criterion_main!(benches);
