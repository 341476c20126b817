//! Retries and deadlines of the channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use trunkline::channel::XdsChannel;
use trunkline::client::Client;

use super::backend::{Backend, call, call_with};
use super::channel_world::World;

/// A world of one backend, with a route that has these fields.
fn routed(backend: &Backend, fields: &str) -> World {
    let mut world = World::with("", &[(0, 1, vec![backend])]);
    world.routes(
        &format!("{{match: {{prefix: /}}, route: {{cluster: c, {fields}}}}}"),
        "",
    );
    world.serve();
    world
}

const RETRY: &str = "retry_policy: {retry_on: 'unavailable,5xx', num_retries: 2, \
                     retry_back_off: {base_interval: 0.001s}}";

#[tokio::test]
async fn a44_a_call_is_tried_again_as_the_route_says() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&attempts);
    let backend = Backend::answering(move |number, headers| {
        if let Some(before) = headers.get("grpc-previous-rpc-attempts") {
            let before = before.to_str().unwrap().parse().unwrap();
            seen.store(before, Ordering::Relaxed);
        }
        match number % 3 {
            2 => Ok(()),
            _ => Err(Status::unavailable("not yet")),
        }
    });
    let backend = backend.await;
    let world = routed(&backend, RETRY);
    call(&world.channel).await.unwrap();
    assert_eq!(backend.calls(), 3);
    assert_eq!(attempts.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a44_only_named_codes_are_tried_again_and_so_often() {
    for (code, calls) in [(Code::Unavailable, 3), (Code::Internal, 1)] {
        let backend = Backend::answering(move |_, _| Err(Status::new(code, "no"))).await;
        let world = routed(&backend, RETRY);
        let failed = call(&world.channel).await.unwrap_err();
        assert_eq!((failed.code(), failed.message()), (code, "no"));
        assert_eq!(backend.calls(), calls, "{code:?}");
    }
}

#[tokio::test]
async fn a6_a_server_can_say_that_nothing_is_tried_again() {
    let backend = Backend::answering(|_, _| {
        let mut status = Status::unavailable("no");
        let headers = status.metadata_mut();
        headers.insert("grpc-retry-pushback-ms", "-1".parse().unwrap());
        Err(status)
    });
    let backend = backend.await;
    let world = routed(&backend, RETRY);
    call(&world.channel).await.unwrap_err();
    assert_eq!(backend.calls(), 1);
}

/// A port that accepts connections and says nothing.
async fn silent() -> (tokio::net::TcpListener, u32) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port.into())
}

#[tokio::test]
async fn a31_a_route_or_the_caller_limits_a_call() {
    let (_silent, port) = silent().await;
    let mut world = World::start();
    world.cluster("c", "");
    world.ports("c", &[(0, port)]);
    // The older limit is none of gRPC's.
    let route = |limit: &str| {
        format!("{{match: {{prefix: /}}, route: {{cluster: c, timeout: 0.001s, {limit}}}}}")
    };
    world.routes(&route(""), "");
    world.serve();
    let late = call_with(&world.channel, within(80)).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);

    // Nobody else would end this call.
    let mut world = World::start();
    world.cluster("c", "");
    world.ports("c", &[(0, port)]);
    world.routes(
        &route("max_stream_duration: {max_stream_duration: 0.05s}"),
        "",
    );
    world.serve();
    let late = call(&world.channel).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
}

/// A call that may take so many milliseconds.
fn within(millis: u64) -> Request<HealthCheckRequest> {
    let mut asked = Request::new(HealthCheckRequest::default());
    asked.set_timeout(Duration::from_millis(millis));
    asked
}

#[tokio::test]
async fn a31_a_call_that_waits_for_a_configuration_has_a_deadline() {
    let (_silent, port) = silent().await;
    let builder = Client::builder().server(&format!("127.0.0.1:{port}"));
    let client = builder.unwrap().build();
    let channel = XdsChannel::builder(&client, "greeter").build();
    let late = call_with(&channel, within(50)).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
}
