//! Messages that configure traffic, from any bytes: compiled or refused, and
//! whatever was compiled decides.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use prost::Message;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline_proto::envoy::envoy::config::listener::v3::Listener;
use trunkline_proto::envoy::envoy::config::route::v3::RouteConfiguration;
use trunkline_proto::envoy::envoy::extensions::filters::http::adaptive_concurrency::v3::AdaptiveConcurrency;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, ScopedRoutes as ScopedRoutesMessage,
};
use trunkline_traffic::balance::{Balancer, HostSets, PickContext, Policy};
use trunkline_traffic::cluster::{Breakers, Limits, OutlierConfig, Outliers};
use trunkline_traffic::concurrency::{ConcurrencyConfig, ConcurrencyController};
use trunkline_traffic::connection_manager::ConnectionManager;
use trunkline_traffic::headers::Headers;
use trunkline_traffic::listener::{FilterChains, Incoming};
use trunkline_traffic::route::{Context, Priority, RouteTable, ScopedRoutes};
use trunkline_traffic::{Request, Runtime};

/// Rings and tables of this size are made quickly.
const LARGEST: u64 = 4096;

fuzz_target!(|data: &[u8]| {
    let Some((kind, body)) = data.split_first() else {
        return;
    };
    match kind % 7 {
        0 => routes(body),
        1 => manager(body),
        2 => balance(body),
        3 => chains(body),
        4 => scopes(body),
        5 => protection(body),
        _ => concurrency(body),
    }
});

fn routes(body: &[u8]) {
    let Ok(message) = RouteConfiguration::decode(body) else {
        return;
    };
    let Ok(table) = RouteTable::compile(&message) else {
        return;
    };
    let headers = Headers::new();
    let runtime = Runtime::default();
    let context = Context {
        random: 7,
        runtime: &runtime,
        peer: None,
    };
    let request = Request {
        method: "GET",
        scheme: "http",
        authority: "a",
        path: "/a?b",
        headers: &headers,
    };
    if let Ok(found) = table.find(&request, &context) {
        let _ = found.forward(&request, &context);
        let _ = found.location(&request);
    }
}

fn manager(body: &[u8]) {
    if let Ok(message) = HttpConnectionManager::decode(body) {
        let _ = ConnectionManager::compile(&message);
    }
}

/// The bytes are a cluster, which has its assignment inside.
fn balance(body: &[u8]) {
    let Ok(mut message) = Cluster::decode(body) else {
        return;
    };
    use trunkline_proto::envoy::envoy::config::cluster::v3::cluster::LbConfig;
    match &mut message.lb_config {
        Some(LbConfig::RingHashLbConfig(ring)) => {
            let sizes = [&mut ring.minimum_ring_size, &mut ring.maximum_ring_size];
            for size in sizes.into_iter().flatten() {
                size.value %= LARGEST;
            }
            if ring.maximum_ring_size.is_none() {
                ring.maximum_ring_size.get_or_insert_default().value = LARGEST;
            }
        }
        Some(_) => {}
        None => {}
    }
    let Ok(policy) = Policy::compile(&message) else {
        return;
    };
    let mut assignment = message.load_assignment.unwrap_or_default();
    // Most of all numbers are too large.
    assignment
        .endpoints
        .iter_mut()
        .for_each(|group| group.priority %= 200);
    let Ok(mut hosts) = HostSets::read(&assignment, Duration::ZERO) else {
        return;
    };
    let policy = Arc::new(policy);
    let mut balancer = Balancer::new(policy, &hosts, None, 1, Duration::ZERO);
    let load = balancer.load();
    let sum: u64 = load.healthy.iter().chain(&load.degraded).sum();
    assert!(sum == 100 || sum == 0, "{load:?}");
    let mut random = 0_u64;
    for number in 0..20 {
        let context = PickContext {
            hash: Some(number * 0x9e37_79b9),
            ..PickContext::default()
        };
        let _ = balancer.pick(&context, &mut || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            random >> 16
        });
    }
    let changes = hosts.update(&assignment, Duration::ZERO);
    assert!(changes.is_ok_and(|changes| changes.added.is_empty()));
    let _ = ClusterLoadAssignment::default();
}

fn chains(body: &[u8]) {
    let Ok(message) = Listener::decode(body) else {
        return;
    };
    if let Ok(chains) = FilterChains::compile(&message) {
        let _ = chains.find(&Incoming {
            server_name: "a.b.c",
            application_protocols: &["h2"],
            ..Incoming::default()
        });
    }
}

/// Scopes of routes, and the keys of requests in them.
fn scopes(body: &[u8]) {
    let Ok(message) = ScopedRoutesMessage::decode(body) else {
        return;
    };
    if let Ok(scopes) = ScopedRoutes::compile(&message) {
        let headers: Headers = [("a", "b=c;d"), ("x-scope", "s")].into_iter().collect();
        let _ = scopes.find(&headers);
    }
}

/// The breakers of a cluster, and the ejection of its outliers.
fn protection(body: &[u8]) {
    let Ok(message) = Cluster::decode(body) else {
        return;
    };
    for priority in [Priority::Default, Priority::High] {
        let Ok(limits) = Limits::compile(&message, priority) else {
            continue;
        };
        let breakers = Breakers::new(limits);
        for _ in 0..20 {
            if breakers.try_request() {
                breakers.end_request();
            }
            if breakers.try_retry() {
                breakers.end_retry();
            }
        }
    }
    let Some(Ok(config)) = message
        .outlier_detection
        .as_ref()
        .map(OutlierConfig::compile)
    else {
        return;
    };
    let names = (0..6).map(|name: u32| name.to_string());
    let mut outliers = Outliers::new(config, names, Duration::ZERO);
    let mut now = Duration::ZERO;
    for step in 0..200_u64 {
        let host = (step % 6).to_string();
        let status = if step % 5 == 0 { 503 } else { 200 };
        let _ = outliers.handle_status(&host, status, now, step);
        now += Duration::from_millis(700);
        if outliers.next_deadline() <= now {
            let _ = outliers.handle_timeout(now, &mut || step);
        }
    }
}

fn concurrency(body: &[u8]) {
    let Ok(message) = AdaptiveConcurrency::decode(body) else {
        return;
    };
    let Ok(config) = ConcurrencyConfig::compile(&message) else {
        return;
    };
    let mut controller = ConcurrencyController::new(config, Duration::ZERO);
    let mut now = Duration::ZERO;
    for step in 0..200_u64 {
        if controller.try_start() {
            controller.end(now, now + Duration::from_millis(step % 7), step);
        }
        now += Duration::from_millis(50);
        if controller.next_deadline().is_some_and(|at| at <= now) {
            controller.handle_timeout(now);
        }
    }
}
