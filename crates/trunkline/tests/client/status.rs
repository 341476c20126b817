//! What a client says of itself: CSDS, metrics, and the status of calls.

use prost::Message as _;
use tonic::Code;
use trunkline::client::{Cause, Client, Sample, Watch};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::kind::CDS;
use trunkline::proto::envoy::envoy::admin::v3::ClientResourceStatus;
use trunkline::proto::envoy::envoy::service::status::v3::ClientStatusRequest;
use trunkline::proto::envoy::envoy::service::status::v3::client_config::GenericXdsConfig;
use trunkline::proto::envoy::envoy::service::status::v3::client_status_discovery_service_server::ClientStatusDiscoveryService;
use trunkline::proto::envoy::envoy::r#type::matcher::v3::NodeMatcher;
use trunkline::proto::envoy::google::protobuf::Any;

use super::next;
use super::scripted::{OpenStream, Scripted};
use super::server::cluster;

/// A client that watches the clusters `good` and `bad`, of which the second was
/// rejected in version 2, and `missing`, which a whole set left out.
struct Scene {
    client: Client,
    stream: OpenStream,
    watches: [Watch<Cluster>; 3],
    script: Scripted,
}

fn any(name: &str, seconds: i64) -> Any {
    Any {
        type_url: CDS.to_owned(),
        value: cluster(name, seconds).encode_to_vec(),
    }
}

/// A cluster that every client rejects: its timeout is negative.
fn bad() -> Any {
    any("bad", -1)
}

impl Scene {
    async fn set() -> Self {
        let mut script = Scripted::start().await;
        let client = Client::builder()
            .server(&script.address.to_string())
            .unwrap()
            .node_id("me")
            .target("xds:///backend")
            .state_of_the_world()
            .build();
        let names = ["good", "bad", "missing"];
        let mut watches = names.map(|name| client.subscribe::<Cluster>(name).unwrap().watch());
        let mut stream = script.stream().await;
        while stream.request().await.resource_names.len() < 3 {}

        let resources = vec![any("good", 1), any("bad", 1), any("missing", 1)];
        stream.send("1", CDS, resources).await;
        for watch in &mut watches {
            assert!(next(watch).await.value().is_some());
        }
        stream.send("2", CDS, vec![any("good", 2), bad()]).await;
        for watch in &mut watches {
            next(watch).await;
        }
        Self {
            client,
            stream,
            watches,
            script,
        }
    }
}

/// The samples of a metric: all labels but the target, and the number.
fn samples(client: &Client, name: &str) -> Vec<(Vec<String>, u64)> {
    let samples = client.metrics().into_iter();
    let samples = samples.filter(|sample| sample.name == name);
    let shown = samples.map(|Sample { labels, value, .. }| {
        let target = ("grpc.target", "xds:///backend".to_owned());
        assert_eq!(labels[0], target, "C50");
        let labels = labels.into_iter().skip(1);
        (
            labels
                .map(|(key, value)| format!("{key}={value}"))
                .collect(),
            value,
        )
    });
    shown.collect()
}

fn named<'a>(configs: &'a [GenericXdsConfig], name: &str) -> &'a GenericXdsConfig {
    configs.iter().find(|config| config.name == name).unwrap()
}

#[tokio::test]
async fn c50_c65_csds_has_a_flat_list_of_what_was_received() {
    let scene = Scene::set().await;
    let config = scene.client.client_config();
    assert_eq!(config.client_scope, "xds:///backend");
    assert_eq!(config.node.unwrap().id, "me");
    let configs = config.generic_xds_configs;
    assert_eq!(configs.len(), 3);

    let good = named(&configs, "good");
    assert_eq!(good.client_status(), ClientResourceStatus::Acked);
    assert_eq!(
        (good.version_info.as_str(), good.type_url.as_str()),
        ("2", CDS)
    );
    assert_eq!(good.xds_config, Some(any("good", 2)), "as it was received");
    assert!(good.last_updated.is_some() && good.error_state.is_none());

    let bad = named(&configs, "bad");
    assert_eq!(bad.client_status(), ClientResourceStatus::Nacked);
    assert_eq!(
        (bad.version_info.as_str(), &bad.xds_config),
        ("1", &Some(any("bad", 1)))
    );
    let error = bad.error_state.as_ref().unwrap();
    assert_eq!(error.version_info, "2", "the version that was rejected");
    assert!(error.last_update_attempt.is_some());
    assert!(
        error.details.contains("connect_timeout"),
        "{}",
        error.details
    );

    let missing = named(&configs, "missing");
    assert_eq!(missing.client_status(), ClientResourceStatus::DoesNotExist);
    assert_eq!(missing.xds_config, None);
}

