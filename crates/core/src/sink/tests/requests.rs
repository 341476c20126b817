//! Requests and their contents: C16-C18, C20, C25, E4, E5, E14.

use super::*;

#[test]
fn nothing_is_said_without_a_stream() {
    let mut bench = Bench::new(Mode::Sotw, |_| {});
    bench.sub("cds a");
    assert_eq!(bench.requests(), [""; 0]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n cds [a]"]);
    bench.down("gone");
    bench.sub("cds b");
    assert_eq!(bench.requests(), [""; 0]);
}

#[test]
fn c16_the_first_request_of_each_stream_says_who_asks() {
    let mut bench = Bench::subscribed(Mode::Sotw, &[]);
    for _ in 0..2 {
        bench.sink.handle_connected();
        bench.sub("eds a");
        bench.sub("rds r");
        assert_eq!(bench.requests(), ["node:n eds [a]", "rds [r]"]);
    }
}

#[test]
fn e14_every_request_says_who_asks_if_so_configured() {
    for mode in BOTH {
        let mut bench = Bench::new(mode, |config| config.node_every_request = true);
        bench.sink.handle_connected();
        bench.sub("eds a");
        bench.sub("rds r");
        let requests = bench.requests();
        assert!(requests.iter().all(|r| r.starts_with("node:n ")));
        assert_eq!(requests.len(), 2);
    }
}

#[test]
fn e14_another_node_is_told_once() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.sink.set_node(Node {
        id: "m".into(),
        ..Node::default()
    });
    bench.sub("eds b");
    assert_eq!(bench.requests(), ["node:m eds [a b]"]);
    bench.sub("eds c");
    assert_eq!(bench.requests(), ["eds [a b c]"]);
}

#[test]
fn c17_a_request_lists_all_names_of_its_type() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds b"]);
    bench.sub("eds a");
    bench.sub("rds r");
    assert_eq!(bench.requests(), ["eds [a b]", "rds [r]"]);
    bench.unsub("eds b");
    assert_eq!(bench.requests(), ["eds [a]"]);
}

#[test]
fn ten_changes_while_blocked_become_one_request() {
    let changes = |bench: &mut Bench| {
        for n in 0..10 {
            bench.sub(&format!("eds {n}"));
        }
        bench.unsub("eds a");
        bench.unsub("eds 3");
    };
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    changes(&mut bench);
    assert_eq!(bench.requests(), ["eds [0 1 2 4 5 6 7 8 9]"]);
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    changes(&mut bench);
    assert_eq!(bench.requests(), ["eds +0 +1 +2 +4 +5 +6 +7 +8 +9 -a"]);
}

#[test]
fn c18_an_acknowledgement_names_version_and_nonce() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    assert_eq!(bench.requests(), ["eds [a] version=1 nonce=n1"]);
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    bench.accept(delta("eds", "n1", &["a@1"], &[]));
    assert_eq!(bench.requests(), ["eds nonce=n1"]);
}

#[test]
fn c18_a_rejection_names_the_previous_version_and_the_new_nonce() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.judge(sotw("eds", "1", "n1", &["a@1"]), &[("a", "bad")]);
    assert_eq!(bench.requests(), ["eds [a] nonce=n1 error=3:a: bad"]);
    bench.accept(sotw("eds", "2", "n2", &["a@2"]));
    assert_eq!(bench.requests(), ["eds [a] version=2 nonce=n2"]);
    bench.judge(sotw("eds", "3", "n3", &["a@3"]), &[("a", "bad")]);
    assert_eq!(
        bench.requests(),
        ["eds [a] version=2 nonce=n3 error=3:a: bad"]
    );
    // The next request after a NACK is not another one.
    bench.sub("eds b");
    assert_eq!(bench.requests(), ["eds [a b] version=2 nonce=n3"]);
    assert_eq!(bench.sink.version(&type_of("eds")), Some(&"2".into()));
}

#[test]
fn c18_a_delta_rejection_is_the_nonce_and_the_reason() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    bench.judge(delta("eds", "n1", &["a@1"], &[]), &[("a", "bad")]);
    assert_eq!(bench.requests(), ["eds nonce=n1 error=3:a: bad"]);
}

#[test]
fn a_response_without_a_nonce_is_answered_without_one() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "", &["a@1"]));
    assert_eq!(bench.requests(), ["eds [a] version=1"]);
}

#[test]
fn c20_what_was_never_asked_for_gets_no_answer() {
    for mode in BOTH {
        let mut bench = Bench::subscribed(mode, &["eds a"]);
        let response: Response = match mode {
            Mode::Sotw => sotw("cds", "1", "n1", &["a@1"]).into(),
            Mode::Delta => delta("cds", "n1", &["a@1"], &[]).into(),
        };
        let error = SinkError::NeverAsked(type_of("cds"));
        assert_eq!(error.blame(), Blame::Peer);
        assert_eq!(
            bench.sink.handle_response(response.clone()),
            Err(error.clone())
        );
        // Subscribed to, but not yet sent on this stream.
        bench.sub("cds b");
        assert_eq!(bench.sink.handle_response(response), Err(error));
        assert!(bench.sink.may_read());
        let expected = ["cds [b]", "cds +b"][usize::from(mode == Mode::Delta)];
        assert_eq!(bench.requests(), [expected]);
    }
}

