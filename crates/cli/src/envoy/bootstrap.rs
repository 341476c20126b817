//! A bootstrap of some parts, encoded.
//!
//! Listeners, clusters and secrets are static resources as they are. Endpoints
//! are in a cluster around them, a route configuration in a listener around it,
//! and virtual hosts in their route configuration. Bodies are written as they
//! are, as fields of encoded messages, so nothing of them is lost.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use trunkline_proto::envoy::envoy::config::bootstrap::v3::Bootstrap;
use trunkline_proto::envoy::envoy::config::bootstrap::v3::bootstrap::DynamicResources;
use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, cluster};
use trunkline_proto::envoy::envoy::config::core::v3::{
    Address, ApiConfigSource, ApiVersion, GrpcService, Node, SocketAddress, TransportSocket,
    address, api_config_source, grpc_service, socket_address, transport_socket,
};
use trunkline_proto::envoy::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use trunkline_proto::envoy::envoy::extensions::filters::http::router::v3::Router;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, http_filter,
};
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{
    CommonTlsContext, SdsSecretConfig, Secret, UpstreamTlsContext, common_tls_context, secret,
};
use trunkline_proto::envoy::google::protobuf::Any;

use super::part::{Part, Role};

/// The cluster of ADS.
const ADS_CLUSTER: &str = "the server of trunkline validate";

/// `Bootstrap.static_resources`.
const STATIC_RESOURCES: u32 = 2;
/// The fields of `StaticResources`.
const LISTENERS: u32 = 1;
const CLUSTERS: u32 = 2;
const SECRETS: u32 = 3;
/// `Cluster.load_assignment`.
const LOAD_ASSIGNMENT: u32 = 33;
/// `HttpConnectionManager.route_config`.
const ROUTE_CONFIG: u32 = 4;
/// The fields of `RouteConfiguration`.
const ROUTES_NAME: u32 = 1;
const VIRTUAL_HOSTS: u32 = 2;
const VALIDATE_CLUSTERS: u32 = 7;

/// Encodes a bootstrap of some parts, in their order. A cluster that a part
/// refers to and that is not among them is added without endpoints: other
/// checks find dangling references.
pub(super) fn encode_bootstrap(parts: &[&Part]) -> Vec<u8> {
    let mut static_resources = Statics::default();
    for part in parts {
        static_resources.add_part(part);
    }
    static_resources.add_missing_clusters(parts);
    static_resources.add_routes();
    put(
        &mut static_resources.bytes,
        CLUSTERS,
        &static_cluster(ADS_CLUSTER),
    );

    let node = Node {
        id: "trunkline-validate".to_owned(),
        cluster: "trunkline-validate".to_owned(),
        ..Node::default()
    };
    let mut bytes = Bootstrap {
        node: Some(node),
        dynamic_resources: Some(DynamicResources {
            ads_config: Some(ads_source()),
            ..DynamicResources::default()
        }),
        ..Bootstrap::default()
    }
    .encode_to_vec();
    put(&mut bytes, STATIC_RESOURCES, &static_resources.bytes);
    bytes
}

/// Returns ADS from a cluster without endpoints. Parts refer to it, but Envoy
/// fetches nothing when it validates. It is delta, which VHDS needs.
fn ads_source() -> ApiConfigSource {
    let envoy_grpc = grpc_service::EnvoyGrpc {
        cluster_name: ADS_CLUSTER.to_owned(),
        ..grpc_service::EnvoyGrpc::default()
    };
    let service = GrpcService {
        target_specifier: Some(grpc_service::TargetSpecifier::EnvoyGrpc(envoy_grpc)),
        ..GrpcService::default()
    };
    ApiConfigSource {
        api_type: api_config_source::ApiType::DeltaGrpc.into(),
        transport_api_version: ApiVersion::V3.into(),
        grpc_services: vec![service],
        ..ApiConfigSource::default()
    }
}

/// Returns the name of the listener around a route configuration.
pub(super) fn routes_listener(name: &str) -> String {
    format!("routes {name}")
}

/// Static resources that are being encoded.
#[derive(Default)]
struct Statics<'a> {
    bytes: Vec<u8>,
    /// Route configurations by name, with the virtual hosts that are known.
    routes: BTreeMap<&'a str, Vec<u8>>,
}

impl<'a> Statics<'a> {
    /// Adds a part. Route configurations and virtual hosts are only collected,
    /// for [`Self::add_routes`].
    fn add_part(&mut self, part: &'a Part) {
        match part.role {
            Role::Listener => put(&mut self.bytes, LISTENERS, &part.body),
            Role::Cluster => put(&mut self.bytes, CLUSTERS, &part.body),
            Role::Endpoints => {
                let mut cluster = static_cluster(&format!("endpoints {}", part.name()));
                put(&mut cluster, LOAD_ASSIGNMENT, &part.body);
                put(&mut self.bytes, CLUSTERS, &cluster);
            }
            Role::Secret => {
                put(&mut self.bytes, SECRETS, &part.body);
                if let Some(cluster) = encode_secret_user(part) {
                    put(&mut self.bytes, CLUSTERS, &cluster);
                }
            }
            Role::Routes => {
                self.routes.insert(part.name(), routes_start(&part.body));
            }

            // Its name is that of its route configuration, a slash, and its own.
            Role::VirtualHost => {
                let routes_name = part
                    .name()
                    .rsplit_once('/')
                    .map_or("", |(routes, _)| routes);
                let routes = self.routes.entry(routes_name).or_insert_with(|| {
                    let mut body = Vec::new();
                    put(&mut body, ROUTES_NAME, routes_name.as_bytes());
                    routes_start(&body)
                });
                put(routes, VIRTUAL_HOSTS, &part.body);
            }
        }
    }

