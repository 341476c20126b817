//! The configuration of Envoy: its bootstrap, a listener, and the clusters of
//! the requested hosts.
//!
//! Hosts, their domains and their clusters are named as
//! `trunkline bench --write` names them; if that changes, requests here are
//! answered with 404 or 503 and the trial says so.

use std::fmt::Write as _;
use std::net::SocketAddr;

/// Hosts that share a cluster.
const EACH_CLUSTER: usize = 10;
/// Hosts that share a namespace.
const EACH_NAMESPACE: usize = 1000;

/// Which hosts there are, and which of them have a backend: those of some
/// clusters, spread over all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hosts {
    pub(super) all: usize,
    pub(super) clusters: usize,
}

impl Hosts {
    /// From the cluster that is requested to the next one, counted in hosts.
    fn step(self) -> usize {
        (self.all / self.clusters / EACH_CLUSTER).max(1) * EACH_CLUSTER
    }

    /// Those that have a backend: first one of each cluster, then another of
    /// each.
    pub(super) fn with_backend(self) -> Vec<String> {
        let hosts = (0..EACH_CLUSTER).flat_map(|nth| {
            let clusters = 0..self.clusters;
            clusters.map(move |cluster| cluster * self.step() + nth)
        });
        hosts.map(domain).collect()
    }

    /// So many that have none, spread over all.
    pub(super) fn without_backend(self, count: usize) -> Vec<String> {
        let has = |host: &usize| {
            let (cluster, at) = (host / self.step(), host % self.step());
            at < EACH_CLUSTER && cluster < self.clusters
        };
        let step = (self.all / (2 * count)).max(1);
        let hosts = (0..self.all).step_by(step).filter(|host| !has(host));
        hosts.take(count).map(domain).collect()
    }

    /// The clusters of those that have one.
    fn cluster_names(self) -> impl Iterator<Item = String> {
        let first = (0..self.clusters).map(move |cluster| cluster * self.step());
        first.map(|host| {
            let (cluster, namespace) = (host / EACH_CLUSTER, host / EACH_NAMESPACE);
            format!("outbound|8080||app-{cluster:07}.ns-{namespace:04}")
        })
    }

    /// A listener and clusters, as a file of resources.
    pub(super) fn resources(self, listen: SocketAddr, backend: SocketAddr) -> String {
        let address = address(listen);
        let mut text = format!(
            r#"resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: ingress
  address: {address}
  filter_chains:
  - filters:
    - name: envoy.filters.network.http_connection_manager
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: ingress
        rds: {{route_config_name: bench, config_source: {{ads: {{}}, resource_api_version: V3}}}}
        http_filters:
        - name: envoy.filters.http.on_demand
          typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand}}
        - name: envoy.filters.http.router
          typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
"#
        );
        let backend = self::address(backend);
        for name in self.cluster_names() {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                r#"- {{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: "{name}", type: STATIC, connect_timeout: 1s, load_assignment: {{cluster_name: "{name}", endpoints: [{{lb_endpoints: [{{endpoint: {{address: {backend}}}}}]}}]}}}}"#
            );
        }
        text
    }
}

/// The domain by which a host is requested.
fn domain(host: usize) -> String {
    format!("svc-{host:07}.ns-{:04}.example.com", host / EACH_NAMESPACE)
}

fn address(at: SocketAddr) -> String {
    format!(
        "{{socket_address: {{address: {}, port_value: {}}}}}",
        at.ip(),
        at.port()
    )
}

/// How Envoy finds the server.
pub(super) fn bootstrap(admin: SocketAddr, xds: SocketAddr) -> String {
    let (admin, xds) = (address(admin), address(xds));
    format!(
        r#"node: {{id: trial, cluster: trial}}
admin: {{address: {admin}}}
dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    set_node_on_first_message_only: true
    grpc_services: [{{envoy_grpc: {{cluster_name: trunkline}}}}]
  lds_config: {{ads: {{}}, resource_api_version: V3}}
  cds_config: {{ads: {{}}, resource_api_version: V3}}
static_resources:
  clusters:
  - name: trunkline
    type: STATIC
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{http2_protocol_options: {{}}}}
    load_assignment: {{cluster_name: trunkline, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {xds}}}}}]}}]}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: Hosts = Hosts {
        all: 1_000_000,
        clusters: 120,
    };

    #[test]
    fn hosts_with_a_backend_are_spread_and_differ() {
        let hosts = MILLION.with_backend();
        let mut different = hosts.clone();
        different.sort();
        different.dedup();
        assert_eq!((hosts.len(), different.len()), (1200, 1200));
        assert_eq!(hosts[1], "svc-0008330.ns-0008.example.com");
        let names: Vec<_> = MILLION.cluster_names().take(2).collect();
        assert_eq!(names[1], "outbound|8080||app-0000833.ns-0008");
    }

    #[test]
    fn the_others_are_others() {
        for hosts in [
            MILLION,
            Hosts {
                all: 2000,
                clusters: 4,
            },
        ] {
            let others = hosts.without_backend(100);
            let with = hosts.with_backend();
            assert_eq!(others.len(), 100);
            assert!(others.iter().all(|host| !with.contains(host)));
        }
    }
}
