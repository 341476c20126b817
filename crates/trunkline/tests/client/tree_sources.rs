//! What trees follow, and where they ask for it.

use trunkline::ResourceMessage;
use trunkline::client::tree::Work;
use trunkline::client::{Bootstrap, Client};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::core::v3::api_config_source::ApiType;
use trunkline::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use trunkline::envoy::config::core::v3::grpc_service::{EnvoyGrpc, TargetSpecifier};
use trunkline::envoy::config::core::v3::transport_socket::ConfigType as SocketConfig;
use trunkline::envoy::config::core::v3::{
    ApiConfigSource, ApiVersion, ConfigSource, ExtensionConfigSource, GrpcService,
    TransportSocket, TypedExtensionConfig,
};
use trunkline::envoy::config::endpoint::v3::locality_lb_endpoints::LbConfig;
use trunkline::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, LbEndpoint, LedsClusterLocalityConfig, LocalityLbEndpoints,
};
use trunkline::envoy::config::route::v3::scoped_route_configuration::key::Fragment;
use trunkline::envoy::config::route::v3::scoped_route_configuration::key::fragment::Type as FragmentKey;
use trunkline::envoy::config::route::v3::{
    ScopedRouteConfiguration, Vhds, VirtualHost, scoped_route_configuration,
};
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::http_filter::ConfigType;
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::scoped_routes::{
    ConfigSpecifier, ScopeKeyBuilder,
};
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::scoped_routes::scope_key_builder::FragmentBuilder;
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::scoped_routes::scope_key_builder::fragment_builder::header_value_extractor::ExtractType;
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::scoped_routes::scope_key_builder::fragment_builder::{
    HeaderValueExtractor, Type as FragmentType,
};
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, ScopedRds, ScopedRoutes,
};
use trunkline::envoy::extensions::transport_sockets::tls::v3::{
    CommonTlsContext, GenericSecret, SdsSecretConfig, Secret, UpstreamTlsContext, secret,
};
use trunkline::envoy::service::discovery::v3::Resource;
use trunkline::envoy::service::runtime::v3::Runtime;
use trunkline::proto::envoy::google::protobuf::value::Kind;
use trunkline::proto::envoy::google::protobuf::{Duration, Struct, Value};

use super::resources::{
    ads, any, eds_cluster, endpoints, listener, listener_with, route, routes, two_clusters,
};
use super::server::{Serving, cluster};
use super::trees::{client, ports, ready, serve, show, tree, until};

#[tokio::test]
async fn c52_a_virtual_host_on_demand_is_asked_for() {
    let mut on_demand = routes("r", &[("a.com", "a")]);
    on_demand.vhds = Some(Vhds {
        config_source: Some(ads()),
    });
    let host = VirtualHost {
        name: "r/b".into(),
        domains: vec!["b.com".into()],
        routes: vec![route("b")],
        ..VirtualHost::default()
    };
    let mut all = two_clusters();
    all[1] = ResourceMessage::of(&on_demand);
    all.push(ResourceMessage::of(&host));
    let serving = serve(all);
    let client = client(&serving);
    let snapshot = ready(&mut client.listener_for_host("l", "b.com")).await;
    assert_eq!(tree(&snapshot), "l(r(r/b.com(b(b))))");
    assert!(snapshot.error().is_none());
    let routes = &snapshot.routes()[0];
    assert_eq!(routes.virtual_host("b.com").unwrap().domains, ["b.com"]);
    assert!(routes.cluster("b").is_some());
    // Without a host there is none to ask for.
    let snapshot = ready(&mut client.listener("l")).await;
    assert_eq!(tree(&snapshot), "l(r)");
}

#[tokio::test]
async fn secrets_of_transport_sockets_are_followed() {
    let mut cluster = eds_cluster("a");
    let tls = UpstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            tls_certificate_sds_secret_configs: vec![SdsSecretConfig {
                name: "cert".into(),
                sds_config: Some(ads()),
            }],
            ..CommonTlsContext::default()
        }),
        ..UpstreamTlsContext::default()
    };
    cluster.transport_socket = Some(TransportSocket {
        name: "tls".into(),
        config_type: Some(SocketConfig::TypedConfig(any(&tls))),
    });
    let secret = Secret {
        name: "cert".into(),
        r#type: Some(secret::Type::GenericSecret(GenericSecret::default())),
    };
    let serving = serve(vec![
        ResourceMessage::of(&cluster),
        ResourceMessage::of(&endpoints("a", &[1])),
        ResourceMessage::of(&secret),
    ]);
    let client = client(&serving);
    let snapshot = ready(&mut client.cluster("a")).await;
    let secrets: Vec<_> = snapshot.secrets().collect();
    assert_eq!(secrets[0].value().unwrap().name, "cert");
}