#[tokio::test]
async fn c65_csds_of_one_client_takes_no_matcher() {
    let scene = Scene::set().await;
    let status = trunkline::client::ClientStatus::of(&scene.client);
    let request = |node_matchers| ClientStatusRequest {
        node_matchers,
        exclude_resource_contents: true,
        node: None,
    };
    let refused = status
        .fetch_client_status(tonic::Request::new(request(vec![NodeMatcher::default()])))
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    let answer = status
        .fetch_client_status(tonic::Request::new(request(Vec::new())))
        .await;
    let config = answer.unwrap().into_inner().config.remove(0);
    assert_eq!(config.generic_xds_configs.len(), 3);
    let bodies = config.generic_xds_configs.iter();
    assert_eq!(bodies.filter(|of| of.xds_config.is_some()).count(), 0);
}

#[tokio::test]
async fn c66_metrics_have_grpcs_names_and_labels() {
    let scene = Scene::set().await;
    let server = format!("grpc.xds.server={}", scene.script.address);
    let of_type = format!("grpc.xds.resource_type={CDS}");
    let by_server = |value| vec![(vec![server.clone(), of_type.clone()], value)];
    assert_eq!(
        samples(&scene.client, "grpc.xds_client.resource_updates_valid"),
        by_server(4)
    );
    assert_eq!(
        samples(&scene.client, "grpc.xds_client.resource_updates_invalid"),
        by_server(1)
    );
    let in_state = |state: &str| {
        let state = format!("grpc.xds.cache_state={state}");
        (
            vec!["grpc.xds.authority=#old".to_owned(), state, of_type.clone()],
            1,
        )
    };
    assert_eq!(
        samples(&scene.client, "grpc.xds_client.resources"),
        [
            in_state("acked"),
            in_state("does_not_exist"),
            in_state("nacked_but_cached")
        ]
    );

    let connected = |value| vec![(vec![server.clone()], value)];
    assert_eq!(
        samples(&scene.client, "grpc.xds_client.connected"),
        connected(1)
    );
    assert_eq!(samples(&scene.client, "grpc.xds_client.server_failure"), []);
}

#[tokio::test]
async fn e16_updates_of_a_type_are_counted_as_envoy_does() {
    let Scene {
        client,
        stream,
        watches,
        mut script,
    } = Scene::set().await;
    let server = format!("grpc.xds.server={}", script.address);
    let of_type = vec![server.clone(), format!("grpc.xds.resource_type={CDS}")];
    for (name, count) in [
        ("update_attempt", 2),
        ("update_success", 1),
        ("update_rejected", 1),
    ] {
        assert_eq!(samples(&client, name), [(of_type.clone(), count)], "{name}");
    }
    let of_server = |name: &str| samples(&client, name);
    let counts = |value| vec![(vec![server.clone()], value)];
    assert_eq!(of_server("control_plane.connected_state"), counts(1));
    assert_eq!(of_server("control_plane.rate_limit_enforced"), counts(0));
    assert_eq!(of_server("init_fetch_timeout"), counts(0));
    assert_eq!(of_server("update_failure"), []);

    // The second of these streams ends without a response.
    let away = || tonic::Status::unavailable("away");
    stream.fail(away()).await;
    script.stream().await.fail(away()).await;
    script.stream().await.request().await;
    assert_eq!(of_server("update_failure"), counts(1));
    assert_eq!(of_server("update_attempt").len(), 2);
    drop(watches);
}

#[tokio::test]
async fn c66_a_server_is_connected_again_with_its_first_response() {
    let Scene {
        client,
        stream,
        mut watches,
        mut script,
    } = Scene::set().await;
    let connected = || samples(&client, "grpc.xds_client.connected")[0].1;
    let reason = || tonic::Status::unavailable("away");
    // A stream that has had a response may end; one without is a failure.
    stream.fail(reason()).await;
    script.stream().await.fail(reason()).await;
    let mut stream = script.stream().await;
    stream.request().await;
    assert_eq!(connected(), 0, "a stream alone is no connection");
    let server = format!("grpc.xds.server={}", script.address);
    let failures = samples(&client, "grpc.xds_client.server_failure");
    assert_eq!(failures, [(vec![server], 1)]);

    stream.send("3", CDS, vec![any("good", 3)]).await;
    while next(&mut watches[0]).await.error().is_some() {}
    assert_eq!(connected(), 1);
}

#[tokio::test]
async fn c45_a_call_is_never_told_that_a_resource_does_not_exist() {
    let scene = Scene::set().await;
    let mut seen = Vec::new();
    for held in scene.client.dump() {
        let Some(error) = held.error else { continue };
        let status = scene.client.call_status(&error);
        assert_eq!(status.code(), Code::Unavailable, "{error:?}");
        assert!(status.message().starts_with(&*error.message));
        assert!(status.message().ends_with("(xDS node: me)"));
        seen.push(error.cause);
    }
    assert_eq!(seen, [Cause::Rejected, Cause::Deleted]);
}
