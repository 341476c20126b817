//! Timeouts of a route, of a request, and of gRPC (40).

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::config::route::v3::RouteAction;

use super::{ms, of, policy, request};
use crate::json::message;
use crate::retry::{RouteTimeouts, Timeouts, grpc_timeout};

fn timeouts(action: &Value, asked: &[(&'static str, &'static str)]) -> Timeouts {
    let action: RouteAction = message("envoy.config.route.v3.RouteAction", action);
    let headers = of(asked);
    let policy = policy(&json!({"per_try_timeout": "0.9s"}));
    let of_route = RouteTimeouts::compile(&action);
    of_route.of_request(&policy, &request(&headers), Some(ms(70)), Some(ms(80)))
}

#[test]
fn d40_timeouts_of_a_route_and_of_a_request() {
    let base = Timeouts {
        response: Some(ms(15_000)),
        per_try: Some(ms(900)),
        idle: Some(ms(70)),
        stream: Some(ms(80)),
        upstream_stream: None,
        answers_no_content: false,
    };
    assert_eq!(timeouts(&json!({}), &[]), base);
    let two = json!({"timeout": "2s", "idle_timeout": "0.5s"});
    let of_two = Timeouts {
        response: Some(ms(2_000)),
        idle: Some(ms(500)),
        ..base
    };
    assert_eq!(timeouts(&two, &[]), of_two);
    // Off is none; and the time of a try then has no bound.
    let off = json!({"timeout": "0s", "idle_timeout": "0s"});
    let of_off = Timeouts {
        response: None,
        idle: None,
        ..base
    };
    assert_eq!(timeouts(&off, &[]), of_off);
    // A request says it for itself; a try that may last as long is no bound.
    for (given, response, per_try) in [
        ("901", 901, Some(900)),
        ("900", 900, None),
        ("899", 899, None),
    ] {
        let asked = [("x-envoy-upstream-rq-timeout-ms", given)];
        let expected = Timeouts {
            response: Some(ms(response)),
            per_try: per_try.map(ms),
            ..base
        };
        assert_eq!(timeouts(&json!({}), &asked), expected, "{given}");
    }
    let asked = [
        ("x-envoy-upstream-rq-per-try-timeout-ms", "30"),
        ("x-envoy-upstream-stream-duration-ms", "40"),
        ("x-envoy-upstream-rq-timeout-alt-response", "1"),
    ];
    let expected = Timeouts {
        per_try: Some(ms(30)),
        upstream_stream: Some(ms(40)),
        answers_no_content: true,
        ..base
    };
    assert_eq!(timeouts(&json!({}), &asked), expected);
}

#[test]
fn d40_a_stream_lasts_as_the_route_or_grpc_says() {
    let grpc = |timeout: &'static str| {
        [
            ("content-type", "application/grpc"),
            ("grpc-timeout", timeout),
        ]
    };
    let route = |max: &str| {
        json!({"max_stream_duration": {
            "max_stream_duration": "1s",
            "grpc_timeout_header_max": max,
            "grpc_timeout_header_offset": "0.010s",
        }})
    };
    let plain = json!({"max_stream_duration": {"max_stream_duration": "1s"}});
    for (action, asked, stream) in [
        (&plain, &[][..], Some(1_000)),
        // Without a bound for it, what gRPC asks for does not matter.
        (&plain, &grpc("100m"), Some(1_000)),
        (&route("3s"), &grpc("100m"), Some(90)),
        (&route("3s"), &grpc("5S"), Some(2_990)),
        (&route("0s"), &grpc("5S"), Some(4_990)),
        (&route("3s"), &grpc("5m"), None),
        (&route("3s"), &[("grpc-timeout", "100m")], Some(1_000)),
    ] {
        let timeouts = timeouts(action, asked);
        assert_eq!(timeouts.stream, stream.map(ms), "{action} {asked:?}");
        assert_eq!(timeouts.response, None, "the older limit is off");
    }
}

#[test]
fn d40_a_timeout_of_grpc_is_a_number_and_a_unit() {
    for (text, expected) in [
        ("1H", Some(Duration::from_secs(3_600))),
        ("2M", Some(Duration::from_secs(120))),
        ("3S", Some(Duration::from_secs(3))),
        ("4m", Some(ms(4))),
        ("5u", Some(Duration::from_micros(5))),
        ("6n", Some(Duration::from_nanos(6))),
        ("0n", Some(Duration::ZERO)),
        ("12345678S", Some(Duration::from_secs(12_345_678))),
        ("123456789S", None),
        ("S", None),
        ("", None),
        ("5", None),
        ("5s", None),
        ("+5S", None),
        ("5é", None),
    ] {
        assert_eq!(grpc_timeout(text), expected, "{text}");
    }
}

#[test]
fn d40_an_upstream_is_told_how_long_it_has() {
    let timeouts = |response: Option<u64>, per_try: Option<u64>| Timeouts {
        response: response.map(ms),
        per_try: per_try.map(ms),
        ..Timeouts::default()
    };
    for (response, per_try, passed, is_hedged, expected) in [
        (None, None, 0, false, None),
        (Some(100), None, 30, false, Some(70)),
        (Some(100), None, 130, false, Some(0)),
        (None, Some(50), 30, false, Some(50)),
        (Some(100), Some(50), 30, false, Some(50)),
        (Some(100), Some(50), 80, false, Some(20)),
        // A try that is hedged is not given up.
        (Some(100), Some(50), 30, true, Some(70)),
    ] {
        let timeouts = timeouts(response, per_try);
        let told = timeouts.expected(ms(passed), is_hedged);
        assert_eq!(told, expected.map(ms), "{timeouts:?} {passed} {is_hedged}");
    }
}
