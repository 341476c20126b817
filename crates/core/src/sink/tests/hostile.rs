//! A server that breaks the protocol loses the response in which it did so.

use super::*;

/// The response is NACKed with this text; nothing was used, and other types go
/// on.
fn is_rejected(mode: Mode, response: impl Into<Response>, fault: ProtocolFault) {
    let mut bench = Bench::subscribed(mode, &["cds *", "eds a"]);
    let before = match mode {
        Mode::Sotw => bench.accept(sotw("cds", "1", "n1", &["held@1"])),
        Mode::Delta => bench.accept(delta("cds", "n1", &["held@1"], &[])),
    };
    assert_eq!(before.len(), 1);
    bench.requests();
    let text = fault.to_string();
    let error = SinkError::Protocol {
        type_url: type_of("cds"),
        nonce: "bad".into(),
        fault,
    };
    assert_eq!(error.blame(), Blame::Peer);
    assert_eq!(bench.sink.handle_response(response), Err(error));
    assert_eq!(bench.states()[0], "cds held Acked 1");
    assert!(!bench.sink.may_read(), "it must be answered first");
    let answer = match mode {
        Mode::Sotw => format!("cds [] version=1 nonce=bad error=3:{text}"),
        Mode::Delta => format!("cds nonce=bad error=3:{text}"),
    };
    assert_eq!(bench.requests(), [answer]);
    let other = match mode {
        Mode::Sotw => bench.accept(sotw("eds", "1", "n2", &["a@1"])),
        Mode::Delta => bench.accept(delta("eds", "n2", &["a@1"], &[])),
    };
    assert_eq!(other, ["+eds a@1"]);
}

#[test]
fn e9_a_name_that_is_there_twice_rejects_the_response() {
    let fault = || ProtocolFault::Duplicate(Name::new("a"));
    let response = sotw("cds", "2", "bad", &["a@1", "b@1", "a@1"]);
    is_rejected(Mode::Sotw, response, fault());
    let response = delta("cds", "bad", &["a@1", "a@2"], &[]);
    is_rejected(Mode::Delta, response, fault());
    let response = delta("cds", "bad", &[], &["a", "a"]);
    is_rejected(Mode::Delta, response, fault());
    let mut response = delta("cds", "bad", &[], &[]);
    let error = said("a", ErrorCode::NotFound, "");
    response.errors = vec![error.clone(), error];
    is_rejected(Mode::Delta, response, fault());
}

#[test]
fn e9_a_name_both_added_and_removed_rejects_the_response() {
    let response = delta("cds", "bad", &["a@1", "b@1"], &["held", "b"]);
    let fault = ProtocolFault::AddedAndRemoved(Name::new("b"));
    is_rejected(Mode::Delta, response, fault);
}

#[test]
fn a_name_with_both_an_answer_and_an_error_rejects_the_response() {
    for (resources, removed) in [(&["b@1"][..], &[][..]), (&[], &["b"])] {
        let mut response = delta("cds", "bad", resources, removed);
        response.errors = vec![said("b", ErrorCode::NotFound, "")];
        let fault = ProtocolFault::AnswerAndError(Name::new("b"));
        is_rejected(Mode::Delta, response, fault);
    }
}

#[test]
fn a_response_needs_a_stream_of_its_variant() {
    let mut bench = Bench::new(Mode::Sotw, |_| {});
    bench.sub("eds a");
    let response = || sotw("eds", "1", "n1", &["a@1"]);
    let early = bench.sink.handle_response(response());
    assert_eq!(early, Err(SinkError::NotConnected));
    bench = bench.up(&[]);
    let wrong = bench.sink.handle_response(delta("eds", "n1", &[], &[]));
    assert_eq!(wrong, Err(SinkError::WrongMode));
    assert!(!bench.sink.got_response());
    for error in [SinkError::NotConnected, SinkError::WrongMode] {
        assert_eq!(error.blame(), Blame::Caller);
    }
    assert!(bench.sink.handle_response(response()).is_ok());
}

#[test]
fn a_name_beyond_the_limit_is_refused_alone() {
    let bench = Bench::new(Mode::Sotw, |config| config.limits.name_bytes = 4);
    let mut bench = bench.up(&["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["held@1", "abcd@1"]));
    bench.requests();
    let long = "x".repeat(100);
    let texts = ["abcd@2", &format!("{long}@1"), "a@1#abcde"];
    let (acked, effects) = bench.judge(sotw("cds", "2", "n2", &texts), &[("abcd", "bad")]);
    assert!(!acked);
    // No deletion either: a limit must not cause one (S72).
    assert_eq!(effects, ["cds abcd ~ Rejected: bad"]);
    assert_eq!(
        bench.requests(),
        [format!(
            "cds [] version=1 nonce=n2 error=3:{}: a name is longer than 4 bytes; \
             a: a name is longer than 4 bytes; abcd: bad",
            &long[..64]
        )]
    );
}

#[test]
fn errors_of_the_source_are_cut() {
    let bench = Bench::new(Mode::Delta, |config| {
        config.limits.error_bytes = 4;
        config.limits.name_bytes = 4;
    });
    let mut bench = bench.up(&["cds *"]);
    let mut response = delta("cds", "n1", &[], &[]);
    response.errors = vec![
        said("abcd", ErrorCode::NotFound, "12345"),
        said("b", ErrorCode::NotFound, "1234"),
        said("abcde", ErrorCode::NotFound, "1"),
    ];
    assert_eq!(
        bench.accept(response)[2..],
        [
            "cds abcd ! Source(NotFound): 1234",
            "cds b ! Source(NotFound): 1234"
        ]
    );
}

#[test]
fn errors_say_what_to_do() {
    let type_url: TypeUrl = "T".into();
    let nonce: Nonce = "n".into();
    let fault = ProtocolFault::Duplicate(Name::new("a"));
    for (error, text) in [
        (
            SinkError::NotConnected,
            "a response without a stream; call handle_connected first",
        ),
        (
            SinkError::Busy(type_url.clone()),
            "a response of T before the last one was judged and answered; ask is_busy first",
        ),
        (
            SinkError::NotJudging {
                type_url: type_url.clone(),
                nonce: nonce.clone(),
            },
            "no response n of T waits for a verdict; drop the verdict",
        ),
        (
            SinkError::NeverAsked(type_url.clone()),
            "the source sent T, which this stream never asked for; ignored",
        ),
        (
            SinkError::Protocol {
                type_url,
                nonce,
                fault,
            },
            "the source broke the protocol in response n of T, rejected: a is in the response twice",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
