//! Follows the endpoints of a cluster, as a load balancer of one's own would:
//! first the cluster, then the endpoints that it names.
//!
//! ```text
//! cargo run -p trunkline --example embed                  # or any control plane
//! cargo run -p trunkline --example endpoints -- 127.0.0.1:18000 backend
//! GRPC_XDS_BOOTSTRAP=bootstrap.json \
//!     cargo run -p trunkline --example endpoints -- backend
//! ```
#![allow(clippy::print_stdout, reason = "this is what the example shows")]

use std::error::Error;

use trunkline::client::{Bootstrap, Client, State};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::core::v3::address::Address;
use trunkline::envoy::config::core::v3::socket_address::PortSpecifier;
use trunkline::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (builder, name) = match &args[..] {
        [server, name] => (Client::builder().server(server)?.node_id("example"), name),
        [name] => (Client::builder().bootstrap(Bootstrap::from_env()?), name),
        _ => return Err("usage: endpoints [SERVER] CLUSTER".into()),
    };
    let client = builder.build();

    let mut clusters = client.subscribe::<Cluster>(name)?.watch();
    let cluster = loop {
        match clusters.changed().await {
            State::Ready(cluster) | State::Stale(cluster, _) => break cluster,
            State::Failed(error) => println!("{name}: {error}"),
            State::Pending => {}
        }
    };
    let eds = cluster.eds_cluster_config.as_ref();
    let service = eds.map(|eds| eds.service_name.as_str());
    let service = service.filter(|name| !name.is_empty()).unwrap_or(name);

    let mut endpoints = client.subscribe::<ClusterLoadAssignment>(service)?.watch();
    loop {
        match endpoints.changed().await {
            State::Ready(assignment) => println!("{service}: {}", addresses(&assignment)),
            State::Stale(_, error) => println!("{service}: as before, but {error}"),
            State::Failed(error) => println!("{service}: no endpoints: {error}"),
            State::Pending => {}
        }
    }
}

/// The addresses of an assignment, in its order.
fn addresses(assignment: &ClusterLoadAssignment) -> String {
    let localities = assignment.endpoints.iter();
    let endpoints = localities.flat_map(|locality| &locality.lb_endpoints);
    let addresses = endpoints.filter_map(|endpoint| {
        let HostIdentifier::Endpoint(endpoint) = endpoint.host_identifier.as_ref()? else {
            return None;
        };
        match endpoint.address.as_ref()?.address.as_ref()? {
            Address::SocketAddress(socket) => match socket.port_specifier.as_ref()? {
                PortSpecifier::PortValue(port) => Some(format!("{}:{port}", socket.address)),
                PortSpecifier::NamedPort(_) => None,
            },
            Address::Pipe(pipe) => Some(format!("unix:{}", pipe.path)),
            Address::EnvoyInternalAddress(_) => None,
        }
    });
    addresses.collect::<Vec<_>>().join(" ")
}
