//! Routes, weights, hashes and faults of the channel, as gRPC's designs say.

use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;

use super::backend::{Backend, call, call_as, call_with};
use super::channel_world::World;

/// A world with the clusters `a` and `b`, of one backend each.
async fn two() -> (World, Backend, Backend) {
    let (a, b) = (Backend::start().await, Backend::start().await);
    let mut world = World::start();
    for (name, backend) in [("a", &a), ("b", &b)] {
        world.cluster(name, "");
        world.endpoints(name, &[(0, 0, vec![backend])], "{}");
    }
    (world, a, b)
}

#[tokio::test]
async fn a28_routes_by_path_header_and_fraction() {
    let (mut world, a, b) = two().await;
    world.routes(
        "{match: {path: /none}, redirect: {path_redirect: /x}}, \
         {match: {prefix: /, query_parameters: [{name: q, present_match: true}]}, route: {cluster: b}}, \
         {match: {prefix: /, headers: [{name: to, string_match: {exact: b}}]}, route: {cluster: b}}, \
         {match: {prefix: /, headers: [{name: to-bin, present_match: true}]}, route: {cluster: b}}, \
         {match: {prefix: /, runtime_fraction: {default_value: {numerator: 0}}}, route: {cluster: b}}, \
         {match: {safe_regex: {regex: '/grpc\\.health\\.v1\\..*'}}, route: {cluster: a}}",
        "",
    );
    world.serve();
    call(&world.channel).await.unwrap();
    let mut binary = Request::new(HealthCheckRequest::default());
    let value = tonic::metadata::MetadataValue::from_bytes(b"b");
    binary.metadata_mut().insert_bin("to-bin", value);
    call_with(&world.channel, binary).await.unwrap();
    assert_eq!((a.calls(), b.calls()), (2, 0));
    call_as(&world.channel, "to", "b").await.unwrap();
    assert_eq!((a.calls(), b.calls()), (2, 1));
}

#[tokio::test]
async fn a28_a_route_that_is_no_route_fails_its_calls() {
    let (mut world, ..) = two().await;
    world.routes("{match: {prefix: /}, redirect: {path_redirect: /x}}", "");
    world.serve();
    let refused = call(&world.channel).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(
        refused.message().contains("leads to no cluster"),
        "{refused}"
    );
}

#[tokio::test]
async fn a28_weights_share_calls() {
    let (mut world, a, b) = two().await;
    world.routes(
        "{match: {prefix: /}, route: {weighted_clusters: {clusters: [\
         {name: a, weight: 80}, {name: b, weight: 20}]}}}",
        "",
    );
    world.serve();
    for _ in 0..400 {
        call(&world.channel).await.unwrap();
    }
    // Seven standard deviations.
    assert!((264..=376).contains(&a.calls()), "{}", a.calls());
    assert_eq!(a.calls() + b.calls(), 400);
}

const FAULT: &str = "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault";

#[tokio::test]
async fn a33_faults_abort_and_delay_and_routes_say_which() {
    let (mut world, a, _) = two().await;
    let filters = format!(
        "{{name: fault, typed_config: {{'@type': {FAULT}, \
         abort: {{grpc_status: 7, percentage: {{numerator: 100}}}}}}}},"
    );
    let own =
        |fault: &str| format!("typed_per_filter_config: {{fault: {{'@type': {FAULT}, {fault}}}}}");
    let late = own("delay: {fixed_delay: 60s, percentage: {numerator: 100}}");
    let asked = own("abort: {header_abort: {}, percentage: {numerator: 100}}");
    let http = own("abort: {http_status: 503, percentage: {numerator: 100}}");
    let route = |to: &str, rest: &str| {
        format!(
            "{{match: {{prefix: /, headers: [{{name: to, string_match: {{exact: {to}}}}}]}}, \
             route: {{cluster: a}}, {rest}}}, "
        )
    };
    world.routes(
        &format!(
            "{}{}{}{}{{match: {{prefix: /}}, route: {{cluster: a}}}}",
            route("late", &late),
            route("asked", &asked),
            route("http", &http),
            route("none", &own("")),
        ),
        &filters,
    );
    world.serve();
    let code = |result: Result<(), tonic::Status>| result.unwrap_err().code();
    assert_eq!(code(call(&world.channel).await), Code::PermissionDenied);
    let unavailable = call_as(&world.channel, "to", "http").await;
    assert_eq!(code(unavailable), Code::Unavailable);
    assert_eq!(a.calls(), 0);
    call_as(&world.channel, "to", "none").await.unwrap();
    call_as(&world.channel, "to", "asked").await.unwrap();

    let mut request = Request::new(HealthCheckRequest::default());
    let headers = request.metadata_mut();
    headers.insert("to", "asked".parse().unwrap());
    headers.insert("x-envoy-fault-abort-grpc-request", "9".parse().unwrap());
    assert_eq!(
        code(call_with(&world.channel, request).await),
        Code::FailedPrecondition
    );
    let mut request = Request::new(HealthCheckRequest::default());
    request.metadata_mut().insert("to", "late".parse().unwrap());
    request.set_timeout(std::time::Duration::from_millis(50));
    assert_eq!(
        code(call_with(&world.channel, request).await),
        Code::DeadlineExceeded
    );
    assert_eq!(a.calls(), 2);
}

#[tokio::test]
async fn c54_a_route_that_goes_to_another_cluster_is_followed() {
    let (mut world, a, b) = two().await;
    for (backend, name) in [(&a, "a"), (&b, "b"), (&a, "a")] {
        world.routes(
            &format!("{{match: {{prefix: /}}, route: {{cluster: {name}}}}}"),
            "",
        );
        world.serve();
        world.reach(backend).await;
    }
}