#[test]
fn c25_the_last_name_is_unsubscribed_by_an_empty_list() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds a"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    bench.requests();
    bench.unsub("cds a");
    assert_eq!(bench.requests(), ["cds [] version=1 nonce=n1"]);
    assert_eq!(bench.states(), [""; 0]);
    // A response that is on its way is still acknowledged.
    assert_eq!(
        bench.accept(sotw("cds", "2", "n2", &["a@2"])),
        [""; 0],
        "nobody wants it"
    );
    assert_eq!(bench.requests(), ["cds [] version=2 nonce=n2"]);
    // Without resources there is no version.
    bench.sub("cds a");
    assert_eq!(bench.requests(), ["cds [a] version=2 nonce=n2"]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n cds [a]"]);
}

#[test]
fn c25_what_was_never_told_is_forgotten_at_once() {
    for mode in BOTH {
        let mut bench = Bench::subscribed(mode, &["eds a"]);
        bench.sub("eds b");
        bench.unsub("eds b");
        assert_eq!(bench.forgotten(), ["eds b"]);
        bench.unsub("eds never");
        bench.unsub("rds never");
        assert_eq!(bench.requests(), [""; 0]);
        assert_eq!(bench.states(), ["eds a Requested"]);
    }
}

#[test]
fn e5_types_are_asked_for_in_order_of_first_subscription() {
    for mode in BOTH {
        let mut bench = Bench::new(mode, |_| {});
        for want in ["rds r", "cds *", "eds a"] {
            bench.sub(want);
        }
        for _ in 0..2 {
            bench.sink.handle_connected();
            let types: Vec<_> = bench
                .requests()
                .iter()
                .map(|r| r.replace("node:n ", "")[..3].to_owned())
                .collect();
            assert_eq!(types, ["rds", "cds", "eds"]);
        }
    }
}

#[test]
fn e5_answers_come_before_news_in_the_order_of_the_verdicts() {
    let mut bench = Bench::subscribed(Mode::Delta, &["cds *", "eds a", "rds r"]);
    bench.sub("cds x");
    bench.sub("rds s");
    bench.accept(delta("rds", "n1", &["r@1"], &[]));
    bench.accept(delta("cds", "n2", &[], &[]));
    assert_eq!(
        bench.requests(),
        ["rds nonce=n1", "cds nonce=n2", "cds +x", "rds +s"]
    );
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *", "eds a", "rds r"]);
    bench.sub("cds x");
    bench.sub("rds s");
    bench.accept(sotw("rds", "1", "n1", &["r@1"]));
    assert_eq!(
        bench.requests(),
        [
            "rds [r] version=1 nonce=n1",
            "cds [* x]",
            "rds [r s] version=1 nonce=n1"
        ]
    );
}

#[test]
fn e4_names_wait_for_the_verdict_in_sotw_only() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a", "rds r"]);
    let response = sotw("eds", "1", "n1", &["a@1"]);
    bench.sink.handle_response(response).unwrap();
    bench.sub("eds b");
    bench.sub("rds s");
    assert_eq!(bench.requests(), ["rds [r s]"]);
    let verdict = Verdict::accept();
    let nonce = "n1".into();
    bench
        .sink
        .handle_verdict(&type_of("eds"), &nonce, verdict, bench.now)
        .unwrap();
    assert_eq!(
        bench.requests(),
        ["eds [a] version=1 nonce=n1", "eds [a b] version=1 nonce=n1"]
    );

    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    let response = delta("eds", "n1", &["a@1"], &[]);
    bench.sink.handle_response(response).unwrap();
    bench.sub("eds b");
    assert_eq!(bench.requests(), ["eds +b"]);
}

#[test]
fn a_stream_of_one_type_asks_for_no_other() {
    let mut bench = Bench::new(Mode::Delta, |config| {
        config.scope = StreamScope::Single(type_of("eds"));
    });
    let wrong = bench
        .sink
        .subscribe(&type_of("cds"), Selector::Wildcard, bench.now);
    let error = SinkError::WrongType {
        carries: type_of("eds"),
        wanted: type_of("cds"),
    };
    assert_eq!(error.blame(), Blame::Caller);
    assert_eq!(wrong, Err(error));
    bench.sub("eds a");
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds +a"]);
}

#[test]
fn what_is_asked_for_can_be_seen() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.sub("eds b");
    let interest = bench.sink.interest(&type_of("eds")).unwrap();
    assert_eq!(interest.iter().count(), 2);
    assert_eq!(bench.sink.interest(&type_of("cds")), None);
}
