//! What is asked, when, and in which words: C16-C20, C25, E5, E9, E14.

use super::*;

const BOTH: [Mode; 2] = [Mode::Sotw, Mode::Delta];

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
    let mut bench = Bench::asking(Mode::Sotw, &[]);
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
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
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
    let mut bench = Bench::asking(Mode::Sotw, &["eds b"]);
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
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    changes(&mut bench);
    assert_eq!(bench.requests(), ["eds [0 1 2 4 5 6 7 8 9]"]);
    let mut bench = Bench::asking(Mode::Delta, &["eds a"]);
    changes(&mut bench);
    assert_eq!(bench.requests(), ["eds +0 +1 +2 +4 +5 +6 +7 +8 +9 -a"]);
}

#[test]
fn c18_an_acknowledgement_names_version_and_nonce() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    assert_eq!(bench.requests(), ["eds [a] version=1 nonce=n1"]);
    let mut bench = Bench::asking(Mode::Delta, &["eds a"]);
    bench.accept(delta("eds", "n1", &["a@1"], &[]));
    assert_eq!(bench.requests(), ["eds nonce=n1"]);
}

#[test]
fn c18_a_rejection_names_the_previous_version_and_the_new_nonce() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.judge(sotw("eds", "1", "n1", &["a@1"]), &[("a", "bad")]);
    assert_eq!(bench.requests(), ["eds [a] nonce=n1 error=3:a: bad"]);
    bench.accept(sotw("eds", "2", "n2", &["a@2"]));
    assert_eq!(bench.requests(), ["eds [a] version=2 nonce=n2"]);
    bench.judge(sotw("eds", "3", "n3", &["a@3"]), &[("a", "bad")]);
    assert_eq!(
        bench.requests(),
        ["eds [a] version=2 nonce=n3 error=3:a: bad"]
    );
    // What comes after a rejection is not another one.
    bench.sub("eds b");
    assert_eq!(bench.requests(), ["eds [a b] version=2 nonce=n3"]);
    assert_eq!(bench.sink.version(&type_of("eds")), Some(&"2".into()));
}

#[test]
fn c18_a_delta_rejection_is_the_nonce_and_the_reason() {
    let mut bench = Bench::asking(Mode::Delta, &["eds a"]);
    bench.judge(delta("eds", "n1", &["a@1"], &[]), &[("a", "bad")]);
    assert_eq!(bench.requests(), ["eds nonce=n1 error=3:a: bad"]);
}

#[test]
fn a_response_without_a_nonce_is_answered_without_one() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "", &["a@1"]));
    assert_eq!(bench.requests(), ["eds [a] version=1"]);
}

#[test]
fn c19_a_new_stream_keeps_versions_and_clears_nonces() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds *", "eds a"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    bench.accept(sotw("eds", "7", "n2", &["a@7"]));
    bench.requests();
    bench.down("gone");
    bench.sink.handle_connected();
    assert_eq!(
        bench.requests(),
        ["node:n cds [] version=1", "eds [a] version=7"]
    );
}

#[test]
fn c19_what_was_due_on_the_old_stream_is_not_said_on_the_new() {
    for mode in BOTH {
        let mut bench = Bench::asking(mode, &["eds a"]);
        match mode {
            Mode::Sotw => bench.accept(sotw("eds", "1", "n1", &["a@1"])),
            Mode::Delta => bench.accept(delta("eds", "n1", &["a@1"], &[])),
        };
        // The stream may be replaced without word of its end.
        bench.sink.handle_connected();
        let requests = bench.requests();
        let expected = match mode {
            Mode::Sotw => "node:n eds [a] version=1",
            Mode::Delta => "node:n eds +a held=a@1",
        };
        assert_eq!(requests, [expected]);
    }
}

#[test]
fn c19_an_unjudged_response_is_dropped_with_its_stream() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    let response = sotw("eds", "1", "n1", &["a@1"]);
    bench.sink.handle_response(response).unwrap();
    bench.down("gone");
    bench.sink.handle_connected();
    let type_url = type_of("eds");
    let late = bench
        .sink
        .handle_verdict(&type_url, &"n1".into(), Verdict::accept(), bench.now);
    let nonce = "n1".into();
    assert_eq!(late, Err(SinkError::NotJudging { type_url, nonce }));
    assert_eq!(bench.requests(), ["node:n eds [a]"]);
}

