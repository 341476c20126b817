//! Conditions, timeouts and attempts, at their bounds (40-45).

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_proto::acceptance::Place;
use trunkline_proto::envoy::envoy::config::route::v3::{RetryPolicy as PolicyMessage, RouteAction};

use super::{
    Conditions, Exchange, Reply, Reset, RetryContext, RetryPolicy, RetryState, RetryVerdict,
    RouteTimeouts, Step, Timeouts, grpc_timeout, remove_directions,
};
use crate::findings::Findings;
use crate::headers::Headers;
use crate::json::message;
use crate::request::Request;

fn policy(json: &Value) -> RetryPolicy {
    let message: PolicyMessage = message("envoy.config.route.v3.RetryPolicy", json);
    let mut findings = Findings::default();
    let policy = RetryPolicy::compile(&message, &Place::ROOT, &mut findings);
    findings.finish(policy).expect("a policy")
}

fn of(lines: &[(&'static str, &'static str)]) -> Headers {
    lines.iter().copied().collect()
}

fn request(headers: &Headers) -> Request<'_> {
    Request {
        method: "GET",
        scheme: "http",
        authority: "a.test",
        path: "/",
        headers,
    }
}

const NOTHING: RetryContext = RetryContext {
    random: 0,
    unix: Duration::ZERO,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn d41_statuses_are_covered_by_their_words() {
    for (words, covered) in [
        ("5xx", &[500, 501, 502, 504, 505, 599][..]),
        ("gateway-error", &[502, 503, 504]),
        ("retriable-4xx", &[409]),
        ("retriable-4xx,gateway-error", &[409, 502, 503, 504]),
        ("reset,connect-failure,refused-stream", &[]),
        ("unknown", &[]),
    ] {
        let conditions = Conditions::parse(words);
        for status in [
            200, 404, 408, 409, 410, 499, 500, 501, 502, 503, 504, 505, 599, 600,
        ] {
            let expected = covered.contains(&status) || (words == "5xx" && status == 503);
            assert_eq!(
                conditions.covers_status(status),
                expected,
                "{words} {status}"
            );
        }
    }
    assert!(Conditions::parse("").is_empty() && !Conditions::parse(" reset ").is_empty());
}

#[test]
fn d41_grpc_statuses_are_covered_by_their_words() {
    for (word, code) in [
        ("cancelled", "1"),
        ("deadline-exceeded", "4"),
        ("resource-exhausted", "8"),
        ("internal", "13"),
        ("unavailable", "14"),
    ] {
        let conditions = Conditions::parse(word);
        for status in ["0", "1", "4", "8", "13", "14", "2"] {
            let response = of(&[("grpc-status", status)]);
            assert_eq!(
                conditions.covers_grpc(&response),
                status == code,
                "{word} {status}"
            );
        }
        assert!(!conditions.covers_grpc(&Headers::new()));
    }
}

#[test]
fn d42_d43_a_request_may_say_what_is_tried_again_and_how_often() {
    let judge = |policy: &RetryPolicy,
                 asked: &[(&'static str, &'static str)],
                 status: u16,
                 response: &[(&'static str, &'static str)]| {
        let headers = of(asked);
        let mut state = RetryState::new(policy, &request(&headers));
        let response = of(response);
        let mut verdicts = (0..9).map(|_| state.on_response(status, &response, &NOTHING));
        let retries = verdicts
            .by_ref()
            .take_while(|verdict| matches!(verdict, RetryVerdict::Retry(_)));
        (
            retries.count(),
            verdicts.next() == Some(RetryVerdict::LimitExceeded),
        )
    };
    let none = RetryPolicy::default();
    for (asked, status, response, expected) in [
        (&[][..], 503, &[][..], (0, false)),
        (&[("x-envoy-retry-on", "5xx")], 503, &[], (1, true)),
        (&[("x-envoy-retry-on", "5xx")], 404, &[], (0, false)),
        (
            &[("x-envoy-retry-on", "5xx"), ("x-envoy-max-retries", "3")],
            503,
            &[],
            (3, true),
        ),
        (
            &[("x-envoy-retry-on", "5xx"), ("x-envoy-max-retries", "0")],
            503,
            &[],
            (0, true),
        ),
        (
            &[("x-envoy-retry-grpc-on", "internal")],
            200,
            &[("grpc-status", "13")],
            (1, true),
        ),
        (
            &[
                ("x-envoy-retry-on", "retriable-status-codes"),
                ("x-envoy-retriable-status-codes", "418, 419"),
            ],
            419,
            &[],
            (1, true),
        ),
        (
            &[
                ("x-envoy-retry-on", "retriable-status-codes"),
                ("x-envoy-retriable-status-codes", "418"),
            ],
            419,
            &[],
            (0, false),
        ),
        (
            &[("x-envoy-retriable-status-codes", "418")],
            418,
            &[],
            (0, false),
        ),
        (
            &[
                ("x-envoy-retry-on", "retriable-headers"),
                ("x-envoy-retriable-header-names", "X-Again"),
            ],
            200,
            &[("x-again", "1")],
            (1, true),
        ),
        (
            &[("x-envoy-retriable-header-names", "x-again")],
            200,
            &[("x-again", "1")],
            (0, false),
        ),
        // A service that says "not again" is believed.
        (
            &[("x-envoy-retry-on", "5xx")],
            503,
            &[("x-envoy-ratelimited", "true")],
            (0, false),
        ),
        (
            &[("x-envoy-retry-on", "envoy-ratelimited")],
            200,
            &[("x-envoy-ratelimited", "true")],
            (1, true),
        ),
    ] {
        assert_eq!(
            judge(&none, asked, status, response),
            expected,
            "{asked:?} {status}"
        );
    }
    let listed = policy(&json!({
        "retry_on": "retriable-status-codes,retriable-headers",
        "num_retries": 2,
        "retriable_status_codes": [418],
        "retriable_headers": [{"name": "x-again"}],
        "retriable_request_headers": [{"name": ":method", "string_match": {"exact": "GET"}}],
    }));
    assert_eq!(judge(&listed, &[], 418, &[]), (2, true));
    assert_eq!(judge(&listed, &[], 200, &[("x-again", "1")]), (2, true));
    assert_eq!(judge(&listed, &[], 200, &[]), (0, false));
    let posts = policy(&json!({
        "retry_on": "5xx",
        "retriable_request_headers": [{"name": ":method", "string_match": {"exact": "POST"}}],
    }));
    assert_eq!(judge(&posts, &[], 503, &[]), (0, false));
}

#[test]
fn d42_a_retry_waits_as_its_back_off_or_the_response_says() {
    let waits = |policy: &RetryPolicy, response: &[(&'static str, &'static str)], random: u64| {
        let headers = Headers::new();
        let mut state = RetryState::new(policy, &request(&headers));
        assert_eq!(state.attempts(), 1);
        let context = RetryContext {
            random,
            unix: Duration::from_secs(1_000),
        };
        let verdict = state.on_response(503, &of(response), &context);
        assert_eq!(state.attempts(), 2);
        verdict
    };
    let policy = policy(&json!({
        "retry_on": "5xx",
        "retry_back_off": {"base_interval": "0.010s"},
        "rate_limited_retry_back_off": {"reset_headers": [
            {"name": "Retry-After"},
            {"name": "x-reset", "format": "UNIX_TIMESTAMP"},
        ]},
    }));
    for (response, random, expected) in [
        (&[][..], 3_000, ms(3)),
        (&[], 13_000, ms(3)),
        (&[("retry-after", "4")], 0, ms(4_000)),
        // Up to half as much again.
        (&[("retry-after", "4")], 1_500_000, ms(5_500)),
        (&[("retry-after", "4")], 2_500_000, ms(4_500)),
        (&[("x-reset", "1002")], 0, ms(2_000)),
        (&[("retry-after", "300")], 0, ms(300_000)),
        // It is too long, or over.
        (&[("retry-after", "301")], 7_000, ms(7)),
        (&[("x-reset", "1000")], 7_000, ms(7)),
    ] {
        let verdict = waits(&policy, response, random);
        assert_eq!(
            verdict,
            RetryVerdict::Retry(expected),
            "{response:?} {random}"
        );
    }
}

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

/// Each limit on its own: before it nothing happens, at it the reply of its kind.
#[test]
fn d40_each_limit_ends_a_request_when_it_is_reached() {
    let with = |set: fn(&mut Timeouts)| {
        let mut timeouts = Timeouts::default();
        set(&mut timeouts);
        timeouts
    };
    for (timeouts, end, reply) in [
        (
            with(|t| t.response = Some(ms(100))),
            1_100,
            Reply::ResponseTimeout,
        ),
        (
            with(|t| t.stream = Some(ms(100))),
            1_100,
            Reply::StreamDuration,
        ),
        (with(|t| t.idle = Some(ms(100))), 1_100, Reply::IdleTimeout),
        // These two count from the attempt.
        (
            with(|t| t.per_try = Some(ms(100))),
            1_105,
            Reply::PerTryTimeout,
        ),
        (
            with(|t| t.upstream_stream = Some(ms(100))),
            1_105,
            Reply::UpstreamStreamDuration,
        ),
    ] {
        let headers = Headers::new();
        let none = RetryPolicy::default();
        let state = RetryState::new(&none, &request(&headers));
        let mut exchange = Exchange::new(state, timeouts, false, ms(1_000));
        assert_eq!(exchange.start_attempt(ms(1_005)).0, 1);
        assert_eq!(exchange.next_deadline(), Some(ms(end)), "{reply:?}");
        assert_eq!(exchange.handle_timeout(ms(end - 1), &NOTHING), Step::Wait);
        assert_eq!(
            exchange.handle_timeout(ms(end), &NOTHING),
            Step::Reply(reply)
        );
    }
    let headers = Headers::new();
    let none = RetryPolicy::default();
    let state = RetryState::new(&none, &request(&headers));
    let mut nothing = Exchange::new(state, Timeouts::default(), false, ms(0));
    nothing.start_attempt(ms(0));
    assert_eq!(nothing.next_deadline(), None);
    assert_eq!(nothing.handle_timeout(ms(1_000_000), &NOTHING), Step::Wait);
}

#[test]
fn d45_a_hedged_attempt_goes_on_beside_the_next() {
    let policy = policy(&json!({"retry_on": "5xx", "num_retries": 2}));
    let headers = Headers::new();
    let state = RetryState::new(&policy, &request(&headers));
    let timeouts = Timeouts {
        per_try: Some(ms(10)),
        ..Timeouts::default()
    };
    let mut exchange = Exchange::new(state, timeouts, true, ms(0));
    let wait = |at: u64| Step::Attempt { at: ms(at) };
    assert_eq!(exchange.start_attempt(ms(0)).0, 1);
    assert_eq!(exchange.handle_timeout(ms(10), &NOTHING), wait(10));
    assert_eq!(exchange.next_deadline(), None, "the first is late already");
    assert_eq!(exchange.start_attempt(ms(10)).0, 2);
    assert_eq!(exchange.next_deadline(), Some(ms(20)));
    // One that is reset while another goes on is not the end.
    let reset = exchange.handle_reset(2, Reset::ConnectFailure, ms(12), &NOTHING);
    assert_eq!(reset, wait(12));
    assert_eq!(exchange.start_attempt(ms(12)).0, 3);
    let reset = exchange.handle_reset(3, Reset::ConnectFailure, ms(13), &NOTHING);
    assert_eq!(reset, Step::Wait);
    assert!(exchange.is_exhausted());
    let reset = exchange.handle_reset(1, Reset::ConnectFailure, ms(14), &NOTHING);
    assert_eq!(reset, Step::Reply(Reply::Reset(Reset::ConnectFailure)));
}

#[test]
fn d40_a_policy_says_how_long_an_attempt_may_be_idle() {
    let idle = |json: Value| policy(&json).per_try_idle_timeout();
    assert_eq!(idle(json!({})), None);
    assert_eq!(
        idle(json!({"per_try_idle_timeout": "0.25s"})),
        Some(ms(250))
    );
}

#[test]
fn d40_an_exchange_says_its_timeouts() {
    let none = RetryPolicy::default();
    let headers = Headers::new();
    let state = RetryState::new(&none, &request(&headers));
    let timeouts = Timeouts {
        response: Some(ms(1)),
        answers_no_content: true,
        ..Timeouts::default()
    };
    let exchange = Exchange::new(state, timeouts, false, ms(0));
    assert_eq!(*exchange.timeouts(), timeouts);
}

#[test]
fn d40_a_timeout_may_be_answered_by_no_content() {
    for (answers_no_content, reply) in [(true, Reply::NoContent), (false, Reply::ResponseTimeout)] {
        let none = RetryPolicy::default();
        let headers = Headers::new();
        let state = RetryState::new(&none, &request(&headers));
        let timeouts = Timeouts {
            response: Some(ms(1)),
            answers_no_content,
            ..Timeouts::default()
        };
        let mut exchange = Exchange::new(state, timeouts, false, ms(0));
        assert_eq!(exchange.handle_timeout(ms(1), &NOTHING), Step::Reply(reply));
    }
}

/// A response is a byte, and the attempt that gave it is over.
#[test]
fn d40_a_response_that_is_not_passed_on_counts_as_activity() {
    let policy = policy(&json!({"retry_on": "5xx"}));
    let headers = Headers::new();
    let state = RetryState::new(&policy, &request(&headers));
    let timeouts = Timeouts {
        idle: Some(ms(100)),
        per_try: Some(ms(50)),
        ..Timeouts::default()
    };
    let mut exchange = Exchange::new(state, timeouts, false, ms(0));
    exchange.start_attempt(ms(0));
    assert_eq!(exchange.next_deadline(), Some(ms(50)));
    let step = exchange.handle_response(1, 503, &headers, ms(40), &NOTHING);
    assert_eq!(step, Step::Attempt { at: ms(40) });
    assert_eq!(exchange.next_deadline(), Some(ms(140)));
    assert!(!exchange.is_exhausted());
    exchange.start_attempt(ms(60));
    assert_eq!(exchange.next_deadline(), Some(ms(110)));
    let step = exchange.handle_response(2, 503, &headers, ms(70), &NOTHING);
    assert_eq!(step, Step::Respond);
    assert!(exchange.is_exhausted());
}

#[test]
fn replies_are_those_of_envoy() {
    let reset = "upstream connect error or disconnect/reset before headers. reset reason: ";
    let of = |reset| Reply::Reset(reset);
    let terminated = of(Reset::ConnectionTermination { was_sent: true });
    // status, flag, gRPC status, body, and whether that is of a reset
    for (reply, status, flag, grpc_status, body, is_reset) in [
        (
            of(Reset::ConnectFailure),
            503,
            "UF",
            14,
            "remote connection failure",
            true,
        ),
        (terminated, 503, "UC", 14, "connection termination", true),
        (
            of(Reset::RefusedStream),
            503,
            "UR",
            14,
            "remote refused stream reset",
            true,
        ),
        (of(Reset::Stream), 503, "UR", 14, "remote reset", true),
        (
            of(Reset::ProtocolError),
            502,
            "UPE",
            14,
            "protocol error",
            true,
        ),
        (of(Reset::Overflow), 503, "UO", 14, "overflow", true),
        (
            Reply::NoHealthyUpstream,
            503,
            "UH",
            14,
            "no healthy upstream",
            false,
        ),
        (
            Reply::ResponseTimeout,
            504,
            "UT",
            14,
            "upstream request timeout",
            false,
        ),
        (
            Reply::PerTryTimeout,
            504,
            "UT",
            14,
            "upstream request timeout",
            false,
        ),
        (Reply::NoContent, 204, "UT", 0, "", false),
        (Reply::IdleTimeout, 504, "SI", 14, "stream timeout", false),
        (
            Reply::StreamDuration,
            504,
            "",
            4,
            "downstream duration timeout",
            false,
        ),
        (
            Reply::UpstreamStreamDuration,
            504,
            "UMSDR",
            14,
            "upstream max stream duration reached",
            false,
        ),
    ] {
        let said = (reply.status(), reply.flag(), reply.grpc_status());
        assert_eq!(said, (status, flag, grpc_status), "{reply:?}");
        let start = if is_reset { reset } else { "" };
        assert_eq!(reply.body(), format!("{start}{body}"));
    }
}

#[test]
fn d44_endpoints_that_were_tried_are_avoided_so_often() {
    let predicate = |kind: &str| {
        json!({
            "name": "p",
            "typed_config": {"@type": format!("type.googleapis.com/envoy.extensions.retry.host.{kind}")},
        })
    };
    let previous = predicate("previous_hosts.v3.PreviousHostsPredicate");
    let attempts = |predicates: Value, most: i64| {
        let policy = policy(&json!({
            "retry_host_predicate": predicates,
            "host_selection_retry_max_attempts": most,
        }));
        policy.host_attempts()
    };
    assert_eq!(attempts(json!([]), 5), None);
    assert_eq!(attempts(json!([{"name": "p"}]), 5), None);
    assert_eq!(attempts(json!([previous]), 0), Some(1));
    assert_eq!(attempts(json!([previous]), 5), Some(5));
    assert_eq!(attempts(json!([{"name": "p"}, previous]), 5), Some(5));
}

#[test]
fn d42_what_a_policy_cannot_have_is_a_finding() {
    let canary = json!({
        "name": "p",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.retry.host.omit_canary_hosts.v3.OmitCanaryHostsPredicate"},
    });
    let back_off = |base: &str, max: &str| json!({"base_interval": base, "max_interval": max});
    for (json, expected) in [
        (
            json!({"retry_host_predicate": [canary]}),
            "retry_host_predicate[0]",
        ),
        (
            json!({"retry_options_predicates": [{"name": "p"}]}),
            "retry_options_predicates",
        ),
        (json!({"retry_priority": {"name": "p"}}), "retry_priority"),
        (
            json!({"retry_back_off": {}}),
            "retry_back_off.base_interval",
        ),
        (
            json!({"retry_back_off": back_off("0.2s", "0.1s")}),
            "retry_back_off.max_interval",
        ),
        (
            json!({"retriable_headers": [{"name": "a"}, {"name": "b", "string_match": {}}]}),
            "retriable_headers[1].string_match",
        ),
        (
            json!({"retriable_request_headers": [{}]}),
            "retriable_request_headers[0].name",
        ),
    ] {
        let message: PolicyMessage = message("envoy.config.route.v3.RetryPolicy", &json);
        let mut findings = Findings::default();
        RetryPolicy::compile(&message, &Place::ROOT, &mut findings);
        let paths: Vec<_> = findings.list().iter().map(|found| &*found.path).collect();
        assert_eq!(paths, [expected], "{json}");
    }
    // An interval that cannot grow is one.
    policy(&json!({"retry_back_off": back_off("0.2s", "0.2s")}));
}

#[test]
fn d42_a_back_off_grows_to_ten_times_its_base_or_to_its_maximum() {
    let longest = |back_off: Value| {
        let policy = policy(&json!({"retry_back_off": back_off}));
        // A number just below each interval is waited as it is.
        let waits = |micros: u64| policy.back_off.delay(9, micros) == Duration::from_micros(micros);
        [10, 70, 100, 500].map(|ms| waits(ms * 1_000 - 1))
    };
    let base = json!({"base_interval": "0.010s"});
    assert_eq!(longest(base), [true, true, true, false]);
    let with_max = json!({"base_interval": "0.010s", "max_interval": "0.07s"});
    assert_eq!(longest(with_max), [true, true, false, false]);
}

#[test]
fn d42_what_a_client_says_to_the_router_ends_there() {
    let mut headers = of(&[
        ("x-envoy-retry-on", "5xx"),
        ("x-envoy-upstream-rq-timeout-ms", "1"),
        ("x-envoy-attempt-count", "7"),
    ]);
    remove_directions(&mut headers);
    assert_eq!(headers, of(&[("x-envoy-attempt-count", "7")]));
}
