//! Stateful sessions: cookies that keep calls at an endpoint (A55) and in a
//! cluster (A60).

use tonic::Request;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use trunkline::channel::XdsChannel;

use super::PATIENCE;
use super::backend::Backend;
use super::channel_world::World;

const FILTER: &str = "{name: session, typed_config: {'@type': \
    type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession, \
    session_state: {name: cookie, typed_config: {'@type': \
    type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState, \
    cookie: {name: kept, path: /, ttl: 120s}}}}},";

/// A call with a cookie; returns the cookie that the reply sets.
async fn call(channel: &XdsChannel, cookie: Option<&str>) -> Option<String> {
    let mut request = Request::new(HealthCheckRequest::default());
    if let Some(cookie) = cookie {
        request
            .metadata_mut()
            .insert("cookie", cookie.parse().unwrap());
    }
    let mut health = HealthClient::new(channel.clone());
    let called = tokio::time::timeout(PATIENCE, health.check(request)).await;
    let reply = called.expect("no call hangs").unwrap();
    let set = reply.metadata().get("set-cookie")?.to_str().unwrap();
    let (pair, attributes) = set.split_once("; ").unwrap();
    assert_eq!(attributes, "Max-Age=120; Path=/; HttpOnly");
    Some(pair.to_owned())
}

async fn three() -> [Backend; 3] {
    [
        Backend::start().await,
        Backend::start().await,
        Backend::start().await,
    ]
}

#[tokio::test]
async fn a55_a_cookie_keeps_calls_at_an_endpoint_until_it_is_gone() {
    let all = three().await;
    let [a, b, c] = &all;
    let mut world = World::start();
    world.cluster("c", "");
    world.endpoints("c", &[(0, 1, vec![a, b, c])], "{}");
    world.routes("{match: {prefix: /}, route: {cluster: c}}", FILTER);
    world.serve();
    for backend in &all {
        world.reach(backend).await;
    }
    let cookie = call(&world.channel, None).await.expect("a new session");
    let before = all.each_ref().map(Backend::calls);
    for _ in 0..12 {
        assert_eq!(call(&world.channel, Some(&cookie)).await, None);
    }
    let after = all.each_ref().map(Backend::calls);
    let mut grown: Vec<usize> = after.iter().zip(before).map(|(a, b)| a - b).collect();
    let kept = grown
        .iter()
        .position(|calls| *calls == 12)
        .expect("one had all");
    grown.sort_unstable();
    assert_eq!(grown, [0, 0, 12]);
    // Without its endpoint the session moves to another one.
    let others: Vec<_> = (0..3).filter(|of| *of != kept).map(|of| &all[of]).collect();
    world.endpoints("c", &[(0, 1, others)], "{}");
    world.serve();
    let moved = async {
        loop {
            if let Some(moved) = call(&world.channel, Some(&cookie)).await {
                return moved;
            }
        }
    };
    let moved = tokio::time::timeout(PATIENCE, moved).await.unwrap();
    assert_ne!(moved, cookie);
    assert_eq!(call(&world.channel, Some(&moved)).await, None);
}

#[tokio::test]
async fn a55_a_route_may_have_no_sessions() {
    let all = three().await;
    let mut world = World::start();
    world.cluster("c", "");
    world.endpoints("c", &[(0, 1, all.iter().collect())], "{}");
    world.routes(
        "{match: {prefix: /}, route: {cluster: c}, typed_per_filter_config: {session: {'@type': \
         type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute, \
         disabled: true}}}",
        FILTER,
    );
    world.serve();
    assert_eq!(call(&world.channel, None).await, None);
}

#[tokio::test]
async fn a60_a_cookie_keeps_calls_in_one_of_weighted_clusters() {
    let [a, b, _] = three().await;
    let mut world = World::start();
    for (name, backend) in [("a", &a), ("b", &b)] {
        world.cluster(name, "");
        world.endpoints(name, &[(0, 1, vec![backend])], "{}");
    }
    world.routes(
        "{match: {prefix: /}, route: {weighted_clusters: {clusters: [\
         {name: a, weight: 50}, {name: b, weight: 50}]}}}",
        FILTER,
    );
    world.serve();
    let cookie = call(&world.channel, None).await.expect("a new session");
    let (of_a, of_b) = (a.calls(), b.calls());
    for _ in 0..20 {
        assert_eq!(call(&world.channel, Some(&cookie)).await, None);
    }
    let grown = [a.calls() - of_a, b.calls() - of_b];
    assert!(grown == [20, 0] || grown == [0, 20], "{grown:?}");
}