    /// Adds an empty cluster for each cluster that a part refers to and that is
    /// not a part itself.
    fn add_missing_clusters(&mut self, parts: &[&Part]) {
        let present_names = parts.iter().filter(|part| part.role == Role::Cluster);
        let present_names: BTreeSet<&str> = present_names.map(|part| part.name()).collect();
        let referenced_names = parts.iter().flat_map(|part| &part.clusters);
        let referenced_names: BTreeSet<&str> = referenced_names.map(String::as_str).collect();
        for name in referenced_names.difference(&present_names) {
            put(&mut self.bytes, CLUSTERS, &static_cluster(name));
        }
    }

    /// Adds a listener around each route configuration.
    fn add_routes(&mut self) {
        for (name, routes) in std::mem::take(&mut self.routes) {
            let listener = encode_routes_listener(name, &routes);
            put(&mut self.bytes, LISTENERS, &listener);
        }
    }
}

/// Appends a field that is a message, or a text.
fn put(output: &mut Vec<u8>, number: u32, value: &[u8]) {
    encode_key(number, WireType::LengthDelimited, output);
    encode_varint(value.len() as u64, output);
    output.extend_from_slice(value);
}

/// Encodes a route configuration, for which clusters need not exist unless it
/// says so: that is the default of RDS, and not of routes in a listener.
fn routes_start(body: &[u8]) -> Vec<u8> {
    let mut routes = Vec::new();
    // A `BoolValue` that is false. What the body says comes later, and counts.
    put(&mut routes, VALIDATE_CLUSTERS, &[]);
    routes.extend_from_slice(body);
    routes
}

/// Encodes a static cluster without endpoints.
fn static_cluster(name: &str) -> Vec<u8> {
    make_static_cluster(name).encode_to_vec()
}

/// Makes a static cluster without endpoints.
fn make_static_cluster(name: &str) -> Cluster {
    let discovery = cluster::DiscoveryType::Static.into();
    Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(cluster::ClusterDiscoveryType::Type(discovery)),
        ..Cluster::default()
    }
}

/// Encodes a cluster that uses a secret, since Envoy checks the contents of a
/// secret only where it is used. Returns `None` if the secret is of a kind that
/// no cluster can use.
fn encode_secret_user(part: &Part) -> Option<Vec<u8>> {
    let secret = Secret::decode(part.body.clone()).ok()?;
    let secret_config = SdsSecretConfig {
        name: part.name().to_owned(),
        ..SdsSecretConfig::default()
    };

    let mut context = CommonTlsContext::default();
    match secret.r#type? {
        secret::Type::TlsCertificate(_) => {
            context.tls_certificate_sds_secret_configs = vec![secret_config]
        }
        secret::Type::ValidationContext(_) => {
            let context_type =
                common_tls_context::ValidationContextType::ValidationContextSdsSecretConfig(
                    secret_config,
                );
            context.validation_context_type = Some(context_type);
        }
        _ => return None,
    }

    let tls = UpstreamTlsContext {
        common_tls_context: Some(context),
        ..UpstreamTlsContext::default()
    };
    let cluster = Cluster {
        transport_socket: Some(TransportSocket {
            name: "envoy.transport_sockets.tls".to_owned(),
            config_type: Some(transport_socket::ConfigType::TypedConfig(any(
                "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
                tls.encode_to_vec(),
            ))),
        }),
        ..make_static_cluster(&format!("secret {}", part.name()))
    };
    Some(cluster.encode_to_vec())
}

/// Encodes a listener with an encoded route configuration inside.
fn encode_routes_listener(name: &str, routes: &[u8]) -> Vec<u8> {
    let router = HttpFilter {
        name: "envoy.filters.http.router".to_owned(),
        config_type: Some(http_filter::ConfigType::TypedConfig(any(
            "envoy.extensions.filters.http.router.v3.Router",
            Router::default().encode_to_vec(),
        ))),
        ..HttpFilter::default()
    };
    let mut manager = HttpConnectionManager {
        stat_prefix: "routes".to_owned(),
        http_filters: vec![router],
        ..HttpConnectionManager::default()
    }
    .encode_to_vec();
    put(&mut manager, ROUTE_CONFIG, routes);

    let filter = Filter {
        name: "envoy.filters.network.http_connection_manager".to_owned(),
        config_type: Some(filter::ConfigType::TypedConfig(any(
            "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            manager,
        ))),
    };

    let listener = Listener {
        name: routes_listener(name),
        address: Some(any_loopback_port()),
        filter_chains: vec![FilterChain {
            filters: vec![filter],
            ..FilterChain::default()
        }],
        ..Listener::default()
    };
    listener.encode_to_vec()
}

/// Returns the address of loopback with port 0, which several listeners may
/// have.
fn any_loopback_port() -> Address {
    Address {
        address: Some(address::Address::SocketAddress(SocketAddress {
            address: "127.0.0.1".to_owned(),
            port_specifier: Some(socket_address::PortSpecifier::PortValue(0)),
            ..SocketAddress::default()
        })),
    }
}

/// Wraps an encoded message, given its full name.
fn any(message: &str, value: Vec<u8>) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{message}"),
        value,
    }
}