#[test]
fn c20_what_was_never_asked_for_gets_no_answer() {
    for mode in BOTH {
        let mut bench = Bench::asking(mode, &["eds a"]);
        let response: Response = match mode {
            Mode::Sotw => sotw("cds", "1", "n1", &["a@1"]).into(),
            Mode::Delta => delta("cds", "n1", &["a@1"], &[]).into(),
        };
        let error = SinkError::NeverAsked(type_of("cds"));
        assert_eq!(error.whose(), Whose::Peer);
        assert_eq!(
            bench.sink.handle_response(response.clone()),
            Err(error.clone())
        );
        // Ask, but this stream has not said so.
        bench.sub("cds b");
        assert_eq!(bench.sink.handle_response(response), Err(error));
        assert!(bench.sink.may_read());
        let asked = ["cds [b]", "cds +b"][usize::from(mode == Mode::Delta)];
        assert_eq!(bench.requests(), [asked]);
    }
}

#[test]
fn c25_the_last_name_is_unsubscribed_by_an_empty_list() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds a"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    bench.requests();
    bench.unsub("cds a");
    assert_eq!(bench.requests(), ["cds [] version=1 nonce=n1"]);
    assert_eq!(bench.states(), [""; 0]);
    // What is under way meanwhile is still answered.
    assert_eq!(
        bench.accept(sotw("cds", "2", "n2", &["a@2"])),
        [""; 0],
        "nobody wants it"
    );
    assert_eq!(bench.requests(), ["cds [] version=2 nonce=n2"]);
    // Who holds nothing holds no version.
    bench.sub("cds a");
    assert_eq!(bench.requests(), ["cds [a] version=2 nonce=n2"]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n cds [a]"]);
}

#[test]
fn c25_a_new_stream_does_not_mention_what_nobody_wants() {
    for mode in BOTH {
        let mut bench = Bench::asking(mode, &["cds a", "eds b"]);
        bench.unsub("cds a");
        bench.down("gone");
        assert_eq!(bench.states(), ["eds b Requested"]);
        bench.sink.handle_connected();
        let expected = ["node:n eds [b]", "node:n eds +b"];
        assert_eq!(
            bench.requests(),
            [expected[usize::from(mode == Mode::Delta)]]
        );
    }
}

#[test]
fn c25_what_was_never_told_is_forgotten_at_once() {
    for mode in BOTH {
        let mut bench = Bench::asking(mode, &["eds a"]);
        bench.sub("eds b");
        bench.unsub("eds b");
        bench.unsub("eds never");
        bench.unsub("rds never");
        assert_eq!(bench.requests(), [""; 0]);
        assert_eq!(bench.states(), ["eds a Requested"]);
    }
}

#[test]
fn c25_a_version_goes_with_what_it_was_of() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.down("gone");
    bench.unsub("eds a");
    bench.sub("eds b");
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds [b]"]);
}

#[test]
fn wildcard_alone_is_an_empty_first_request() {
    let mut bench = Bench::asking(Mode::Sotw, &[]);
    bench.sub("cds *");
    assert_eq!(bench.requests(), ["node:n cds []"]);
    bench.accept(sotw("cds", "1", "n1", &[]));
    assert_eq!(bench.requests(), ["cds [] version=1 nonce=n1"]);
    let mut bench = Bench::asking(Mode::Delta, &[]);
    bench.sub("cds *");
    assert_eq!(bench.requests(), ["node:n cds"]);
}

#[test]
fn wildcard_of_a_type_without_the_empty_form_is_named() {
    let mut bench = Bench::asking(Mode::Sotw, &[]);
    bench.sub("other *");
    assert_eq!(bench.requests(), ["node:n other [*]"]);
    let mut bench = Bench::asking(Mode::Delta, &[]);
    bench.sub("other *");
    assert_eq!(bench.requests(), ["node:n other +*"]);
}

#[test]
fn wildcard_beside_names_is_named() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds *"]);
    bench.sub("cds a");
    assert_eq!(bench.requests(), ["cds [* a]"]);
    bench.unsub("cds a");
    assert_eq!(bench.requests(), ["cds [*]"], "once named, always named");
    bench.unsub("cds *");
    assert_eq!(bench.requests(), ["cds []"]);

    let mut bench = Bench::asking(Mode::Delta, &["cds *"]);
    bench.sub("cds a");
    assert_eq!(bench.requests(), ["cds +a"]);
    bench.down("gone");
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n cds +* +a"]);
    bench.unsub("cds *");
    assert_eq!(bench.requests(), ["cds -*"]);
    bench.sub("cds *");
    assert_eq!(bench.requests(), ["cds +*"]);
}

