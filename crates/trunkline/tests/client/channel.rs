//! Calls of a real tonic service through the channel, while its configuration
//! changes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tonic::Code;
use trunkline::channel::XdsChannel;
use trunkline::client::Client;
use trunkline::{ResourceMessage, Server};

use super::PATIENCE;
use super::backend::{Backend, call};
use super::gate::Gate;
use super::resources::{eds_cluster, endpoints, listener, routes};
use super::server::Serving;

/// The configuration: the service leads to one cluster with these backends.
fn configure(server: &Server, cluster: &str, backends: &[&Backend]) {
    let ports: Vec<u32> = backends.iter().map(|of| of.port()).collect();
    let messages = [
        ResourceMessage::of(&listener("greeter", "routes")),
        ResourceMessage::of(&routes("routes", &[("greeter", cluster)])),
        ResourceMessage::of(&eds_cluster(cluster)),
        ResourceMessage::of(&endpoints(cluster, &ports)),
    ];
    server.set("test", messages).unwrap();
}

fn client(address: SocketAddr) -> Client {
    let builder = Client::builder().server(&address.to_string());
    builder.unwrap().node_id("me").build()
}

/// Callers without a pause, and what went wrong.
struct Load {
    is_over: Arc<AtomicBool>,
    callers: JoinSet<Vec<tonic::Status>>,
}

impl Load {
    fn start(channel: &XdsChannel) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut callers = JoinSet::new();
        for _ in 0..4 {
            let (channel, is_over) = (channel.clone(), Arc::clone(&is_over));
            callers.spawn(async move {
                let mut failed = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    failed.extend(call(&channel).await.err());
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                failed
            });
        }
        Self { is_over, callers }
    }

    async fn end(mut self) -> Vec<tonic::Status> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut failed = Vec::new();
        while let Some(of) = self.callers.join_next().await {
            failed.extend(of.unwrap());
        }
        failed
    }
}

/// Waits until a backend gets calls.
async fn reached(backend: &Backend) {
    let before = backend.calls();
    let wait = async {
        while backend.calls() < before + 5 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap();
}

/// Clusters are swapped and endpoints moved under load, with this round trip to
/// the control plane, which is replaced now and then.
async fn swaps_and_moves(round_trip: Duration) {
    let mut serving = Serving::start();
    let backends = [
        Backend::start().await,
        Backend::start().await,
        Backend::start().await,
    ];
    configure(&serving.server, "cluster-0", &[&backends[0]]);
    let gate = Gate::delayed(serving.address, round_trip / 2).await;
    let client = client(gate.address);
    let channel = XdsChannel::builder(&client, "greeter").build();
    call(&channel).await.unwrap();
    let load = Load::start(&channel);
    for step in 1..=20 {
        // A swap: another cluster, with another endpoint.
        let cluster = format!("cluster-{step}");
        let target = &backends[step % 3];
        configure(&serving.server, &cluster, &[target]);
        reached(target).await;
        // A move: the same cluster, with other endpoints.
        let target = &backends[(step + 1) % 3];
        configure(&serving.server, &cluster, &[target]);
        reached(target).await;
        if step % 5 == 0 {
            let next = Serving::start_with(|next| configure(&next.server, &cluster, &[target]));
            gate.cut(next.address);
            serving = next;
        }
    }
    let failed = load.end().await;
    assert!(failed.is_empty(), "{} calls: {:?}", failed.len(), failed[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e18_no_call_is_lost_by_swaps_moves_and_restarts() {
    swaps_and_moves(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e18_no_call_is_lost_with_a_round_trip_of_50_ms() {
    swaps_and_moves(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn calls_go_round() {
    let serving = Serving::start();
    let (one, two) = (Backend::start().await, Backend::start().await);
    configure(&serving.server, "c", &[&one, &two]);
    let client = client(serving.address);
    let channel = XdsChannel::builder(&client, "greeter").build();
    // Both are connected to at some time; then each has its turn.
    let both = async {
        while one.calls() == 0 || two.calls() == 0 {
            call(&channel).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, both).await.unwrap();
    let before = (one.calls(), two.calls());
    for _ in 0..10 {
        call(&channel).await.unwrap();
    }
    assert_eq!((one.calls() - before.0, two.calls() - before.1), (5, 5));
}

#[tokio::test]
async fn c45_a_call_is_told_why_there_is_nowhere_to_go() {
    let serving = Serving::start();
    let backend = Backend::start().await;
    let client = client(serving.address);
    let channel = XdsChannel::builder(&client, "greeter").build();
    configure(&serving.server, "c", &[]);
    let refused = call(&channel).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(
        refused.message().contains("no healthy endpoint"),
        "{refused}"
    );

    configure(&serving.server, "c", &[&backend]);
    let reached = async {
        while call(&channel).await.is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap();

    // Another name has no virtual host here.
    let other = XdsChannel::builder(&client, "greeter").authority("other");
    let refused = call(&other.build()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().contains("other"), "{refused}");
}
