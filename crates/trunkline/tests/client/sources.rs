//! Which control plane a client asks for what, by its bootstrap.

use std::net::SocketAddr;

use trunkline::client::{
    Bootstrap, Client, ClientBuilder, ConfigSource, Query, SourceError, Specifier, State,
};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline::kind::{CDS, EDS};

use super::next;
use super::scripted::Scripted;
use super::server::{Serving, cluster};

/// Envoy's bootstrap with the clusters `one` and `two` at these addresses, and
/// these fields beside them.
fn bootstrap(one: SocketAddr, two: SocketAddr, fields: &str) -> Bootstrap {
    let cluster = |name: &str, address: SocketAddr| {
        let (host, port) = (address.ip(), address.port());
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
        "{fields}\nstatic_resources:\n  clusters:\n{}{}",
        cluster("one", one),
        cluster("two", two)
    );
    Bootstrap::from_envoy("b.yaml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// A source of Envoy's bootstrap that asks a cluster.
fn asks(cluster: &str) -> String {
    format!(
        "api_config_source: {{api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, \
         grpc_services: [{{envoy_grpc: {{cluster_name: {cluster}}}}}]}}"
    )
}

fn build(bootstrap: Bootstrap) -> Client {
    ClientBuilder::default().bootstrap(bootstrap).build()
}

#[tokio::test]
async fn c10_e13_a_name_comes_from_the_source_of_its_authority() {
    let name = |authority: &str| format!("xdstp://{authority}/envoy.config.cluster.v3.Cluster/a");
    let names = ["one", "other"].map(name);
    let with = |seconds| {
        Serving::start_with(|serving| {
            let all = names.each_ref().map(|name| (name.as_str(), seconds));
            serving.set(&all);
        })
    };
    let (one, two) = (with(1), with(2));
    let fields = format!(
        "node: {{id: me}}\nconfig_sources:\n- authorities: [{{name: one}}]\n  {}\ndefault_config_source: {{{}}}",
        asks("one"),
        asks("two")
    );
    let client = build(bootstrap(one.address, two.address, &fields));
    for (name, seconds) in names.iter().zip([1, 2]) {
        let mut watch = client.subscribe::<Cluster>(name).unwrap().watch();
        let state = next(&mut watch).await;
        let timeout = state.value().unwrap().connect_timeout.unwrap();
        assert_eq!(timeout.seconds, seconds, "{name}");
    }
}

#[tokio::test]
async fn c8_an_authority_that_the_bootstrap_does_not_know_is_an_error() {
    let one = Serving::start();
    let fields = format!(
        "node: {{id: me}}\nconfig_sources:\n- authorities: [{{name: one}}]\n  {}",
        asks("one")
    );
    let client = build(bootstrap(one.address, one.address, &fields));
    let unknown = "xdstp://unknown/envoy.config.cluster.v3.Cluster/a";
    let refused = client.subscribe::<Cluster>(unknown).map(drop);
    assert_eq!(refused, Err(SourceError::NoAuthority("unknown".to_owned())));
}

#[tokio::test]
async fn c14_self_is_the_source_of_the_resource_that_says_it() {
    let mut script = Scripted::start().await;
    let client = Client::builder()
        .server(&script.address.to_string())
        .unwrap()
        .state_of_the_world()
        .build();
    let mut watch = client.subscribe::<Cluster>("a").unwrap().watch();
    let mut stream = script.stream().await;
    stream.request().await;
    let body = prost::Message::encode_to_vec(&cluster("a", 1));
    let any = trunkline::proto::envoy::google::protobuf::Any {
        type_url: CDS.to_owned(),
        value: body,
    };
    stream.send("1", CDS, vec![any]).await;
    let state = next(&mut watch).await;

    let query = Query::<ClusterLoadAssignment>::name("a")
        .from_source(ConfigSource::from(Specifier::SelfSource));
    let refused = client.subscribe(query.clone()).map(drop);
    assert_eq!(refused, Err(SourceError::NoParent));
    let of_cluster = query.with_parent(state.value().unwrap());
    let _endpoints = client.subscribe(of_cluster).unwrap();
    // The same stream asks for it.
    while stream.request().await.type_url != EDS {}
}

#[tokio::test]
async fn all_clusters_are_the_collection_that_the_bootstrap_names() {
    let collection = "xdstp://one/envoy.config.cluster.v3.Cluster/own";
    let names = ["a", "b"].map(|name| format!("{collection}/{name}"));
    let one = Serving::start_with(|serving| {
        let elsewhere = "xdstp://one/envoy.config.cluster.v3.Cluster/others/c";
        serving.set(&[(&names[0], 1), (&names[1], 1), (elsewhere, 1)]);
    });
    let fields = format!(
        "node: {{id: me}}\ndynamic_resources: {{cds_resources_locator: \"{collection}/*\"}}\n\
         config_sources:\n- authorities: [{{name: one}}]\n  {}",
        asks("one")
    );
    let client = build(bootstrap(one.address, one.address, &fields));
    let subscription = client.subscribe(Query::<Cluster>::all()).unwrap();
    let complete = tokio::time::timeout(super::PATIENCE, subscription.complete());
    complete.await.unwrap();
    let held = client.dump().into_iter();
    // The static clusters of the bootstrap are beside it.
    let held = held.filter(|held| held.name.xdstp().is_some());
    let held: Vec<_> = held.map(|held| held.name.to_string()).collect();
    assert_eq!(held, names);
}

/// Puts a file of one cluster in its place by a move. As in many files for
/// Envoy, only the cluster says its type.
fn write_cluster(path: &std::path::Path, timeout: &str) {
    let text = format!(
        "version_info: '{timeout}'\nresources:\n- '@type': {CDS}\n  name: a\n  \
         connect_timeout: {timeout}\n"
    );
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, path).unwrap();
}

fn seconds(state: &State<Cluster>) -> Option<i64> {
    let timeout = state.value()?.connect_timeout?;
    Some(timeout.seconds)
}

#[tokio::test]
async fn e19_a_file_is_a_source_and_its_last_good_contents_stay() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cds.yaml");
    write_cluster(&path, "1s");
    let fields = format!(
        "dynamic_resources:\n  cds_config: {{path_config_source: {{path: {}}}}}",
        path.display()
    );
    let client = build(bootstrap(nobody, nobody, &fields));
    let mut watch = client.subscribe::<Cluster>("a").unwrap().watch();
    assert_eq!(seconds(&next(&mut watch).await), Some(1));
    write_cluster(&path, "2s");
    assert_eq!(seconds(&next(&mut watch).await), Some(2));

    write_cluster(&path, "soon");
    let state = next(&mut watch).await;
    assert_eq!(seconds(&state), Some(2), "{state:?}");
    assert!(state.error().is_some(), "{state:?}");
    write_cluster(&path, "3s");
    while seconds(&next(&mut watch).await) != Some(3) {}
}

#[tokio::test]
async fn a_source_can_be_polled() {
    let serving = Serving::start_with(|serving| serving.set(&[("a", 1)]));
    let fields = "dynamic_resources:\n  cds_config: {api_config_source: {api_type: REST, \
                  transport_api_version: V3, cluster_names: [one], refresh_delay: 0.05s}}";
    let client = build(bootstrap(serving.address, serving.address, fields));
    let mut watch = client.subscribe::<Cluster>("a").unwrap().watch();
    assert_eq!(seconds(&next(&mut watch).await), Some(1));
    serving.set(&[("a", 2)]);
    assert_eq!(seconds(&next(&mut watch).await), Some(2));
}