#[test]
fn wildcard_that_was_never_named_is_named_before_it_is_dropped() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    bench.unsub("cds *");
    assert_eq!(
        bench.requests(),
        ["cds [*] version=1 nonce=n1", "cds [] version=1 nonce=n1"]
    );
    assert_eq!(bench.states(), [""; 0]);

    let mut bench = Bench::asking(Mode::Sotw, &["cds *"]);
    bench.sub("cds a");
    bench.unsub("cds *");
    assert_eq!(bench.requests(), ["cds [a]"], "a name drops it as well");
}

#[test]
fn globs_are_asked_for_as_they_stand() {
    let glob = "xdstp://x/T/d/*";
    let mut bench = Bench::asking(Mode::Delta, &[]);
    bench.sub(&format!("cds {glob}"));
    assert_eq!(bench.requests(), [format!("node:n cds +{glob}")]);
    let member = "xdstp://x/T/d/1";
    bench.accept(delta("cds", "n1", &[&format!("{member}@1"), "c@1"], &[]));
    assert_eq!(bench.states(), [format!("cds {member} Acked 1")]);
    bench.requests();
    bench.unsub(&format!("cds {glob}"));
    assert_eq!(bench.requests(), [format!("cds -{glob}")]);
    assert_eq!(bench.states(), [""; 0]);
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
    let mut bench = Bench::asking(Mode::Delta, &["cds *", "eds a", "rds r"]);
    bench.sub("cds x");
    bench.sub("rds s");
    bench.accept(delta("rds", "n1", &["r@1"], &[]));
    bench.accept(delta("cds", "n2", &[], &[]));
    assert_eq!(
        bench.requests(),
        ["rds nonce=n1", "cds nonce=n2", "cds +x", "rds +s"]
    );
    let mut bench = Bench::asking(Mode::Sotw, &["cds *", "eds a", "rds r"]);
    bench.sub("cds x");
    bench.sub("rds s");
    bench.accept(sotw("rds", "1", "n1", &["r@1"]));
    assert_eq!(
        bench.requests(),
        ["rds [r s] version=1 nonce=n1", "cds [* x]"]
    );
}

#[test]
fn e4_names_wait_for_the_verdict_in_sotw_only() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a", "rds r"]);
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
    assert_eq!(bench.requests(), ["eds [a b] version=1 nonce=n1"]);

    let mut bench = Bench::asking(Mode::Delta, &["eds a"]);
    let response = delta("eds", "n1", &["a@1"], &[]);
    bench.sink.handle_response(response).unwrap();
    bench.sub("eds b");
    assert_eq!(bench.requests(), ["eds +b"]);
}

#[test]
fn e9_removed_then_added_is_asked_for_again() {
    let mut bench = Bench::asking(Mode::Delta, &["eds a", "cds *"]);
    bench.accept(delta("eds", "n1", &["a@1"], &[]));
    bench.requests();
    bench.unsub("eds a");
    assert_eq!(bench.sub_again("eds a"), ["+eds a@1"], "still held");
    bench.unsub("cds *");
    bench.sub("cds *");
    assert_eq!(bench.requests(), ["eds +a", "cds +*"]);
    assert_eq!(bench.states(), ["eds a Acked 1"]);
}

#[test]
fn e9_removed_then_added_changes_nothing_in_sotw() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.requests();
    bench.unsub("eds a");
    // The source does not know, and sends on. It is kept, but nobody hears.
    assert_eq!(bench.accept(sotw("eds", "2", "n2", &["a@2"])), [""; 0]);
    assert_eq!(bench.sub_again("eds a"), ["+eds a@2"]);
    assert_eq!(bench.replay("eds a"), ["eds a = 2"]);
    assert_eq!(bench.requests(), ["eds [a] version=2 nonce=n2"]);
    bench.unsub("eds a");
    assert_eq!(bench.sub_again("eds a"), ["+eds a@2"]);
    assert_eq!(bench.requests(), [""; 0]);
}