#[tokio::test]
async fn filters_by_ecds_and_scoped_routes_are_followed() {
    let rds = ScopedRds {
        scoped_rds_config_source: Some(ads()),
        ..ScopedRds::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: "test".into(),
        http_filters: vec![HttpFilter {
            name: "f".into(),
            config_type: Some(ConfigType::ConfigDiscovery(ExtensionConfigSource {
                config_source: Some(ads()),
                type_urls: vec!["type.googleapis.com/google.protobuf.Empty".into()],
                ..ExtensionConfigSource::default()
            })),
            ..HttpFilter::default()
        }],
        route_specifier: Some(RouteSpecifier::ScopedRoutes(ScopedRoutes {
            name: "scopes".into(),
            scope_key_builder: Some(ScopeKeyBuilder {
                fragments: vec![FragmentBuilder {
                    r#type: Some(FragmentType::HeaderValueExtractor(HeaderValueExtractor {
                        name: "x-scope".into(),
                        extract_type: Some(ExtractType::Index(0)),
                        ..HeaderValueExtractor::default()
                    })),
                }],
            }),
            rds_config_source: Some(ads()),
            config_specifier: Some(ConfigSpecifier::ScopedRds(rds)),
        })),
        ..HttpConnectionManager::default()
    };
    let mut front = listener_with("l", RouteSpecifier::RouteConfig(Default::default()));
    front.api_listener.as_mut().unwrap().api_listener = Some(any(&manager));
    let scope = |name: &str, on_demand| ScopedRouteConfiguration {
        name: name.into(),
        on_demand,
        route_configuration_name: "r".into(),
        key: Some(scoped_route_configuration::Key {
            fragments: vec![Fragment {
                r#type: Some(FragmentKey::StringKey(name.into())),
            }],
        }),
        ..ScopedRouteConfiguration::default()
    };
    let filter = TypedExtensionConfig {
        name: "f".into(),
        typed_config: Some(any(&cluster("any", 1))),
    };
    let mut all = two_clusters();
    all[0] = ResourceMessage::of(&front);
    all.push(ResourceMessage::of(&scope("s1", false)));
    all.push(ResourceMessage::of(&scope("s2", true)));
    all.push(ResourceMessage::of(&filter));
    let serving = serve(all);
    let client = client(&serving);
    let snapshot = ready(&mut client.listener("l")).await;
    assert_eq!(tree(&snapshot), "l(f *(s1(r(a(a) b(b))) s2))");
    assert_eq!(snapshot.filters().count(), 1);
    assert_eq!(snapshot.scopes().len(), 2);
    assert_eq!(snapshot.routes().len(), 1);
    assert_eq!(ports(&snapshot, "a"), [1]);
}

