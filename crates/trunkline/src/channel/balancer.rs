//! Which endpoint of a cluster a call goes to: round robin over the healthy
//! ones of the first priority that has any it can reach.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::client::conn::http2::SendRequest;
use tonic::body::Body;
use trunkline_proto::envoy::envoy::config::core::v3::socket_address::PortSpecifier;
use trunkline_proto::envoy::envoy::config::core::v3::{HealthStatus, address};
use trunkline_proto::envoy::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use trunkline_proto::envoy::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};

use super::subchannel::{Link, Pool, Subchannel};

/// The endpoints of a cluster.
#[derive(Debug, Default)]
pub(super) struct Balancer {
    /// By priority, the best first. None of them is empty.
    priorities: Vec<Vec<Arc<Subchannel>>>,
    next: AtomicUsize,
}

/// Where a call goes.
#[derive(Debug)]
pub(super) enum Pick {
    /// To this connection.
    Ready(SendRequest<Body>),
    /// Nowhere yet: connections are being made.
    Wait,
    /// Nowhere, because of this.
    Failed(Arc<str>),
}

impl Balancer {
    /// The endpoints of assignments, those of each after those of the one before
    /// in priority: a cluster has one, an aggregate cluster that of each leaf.
    pub(super) fn new<'a>(
        assignments: impl IntoIterator<Item = &'a ClusterLoadAssignment>,
        pool: &Pool,
    ) -> Self {
        let mut priorities = Vec::new();
        for assignment in assignments {
            let mut by_priority: BTreeMap<u32, Vec<Arc<Subchannel>>> = BTreeMap::new();
            for locality in &assignment.endpoints {
                let healthy = locality.lb_endpoints.iter().filter(|e| is_healthy(e));
                let reached = healthy.filter_map(socket);
                let subchannels = reached.map(|address| pool.subchannel(address));
                let of = by_priority.entry(locality.priority).or_default();
                of.extend(subchannels);
            }
            priorities.extend(by_priority.into_values().filter(|of| !of.is_empty()));
        }
        Self {
            priorities,
            next: AtomicUsize::new(0),
        }
    }

    /// Picks a connection. A priority whose endpoints all fail gives way to the
    /// next; one that is being connected to does not.
    pub(super) fn pick(&self) -> Pick {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let mut failed: Arc<str> = "it has no healthy endpoint".into();
        for endpoints in &self.priorities {
            let mut is_connecting = false;
            for step in 0..endpoints.len() {
                let index = turn.wrapping_add(step) % endpoints.len();
                match &*endpoints[index].link().borrow() {
                    Link::Ready(sender) if !sender.is_closed() => {
                        return Pick::Ready(sender.clone());
                    }
                    Link::Ready(_) | Link::Connecting => is_connecting = true,
                    Link::Failed(error) => failed = Arc::clone(error),
                }
            }
            if is_connecting {
                return Pick::Wait;
            }
        }
        Pick::Failed(failed)
    }

    /// The connections, for a call that waits for any of them.
    pub(super) fn subchannels(&self) -> impl Iterator<Item = &Arc<Subchannel>> {
        self.priorities.iter().flatten()
    }
}

/// Whether calls are sent to an endpoint: all that nobody says is unhealthy.
fn is_healthy(endpoint: &LbEndpoint) -> bool {
    matches!(
        endpoint.health_status(),
        HealthStatus::Unknown | HealthStatus::Healthy
    )
}

/// The address of an endpoint, if it is an IP address and a port.
fn socket(endpoint: &LbEndpoint) -> Option<SocketAddr> {
    let Some(HostIdentifier::Endpoint(endpoint)) = &endpoint.host_identifier else {
        return None;
    };
    let Some(address::Address::SocketAddress(socket)) = &endpoint.address.as_ref()?.address else {
        return None;
    };
    let ip: IpAddr = socket.address.parse().ok()?;
    match socket.port_specifier {
        Some(PortSpecifier::PortValue(port)) => Some(SocketAddr::new(ip, port.try_into().ok()?)),
        _ => None,
    }
}