#[test]
fn e9_a_wildcard_finds_what_lingers_and_not_what_is_wanted_anyway() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds *", "cds a"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1", "b@1"]));
    bench.requests();
    bench.unsub("cds *");
    assert_eq!(bench.sub_again("cds *"), ["+cds b@1"]);
}

#[test]
fn e9_versions_are_told_in_the_first_request_of_a_type_only() {
    let mut bench = Bench::asking(Mode::Delta, &["eds a", "eds b", "eds c"]);
    bench.accept(delta("eds", "n1", &["a@1", "c@"], &[]));
    bench.requests();
    bench.down("gone");
    bench.sink.handle_connected();
    // b is not held, and c has no version.
    assert_eq!(bench.requests(), ["node:n eds +a +b +c held=a@1"]);
    bench.sub("eds d");
    assert_eq!(bench.requests(), ["eds +d"]);
}

#[test]
fn e9_members_of_a_wildcard_are_listed_and_withdrawn_names_are_not() {
    let mut bench = Bench::new(Mode::Delta, |config| {
        config.data_errors = DataErrors::Keep;
    });
    bench = bench.up(&["cds *"]);
    bench.accept(delta("cds", "n1", &["a@1", "b@1", "c@1"], &[]));
    bench.requests();
    bench.judge(delta("cds", "n2", &["c@2"], &["b"]), &[("c", "bad")]);
    assert_eq!(
        bench.states(),
        [
            "cds a Acked 1",
            "cds b DoesNotExist 1 Deleted",
            "cds c Nacked 1 Rejected"
        ]
    );
    bench.sink.handle_connected();
    // The source believes that b is gone; of c it knows what we accepted.
    assert_eq!(bench.requests(), ["node:n cds held=a@1 held=c@1"]);
}

#[test]
fn e9_members_of_globs_are_listed_only_if_so_configured() {
    let (glob, member) = ("xdstp://x/T/d/*", "xdstp://x/T/d/1");
    let held = format!("{member}@1");
    for (listed, wants, expected) in [
        (false, vec![glob], format!("node:n cds +{glob}")),
        (true, vec![glob], format!("node:n cds +{glob} held={held}")),
        (
            false,
            vec![glob, member],
            format!("node:n cds +{glob} +{member} held={held}"),
        ),
        (
            false,
            vec!["*", glob],
            format!("node:n cds +* +{glob} held={held}"),
        ),
    ] {
        let wants: Vec<_> = wants.iter().map(|want| format!("cds {want}")).collect();
        let wants: Vec<_> = wants.iter().map(String::as_str).collect();
        let bench = Bench::new(Mode::Delta, |config| config.glob_versions = listed);
        let mut bench = bench.up(&wants);
        bench.accept(delta("cds", "n1", &[&held], &[]));
        bench.sink.handle_connected();
        assert_eq!(bench.requests(), [expected]);
    }
}

#[test]
fn e9_another_server_is_told_no_versions() {
    let mut bench = Bench::asking(Mode::Delta, &["eds a", "eds b"]);
    bench.accept(delta("eds", "n1", &["a@1", "b@1"], &[]));
    bench.down("gone");
    bench.sink.forget_versions();
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds +a +b"]);
    assert_eq!(bench.accept(delta("eds", "n1", &["a@1"], &[])), [""; 0]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds +a +b held=a@1"]);

    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.sink.forget_versions();
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds [a]"]);
    assert_eq!(bench.states(), ["eds a Acked 1"]);
}

#[test]
fn a_stream_of_one_type_asks_for_no_other() {
    let mut bench = Bench::new(Mode::Delta, |config| {
        config.scope = Scope::Single(type_of("eds"));
    });
    let wrong = bench
        .sink
        .subscribe(&type_of("cds"), Ask::Wildcard, bench.now);
    let error = SinkError::WrongType {
        carries: type_of("eds"),
        wanted: type_of("cds"),
    };
    assert_eq!(error.whose(), Whose::Caller);
    assert_eq!(wrong, Err(error));
    bench.sub("eds a");
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds +a"]);
}

#[test]
fn what_is_asked_for_can_be_seen() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.sub("eds b");
    let interest = bench.sink.interest(&type_of("eds")).unwrap();
    assert_eq!(interest.len(), 2);
    assert_eq!(bench.sink.interest(&type_of("cds")), None);
}