#[tokio::test]
async fn endpoints_of_a_collection_come_and_go() {
    let name = |member: &str| format!("xdstp://x/envoy.config.endpoint.v3.LbEndpoint/a/{member}");
    let collection = name("*");
    let with_leds = ClusterLoadAssignment {
        cluster_name: "a".into(),
        endpoints: vec![LocalityLbEndpoints {
            lb_config: Some(LbConfig::LedsClusterLocalityConfig(
                LedsClusterLocalityConfig {
                    leds_config: Some(ads()),
                    leds_collection_name: collection.clone(),
                },
            )),
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    };
    let member = |of: &str| {
        ResourceMessage::of(&Resource {
            name: name(of),
            resource: Some(any(&endpoint())),
            ..Resource::default()
        })
    };
    let all = |members: &[&str]| {
        let fixed = [
            ResourceMessage::of(&eds_cluster("a")),
            ResourceMessage::of(&with_leds),
        ];
        let members = members.iter().map(|of| member(of));
        fixed.into_iter().chain(members).collect::<Vec<_>>()
    };
    let serving = serve(all(&["1"]));
    let client = client(&serving);
    let mut watch = client.cluster("a");
    let shown = |of: &trunkline::client::tree::ClusterSnapshot| {
        let endpoints = of.endpoints().unwrap();
        let members = endpoints.collection(&collection);
        let members = members.iter().filter(|member| !member.is_failed());
        members.count().to_string()
    };
    until(&mut watch, shown, "1").await;
    serving.server.set("test", all(&["1", "2"])).unwrap();
    until(&mut watch, shown, "2").await;
    serving.server.set("test", all(&["2"])).unwrap();
    until(&mut watch, shown, "1").await;
}

fn endpoint() -> LbEndpoint {
    let mut all = endpoints("a", &[1]).endpoints.remove(0).lb_endpoints;
    all.remove(0)
}

#[tokio::test]
async fn e20_a_cluster_of_the_bootstrap_is_not_asked_for() {
    let serving = serve(vec![
        ResourceMessage::of(&listener("l", "r")),
        ResourceMessage::of(&routes("r", &[("*", "fixed")])),
        ResourceMessage::of(&cluster("fixed", 7)),
    ]);
    let builder = Client::builder().server(&serving.address.to_string());
    let fixed = cluster("fixed", 1);
    let client = builder.unwrap().static_resource("fixed", &fixed).build();
    let snapshot = ready(&mut client.listener("l")).await;
    let found = snapshot.cluster("fixed").and_then(|of| of.value()).unwrap();
    assert_eq!(found.connect_timeout.as_ref().unwrap().seconds, 1);
}

/// Envoy's bootstrap with two control planes, of which the second has endpoints.
fn two_planes(first: &Serving, second: &Serving) -> Bootstrap {
    let plane = |name: &str, serving: &Serving| {
        let (host, port) = (serving.address.ip(), serving.address.port());
        format!(
            "  - name: {name}
    type: STATIC
    http2_protocol_options: {{}}
    load_assignment:
      cluster_name: {name}
      endpoints:
      - lb_endpoints:
        - endpoint: {{address: {{socket_address: {{address: {host}, port_value: {port}}}}}}}
"
        )
    };
    let text = format!(
        "dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    grpc_services: [{{envoy_grpc: {{cluster_name: one}}}}]
  cds_config: {{ads: {{}}, resource_api_version: V3}}
default_config_source:
  api_config_source:
    api_type: AGGREGATED_DELTA_GRPC
    transport_api_version: V3
    grpc_services: [{{envoy_grpc: {{cluster_name: two}}}}]
static_resources:
  clusters:
{}{}",
        plane("one", first),
        plane("two", second)
    );
    Bootstrap::from_envoy("b.yaml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// The cluster `a`, whose endpoints come from the second of [`two_planes`].
fn cluster_elsewhere() -> Cluster {
    let target = EnvoyGrpc {
        cluster_name: "two".into(),
        ..EnvoyGrpc::default()
    };
    let api = ApiConfigSource {
        api_type: ApiType::AggregatedDeltaGrpc.into(),
        transport_api_version: ApiVersion::V3.into(),
        grpc_services: vec![GrpcService {
            target_specifier: Some(TargetSpecifier::EnvoyGrpc(target)),
            ..GrpcService::default()
        }],
        ..ApiConfigSource::default()
    };
    let mut cluster = eds_cluster("a");
    cluster.eds_cluster_config.as_mut().unwrap().eds_config = Some(ConfigSource {
        config_source_specifier: Some(ConfigSourceSpecifier::ApiConfigSource(api)),
        ..ConfigSource::default()
    });
    cluster
}

#[tokio::test]
async fn e2_a_control_plane_that_cannot_be_reached_is_waited_for_so_long() {
    let mut cluster = cluster_elsewhere();
    let config = cluster.eds_cluster_config.as_mut().unwrap();
    config.eds_config.as_mut().unwrap().initial_fetch_timeout = Some(Duration {
        seconds: 0,
        nanos: 100_000_000,
    });
    let first = serve(vec![ResourceMessage::of(&cluster)]);
    let second = Serving::start();
    let bootstrap = two_planes(&first, &second);
    drop(second);
    let client = Client::builder().bootstrap(bootstrap).build();
    let mut watch = client.cluster("a");
    let snapshot = ready(&mut watch).await;
    assert_eq!(show(&snapshot.raw()), "a(a!)", "the cluster is there");
}

#[tokio::test]
async fn c14_endpoints_come_from_the_source_that_their_cluster_names() {
    let first = serve(vec![
        ResourceMessage::of(&cluster_elsewhere()),
        ResourceMessage::of(&endpoints("a", &[1])),
    ]);
    let second = serve(vec![ResourceMessage::of(&endpoints("a", &[2]))]);
    let client = Client::builder()
        .bootstrap(two_planes(&first, &second))
        .build();
    let mut watch = client.cluster("a");
    let snapshot = ready(&mut watch).await;
    assert_eq!(show(&snapshot.raw()), "a(a)");
    let found = format!("{:?}", snapshot.load_assignment().unwrap());
    assert!(found.contains("PortValue(2)"), "{found}");
}

const CLUSTERS: usize = 1_000;
const ROUTES: usize = 10_000;

/// A listener with 10 000 routes to 1 000 clusters of 10 endpoints each; those
/// of one cluster may be others.
fn large(changed: Option<u32>) -> Vec<ResourceMessage> {
    let name = |of: usize| format!("c{of:04}");
    let mut config = routes("r", &[("*", "c0000")]);
    let all = (0..ROUTES).map(|of| route(&name(of % CLUSTERS)));
    config.virtual_hosts[0].routes = all.collect();
    let mut messages = vec![
        ResourceMessage::of(&listener("l", "r")),
        ResourceMessage::of(&config),
    ];
    for of in 0..CLUSTERS {
        let mut ports: Vec<u32> = (1..=10).collect();
        if of == 500 {
            ports.extend(changed);
        }
        messages.push(ResourceMessage::of(&eds_cluster(&name(of))));
        messages.push(ResourceMessage::of(&endpoints(&name(of), &ports)));
    }
    messages
}

#[tokio::test]
async fn one_endpoint_below_ten_thousand_routes_costs_four_parts() {
    let serving = serve(large(None));
    let client = client(&serving);
    let mut watch = client.listener("l");
    let first = ready(&mut watch).await;
    assert_eq!(first.routes()[0].clusters().count(), CLUSTERS);
    let work = client.take_tree_work();
    assert_eq!((work.parts, work.snapshots), (2 * CLUSTERS + 2, 1));

    serving.server.set("test", large(Some(11))).unwrap();
    let shown =
        |of: &trunkline::client::tree::ListenerSnapshot| ports(of, "c0500").len().to_string();
    until(&mut watch, shown, "11").await;
    let expected = Work {
        parts: 4,
        entries: 32 + 32 + 1 + 1,
        snapshots: 1,
    };
    assert_eq!(client.take_tree_work(), expected);
}

#[tokio::test]
async fn layers_of_the_runtime_are_part_of_a_tree() {
    let layer = |name: &str, value: f64| Runtime {
        name: name.into(),
        layer: Some(Struct {
            fields: [(
                "key".to_owned(),
                Value {
                    kind: Some(Kind::NumberValue(value)),
                },
            )]
            .into(),
        }),
    };
    let served = |value| {
        vec![
            ResourceMessage::of(&listener("l", "r")),
            ResourceMessage::of(&routes("r", &[])),
            ResourceMessage::of(&layer("b", 1.0)),
            ResourceMessage::of(&layer("a", value)),
        ]
    };
    let serving = serve(served(1.0));
    let (host, port) = (serving.address.ip(), serving.address.port());
    let text = format!(
        "node: {{id: me}}
layered_runtime:
  layers:
  - {{name: fixed, static_layer: {{key: 0}}}}
  - {{name: base, rtds_layer: {{name: b, rtds_config: {{ads: {{}}, resource_api_version: V3}}}}}}
  - {{name: a, rtds_layer: {{rtds_config: {{ads: {{}}, resource_api_version: V3}}}}}}
dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    grpc_services: [{{envoy_grpc: {{cluster_name: one}}}}]
static_resources:
  clusters:
  - name: one
    type: STATIC
    http2_protocol_options: {{}}
    load_assignment:
      cluster_name: one
      endpoints:
      - lb_endpoints:
        - endpoint: {{address: {{socket_address: {{address: {host}, port_value: {port}}}}}}}
"
    );
    let bootstrap = Bootstrap::from_envoy("b.yaml", &text);
    let bootstrap = bootstrap.unwrap_or_else(|error| panic!("{error}"));
    let client = Client::builder().bootstrap(bootstrap).build();
    let mut watch = client.listener("l");
    let values = |of: &trunkline::client::tree::ListenerSnapshot| {
        let layers = of.runtime();
        let named = layers.iter().map(|layer| {
            let value = layer.value().unwrap();
            let fields = &value.layer.as_ref().unwrap().fields;
            match fields["key"].kind {
                Some(Kind::NumberValue(value)) => format!("{}={value}", layer.name()),
                _ => layer.name().to_owned(),
            }
        });
        named.collect::<Vec<_>>().join(" ")
    };
    let snapshot = ready(&mut watch).await;
    assert_eq!(
        values(&snapshot),
        "b=1 a=1",
        "in the order of the bootstrap"
    );
    serving.server.set("test", served(2.0)).unwrap();
    until(&mut watch, values, "b=1 a=2").await;
}

#[tokio::test]
async fn c65_csds_lists_what_a_tree_has_received() {
    let serving = serve(two_clusters());
    let client = client(&serving);
    let mut watch = client.listener("l");
    ready(&mut watch).await;
    let config = client.client_config();
    let listed = config.generic_xds_configs.iter().map(|of| {
        let kind = of.type_url.rsplit('.').next().unwrap_or_default();
        format!("{kind}/{}: {:?}", of.name, of.client_status())
    });
    let mut listed: Vec<_> = listed.collect();
    listed.sort();
    let expected = [
        "Cluster/a",
        "Cluster/b",
        "ClusterLoadAssignment/a",
        "ClusterLoadAssignment/b",
        "Listener/l",
        "RouteConfiguration/r",
    ];
    assert_eq!(listed, expected.map(|name| format!("{name}: Acked")));
}
