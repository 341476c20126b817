//! Conditions, policies and what a request says of them (41-44).

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_proto::acceptance::Place;

use super::{NOTHING, PolicyMessage, ms, of, policy, request};
use crate::findings::Findings;
use crate::headers::Headers;
use crate::json::message;
use crate::retry::{
    Conditions, RetryContext, RetryPolicy, RetryState, RetryVerdict, remove_directions,
};

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
        let mut verdicts = (0..9).map(|_| state.judge_response(status, &response, &NOTHING));
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
        let verdict = state.judge_response(503, &of(response), &context);
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
fn d40_a_policy_says_how_long_an_attempt_may_be_idle() {
    let idle = |json: Value| policy(&json).per_try_idle_timeout();
    assert_eq!(idle(json!({})), None);
    assert_eq!(
        idle(json!({"per_try_idle_timeout": "0.25s"})),
        Some(ms(250))
    );
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
fn d42_what_a_client_says_to_the_router_ends_there() {
    let mut headers = of(&[
        ("x-envoy-retry-on", "5xx"),
        ("x-envoy-upstream-rq-timeout-ms", "1"),
        ("x-envoy-attempt-count", "7"),
    ]);
    remove_directions(&mut headers);
    assert_eq!(headers, of(&[("x-envoy-attempt-count", "7")]));
}
