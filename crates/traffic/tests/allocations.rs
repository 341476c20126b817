//! A match and a pick allocate nothing, whatever the size of the table.
//!
//! An allocator that counts bytes is under this program. Times are not asserted:
//! `cargo bench -p trunkline-traffic` shows them.
#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

#[path = "../benches/support/mod.rs"]
mod support;

use peak_alloc::PeakAlloc;
use support::{assignment, policies, request_headers, routes};
use trunkline_traffic::balance::{Balancer, HostSets, PickContext, Policy};
use trunkline_traffic::route::{Context, RouteTable};
use trunkline_traffic::{Request, Runtime};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Returns the bytes that a run takes at most. Tests of this program run one
/// after the other, in one function, because all threads are counted.
fn allocated(run: impl FnOnce()) -> usize {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    run();
    ALLOCATOR.peak_usage() - before
}

#[test]
fn a_match_and_a_pick_allocate_nothing() {
    a_match_allocates_nothing();
    a_pick_allocates_nothing();
    a_change_of_one_endpoint_takes_little();
}

fn a_match_allocates_nothing() {
    let table = RouteTable::compile(&routes(500, 31)).unwrap();
    let headers = request_headers();
    let runtime = Runtime::default();
    let context = Context {
        random: 7,
        runtime: &runtime,
        peer: None,
    };
    for host in [
        "host250.example.com",
        "HOST250.example.com",
        "x.wild7.example.com",
    ] {
        let request = Request {
            method: "GET",
            scheme: "http",
            authority: host,
            path: "/r30/item?k=v",
            headers: &headers,
        };
        // The first match of an expression makes its cache.
        let found = table.find(&request, &context).expect("a route");
        assert_eq!(found.index, 30);
        let count = allocated(|| {
            let found = table.find(&request, &context).expect("a route");
            let forward = found.forward(&request, &context).expect("a cluster");
            assert_eq!(forward.cluster.name, Some("c30"));
        });
        assert_eq!(count, 0, "{host}");
    }
}

/// A pool that is made anew takes 80 000 bytes for 10 000 endpoints.
fn a_change_of_one_endpoint_takes_little() {
    for (name, cluster) in policies().into_iter().take(3) {
        let hosts = HostSets::read(&assignment(10_000), Duration::ZERO).unwrap();
        let policy = Arc::new(Policy::compile(&cluster).unwrap());
        let mut balancer = Balancer::new(policy, &hosts, None, 3, Duration::ZERO);
        let addresses: Vec<String> = hosts
            .hosts()
            .take(20)
            .map(|host| host.address().to_owned())
            .collect();
        let mut eject = |address: &str, is_ejected: bool| {
            let mut all = hosts.hosts();
            let host = all.find(|host| host.address() == address).unwrap();
            host.counters().set_ejected(is_ejected);
            balancer.apply_health(&hosts, address, None, Duration::ZERO);
        };
        // The first change makes the table that later ones need.
        eject(&addresses[0], true);
        eject(&addresses[0], false);
        let bytes = allocated(|| {
            for address in &addresses {
                eject(address, true);
                eject(address, false);
            }
        });
        assert!(bytes < 10_000, "{name}: {bytes}");
    }
}

fn a_pick_allocates_nothing() {
    for (name, cluster) in policies() {
        let hosts = HostSets::read(&assignment(1_000), Duration::ZERO).unwrap();
        let policy = Arc::new(Policy::compile(&cluster).unwrap());
        let mut balancer = Balancer::new(policy, &hosts, None, 3, Duration::ZERO);
        let mut random = 1_u64;
        let mut draw = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            random >> 8
        };
        let context = PickContext {
            hash: Some(12_345),
            ..PickContext::default()
        };
        let count = allocated(|| {
            for _ in 0..100 {
                assert!(balancer.pick(&context, &mut draw).is_some());
            }
        });
        assert_eq!(count, 0, "{name}");
    }
}
