//! Requests and their attempts, and the replies that end them (40, 45).

use std::time::Duration;

use serde_json::json;

use super::{NOTHING, ms, policy, request};
use crate::headers::Headers;
use crate::retry::{Exchange, Reply, Reset, RetryContext, RetryPolicy, RetryState, Step, Timeouts};

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
fn d40_an_attempt_that_is_reset_is_over() {
    let none = RetryPolicy::default();
    let headers = Headers::new();
    let timeouts = Timeouts {
        per_try: Some(ms(10)),
        ..Timeouts::default()
    };
    let reset = Reset::RefusedStream;
    let exchange = || {
        Exchange::new(
            RetryState::new(&none, &request(&headers)),
            timeouts,
            true,
            ms(0),
        )
    };
    let mut single = exchange();
    single.start_attempt(ms(0));
    let step = single.handle_reset(1, reset, ms(1), &NOTHING);
    assert_eq!(step, Step::Reply(Reply::Reset(reset)));
    assert_eq!(single.next_deadline(), None);
    // What is not known is not taken for another.
    let mut other = exchange();
    other.start_attempt(ms(0));
    assert_eq!(other.handle_reset(2, reset, ms(1), &NOTHING), Step::Wait);
    assert_eq!(other.next_deadline(), Some(ms(10)));
}

/// An exchange whose first attempt is late at 10 ms, with a policy of so many
/// retries, after a back-off.
fn hedged(policy: &RetryPolicy) -> (Exchange<'_>, Duration) {
    let headers = Headers::new();
    let state = RetryState::new(policy, &request(&headers));
    let timeouts = Timeouts {
        per_try: Some(ms(10)),
        ..Timeouts::default()
    };
    let mut exchange = Exchange::new(state, timeouts, true, ms(0));
    exchange.start_attempt(ms(0));
    let later = RetryContext {
        random: 15_000,
        ..NOTHING
    };
    match exchange.handle_timeout(ms(10), &later) {
        Step::Attempt { at } => (exchange, at),
        other => panic!("{other:?}"),
    }
}

#[test]
fn d45_a_late_attempt_is_not_retried_again() {
    let policy = policy(&json!({"retry_on": "5xx", "num_retries": 2}));
    let (mut exchange, at) = hedged(&policy);
    assert!(at > ms(11), "a back-off, to {at:?}");
    // Its reset finds a retry scheduled, and uses up none.
    let reset = exchange.handle_reset(1, Reset::ConnectFailure, ms(11), &NOTHING);
    assert_eq!(reset, Step::Wait);
    assert_eq!(exchange.start_attempt(at).0, 2);
    let reset = exchange.handle_reset(2, Reset::ConnectFailure, at, &NOTHING);
    assert!(matches!(reset, Step::Attempt { .. }), "{reset:?}");
    assert_eq!(exchange.start_attempt(at).0, 3);
    let reset = exchange.handle_reset(3, Reset::ConnectFailure, at, &NOTHING);
    assert_eq!(reset, Step::Reply(Reply::Reset(Reset::ConnectFailure)));
}

#[test]
fn d45_a_bad_response_waits_for_the_other_attempts() {
    let policy = policy(&json!({"retry_on": "5xx", "num_retries": 1}));
    let headers = Headers::new();
    let respond = |exchange: &mut Exchange<'_>, attempt, status| {
        exchange.handle_response(attempt, status, &headers, ms(50), &NOTHING)
    };
    // A late attempt's, while its successor is scheduled, and under way.
    let (mut exchange, _) = hedged(&policy);
    assert_eq!(respond(&mut exchange, 1, 503), Step::Wait);
    let (mut exchange, at) = hedged(&policy);
    exchange.start_attempt(at);
    assert_eq!(respond(&mut exchange, 1, 503), Step::Wait);
    assert_eq!(respond(&mut exchange, 2, 503), Step::Respond);
    assert!(exchange.is_exhausted());
    // The last one's, while a late attempt is under way.
    let (mut exchange, at) = hedged(&policy);
    exchange.start_attempt(at);
    assert_eq!(respond(&mut exchange, 2, 503), Step::Wait);
    assert_eq!(respond(&mut exchange, 1, 200), Step::Respond);
    // One that no policy retries goes to the client at once.
    let (mut exchange, _) = hedged(&policy);
    assert_eq!(respond(&mut exchange, 1, 404), Step::Respond);
}

#[test]
fn d40_an_attempt_that_lasts_too_long_is_retried() {
    let policy = policy(&json!({"retry_on": "reset", "num_retries": 1}));
    let headers = Headers::new();
    let state = RetryState::new(&policy, &request(&headers));
    let timeouts = Timeouts {
        upstream_stream: Some(ms(10)),
        ..Timeouts::default()
    };
    let mut exchange = Exchange::new(state, timeouts, false, ms(0));
    exchange.start_attempt(ms(0));
    let step = exchange.handle_timeout(ms(10), &NOTHING);
    assert!(matches!(step, Step::Attempt { .. }), "{step:?}");
    exchange.start_attempt(ms(10));
    assert_eq!(exchange.handle_timeout(ms(19), &NOTHING), Step::Wait);
    assert_eq!(
        exchange.handle_timeout(ms(20), &NOTHING),
        Step::Reply(Reply::UpstreamStreamDuration)
    );
}
