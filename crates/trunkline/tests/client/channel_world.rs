//! A control plane and a channel, for tests that say in YAML what is served.

use prost::Message as _;
use tonic::Status;
use trunkline::ResourceMessage;
use trunkline::channel::XdsChannel;
use trunkline::client::Client;
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline::envoy::config::listener::v3::Listener;
use trunkline::envoy::extensions::transport_sockets::tls::v3::Secret;
use trunkline::proto::text;

use super::PATIENCE;
use super::backend::{Backend, call};
use super::server::Serving;

/// See the module's documentation.
pub(crate) struct World {
    pub(crate) serving: Serving,
    pub(crate) channel: XdsChannel,
    resources: Vec<String>,
    pub(crate) secrets: Vec<Secret>,
}

/// A locality: its priority, its weight (0 for none), and its endpoints.
pub(crate) type Locality<'b> = (u32, u32, Vec<&'b Backend>);

impl World {
    pub(crate) fn start() -> Self {
        let serving = Serving::start();
        let builder = Client::builder().server(&serving.address.to_string());
        Self::of(builder.unwrap().node_id("me").build(), serving)
    }

    /// A world of a client that was made with more.
    pub(crate) fn of(client: Client, serving: Serving) -> Self {
        Self {
            serving,
            channel: XdsChannel::builder(&client, "greeter").build(),
            resources: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// A world with the cluster `c`, to which all calls go.
    pub(crate) fn with(cluster: &str, localities: &[Locality<'_>]) -> Self {
        let mut world = Self::start();
        world.cluster("c", cluster);
        world.endpoints("c", localities, "{}");
        world.routes("{match: {prefix: /}, route: {cluster: c}}", "");
        world.serve();
        world
    }

    /// The listener with these routes, and filters before the router.
    pub(crate) fn routes(&mut self, routes: &str, filters: &str) {
        self.put("listener", &format!(
            "{{'@type': type.googleapis.com/envoy.config.listener.v3.Listener, name: greeter, \
             api_listener: {{api_listener: {{\
             '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, \
             stat_prefix: s, http_filters: [{filters} {{name: router, typed_config: {{\
             '@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}}}], \
             route_config: {{name: r, virtual_hosts: [{{name: h, domains: [greeter], routes: [{routes}]}}]}}}}}}}}"
        ));
    }

    /// A cluster by EDS, with more fields.
    pub(crate) fn cluster(&mut self, name: &str, fields: &str) {
        self.put(&format!("cluster {name}"), &format!(
            "{{'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: {name}, type: EDS, \
             eds_cluster_config: {{eds_config: {{ads: {{}}}}}}, {fields}}}"
        ));
    }

    /// The endpoints of a cluster, and a policy.
    pub(crate) fn endpoints(&mut self, name: &str, localities: &[Locality<'_>], policy: &str) {
        let localities = localities.iter().enumerate();
        let localities = localities.map(|(zone, (priority, weight, backends))| {
            let ports = backends.iter().map(|of| endpoint(of.port()));
            locality(zone, *priority, *weight, ports)
        });
        self.assign(name, localities, policy);
    }

    /// The endpoints of a cluster at ports, in one locality each.
    pub(crate) fn ports(&mut self, name: &str, ports: &[(u32, u32)]) {
        let localities = ports.iter().enumerate();
        let localities = localities.map(|(zone, (priority, port))| {
            locality(zone, *priority, 1, std::iter::once(endpoint(*port)))
        });
        self.assign(name, localities, "{}");
    }

    fn assign(&mut self, name: &str, localities: impl Iterator<Item = String>, policy: &str) {
        let localities = localities.collect::<Vec<_>>().join(", ");
        self.put(
            &format!("endpoints {name}"),
            &format!(
                "{{'@type': type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, \
             cluster_name: {name}, policy: {policy}, endpoints: [{localities}]}}"
            ),
        );
    }

    /// Adds any resource.
    pub(crate) fn put(&mut self, key: &str, resource: &str) {
        let mark = format!("# {key}\n");
        self.resources.retain(|of| !of.starts_with(&mark));
        self.resources.push(format!("{mark}- {resource}\n"));
    }

    /// Serves what was said.
    pub(crate) fn serve(&self) {
        let text = format!("resources:\n{}", self.resources.concat());
        let read = text::read("world.yaml", &text, &text::Options::default());
        assert!(read.errors.is_empty(), "{:?}", read.errors);
        let messages = read.resources.iter().map(|resource| {
            let body = resource.body.clone();
            match resource.type_url.rsplit('.').next() {
                Some("Listener") => ResourceMessage::of(&Listener::decode(body).unwrap()),
                Some("Cluster") => ResourceMessage::of(&Cluster::decode(body).unwrap()),
                _ => ResourceMessage::of(&ClusterLoadAssignment::decode(body).unwrap()),
            }
        });
        let secrets = self.secrets.iter().map(ResourceMessage::of);
        let all = messages.chain(secrets);
        self.serving.server.set("test", all).unwrap();
    }

    /// Calls until a backend has been reached.
    pub(crate) async fn reach(&self, backend: &Backend) {
        let before = backend.calls();
        let reached = async {
            while backend.calls() == before {
                _ = call(&self.channel).await;
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.unwrap();
    }

    /// Calls until it fails, and returns how.
    pub(crate) async fn failure(&self) -> Status {
        let failed = async {
            loop {
                if let Err(status) = call(&self.channel).await {
                    return status;
                }
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, failed).await.unwrap()
    }
}

fn endpoint(port: u32) -> String {
    format!(
        "{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}}}}}"
    )
}

fn locality(
    zone: usize,
    priority: u32,
    weight: u32,
    endpoints: impl Iterator<Item = String>,
) -> String {
    let endpoints = endpoints.collect::<Vec<_>>().join(", ");
    let weight = match weight {
        0 => String::new(),
        weight => format!("load_balancing_weight: {weight}, "),
    };
    format!(
        "{{locality: {{zone: z{zone}}}, priority: {priority}, {weight}lb_endpoints: [{endpoints}]}}"
    )
}

/// A port where nobody listens.
pub(crate) async fn dead_port() -> u32 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port().into()
}
