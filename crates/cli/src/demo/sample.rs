//! The resources of the demo: two listeners, their routes, two versions of a
//! service. One of the listeners has its virtual hosts on demand.

use std::io;
use std::path::Path;

/// The ports on loopback.
pub(super) struct Ports {
    pub(super) ingress: u16,
    pub(super) on_demand: u16,
    pub(super) v1: u16,
    pub(super) v2: u16,
}

/// Writes the resources into files of a folder. Makes the folder if it does not
/// exist.
pub(super) fn write_files(folder: &Path, ports: &Ports) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let ingress = listener("ingress", ports.ingress, "routes");
    let endpoints = endpoints("v1", ports.v1) + &endpoints("v2", ports.v2);
    let files = [
        ("listener.yaml", ingress),
        ("routes.yaml", ROUTES.to_owned()),
        ("on-demand.yaml", on_demand(ports.on_demand)),
        ("clusters.yaml", cluster("v1") + &cluster("v2")),
        ("endpoints.yaml", endpoints),
    ];

    for (file, text) in files {
        // A text that begins with a comment has the key `resources` itself.
        let text = match text.starts_with('#') {
            true => text,
            false => format!("resources:\n{text}"),
        };
        std::fs::write(folder.join(file), text)?;
    }
    Ok(())
}

/// A route configuration that has its virtual host in it.
const ROUTES: &str = r#"# Where requests go: try another cluster here, v2.
resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  virtual_hosts:
  - name: all
    domains: ["*"]
    routes:
    - match: {prefix: /}
      route: {cluster: v1}
"#;

/// A route configuration with `vhds`. Its virtual hosts are not in the one that
/// Envoy gets: it subscribes to each when it is needed.
const HOSTS: &str = r#"# Virtual hosts on demand: Envoy asks for each when the first request comes.
resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: on-demand
  vhds: {config_source: {ads: {}, resource_api_version: V3}}
  virtual_hosts:
  - name: shop
    domains: [shop.example]
    routes: [{match: {prefix: /}, route: {cluster: v1}}]
  - name: blog
    domains: [blog.example]
    routes: [{match: {prefix: /}, route: {cluster: v2}}]
  - name: tenants
    domains: ["*.tenants.example"]
    routes: [{match: {prefix: /}, route: {cluster: v2}}]
"#;

/// Writes the listener with virtual hosts on demand, after its routes.
fn on_demand(port: u16) -> String {
    HOSTS.to_owned() + &listener("on-demand", port, "on-demand")
}

/// Returns a listener that gets its route configuration, called `routes`, by
/// RDS. The listener has the filter that requests virtual hosts on demand.
fn listener(name: &str, port: u16, routes: &str) -> String {
    // Without route configurations that have `vhds` the filter does nothing.
    format!(
        r#"- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: {name}
  address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
  filter_chains:
  - filters:
    - name: http
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: {name}
        rds:
          route_config_name: {routes}
          config_source: {{ads: {{}}, resource_api_version: V3}}
        http_filters:
        - name: on_demand
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand
        - name: router
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
"#
    )
}

/// Returns a cluster that gets its endpoints by EDS.
fn cluster(name: &str) -> String {
    format!(
        r#"- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: {name}
  type: EDS
  connect_timeout: 1s
  eds_cluster_config:
    eds_config: {{ads: {{}}, resource_api_version: V3}}
"#
    )
}

/// Returns the endpoints of a cluster: one, on this port of loopback.
fn endpoints(name: &str, port: u16) -> String {
    format!(
        r#"- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: {name}
  endpoints:
  - lb_endpoints:
    - endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_store::{Files, Options};

    #[test]
    fn the_sample_is_valid_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let ports = Ports {
            ingress: 1,
            on_demand: 4,
            v1: 2,
            v2: 3,
        };
        write_files(dir.path(), &ports).unwrap();
        let loaded = Files::new([dir.path()], Options::default()).load();
        assert_eq!(loaded.errors, []);
        assert_eq!(loaded.warnings, []);
        // Three virtual hosts come out of their route configuration.
        assert_eq!(loaded.resources.len(), 11);
    }
}
