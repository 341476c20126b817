//! Trunkline's own client, as an application uses it: one watch of a listener
//! with everything below it.

use std::io::BufRead as _;

use tokio::sync::mpsc;
use trunkline::client::Client;
use trunkline::client::tree::{ListenerSnapshot, SnapshotWatch};
use trunkline::envoy::config::core::v3::{address, socket_address};
use trunkline::envoy::config::endpoint::v3::{ClusterLoadAssignment, lb_endpoint};

use super::watcher::print_line;
use crate::error::{Error, Result};

/// Watches a listener until this process's input ends, of which each line is a
/// cluster and the first port that its endpoints are to have.
pub(super) async fn watch(client: &Client, prefix: &str, clusters: usize) -> Result<()> {
    let mut listener = client.listener(prefix);
    let count = count_resolved(&listener.ready().await);
    if count != clusters {
        let why = format!("the first snapshot has {count} of {clusters} clusters");
        return Err(Error::Driver(why));
    }
    print_line("held");
    let (sender, mut lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let all = std::io::stdin().lock().lines();
        all.map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    while let Some(line) = lines.recv().await {
        let wish = line.split_once(' ');
        let wish = wish.and_then(|(name, port)| Some((name, port.parse().ok()?)));
        let Some((name, port)) = wish else {
            return Err(Error::Usage(format!("no cluster and port: {line:?}")));
        };
        wait_for(&mut listener, name, port).await;
        print_line("+");
    }
    Ok(())
}

/// Returns the number of clusters that have endpoints.
fn count_resolved(snapshot: &ListenerSnapshot) -> usize {
    let routes = snapshot.routes();
    let clusters = routes.iter().flat_map(|route| route.clusters());
    clusters
        .filter(|cluster| cluster.load_assignment().is_some())
        .count()
}

/// Waits for a snapshot in which the endpoints of a cluster have this first
/// port.
async fn wait_for(listener: &mut SnapshotWatch<ListenerSnapshot>, name: &str, port: u32) {
    let mut snapshot = listener.ready().await;
    loop {
        let cluster = snapshot.cluster(name);
        let endpoints = cluster.and_then(|cluster| cluster.load_assignment());
        if endpoints.is_some_and(|endpoints| first_port(&endpoints) == Some(port)) {
            return;
        }
        snapshot = listener.changed().await;
    }
}

/// Returns the port of the first endpoint.
fn first_port(endpoints: &ClusterLoadAssignment) -> Option<u32> {
    let first = endpoints.endpoints.first()?.lb_endpoints.first()?;
    let lb_endpoint::HostIdentifier::Endpoint(endpoint) = first.host_identifier.as_ref()? else {
        return None;
    };
    let address = endpoint.address.as_ref()?.address.as_ref()?;
    let address::Address::SocketAddress(socket) = address else {
        return None;
    };
    match socket.port_specifier.as_ref()? {
        socket_address::PortSpecifier::PortValue(port) => Some(*port),
        socket_address::PortSpecifier::NamedPort(_) => None,
    }
}
