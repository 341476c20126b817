//! Effects of verdicts: C21-C24, C26-C28, E8.

use super::*;

#[test]
fn c21_what_was_not_asked_for_is_left_out() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds a"]);
    let response = sotw("cds", "1", "n1", &["a@1", "b@1"]);
    let delivery = bench.sink.handle_response(response).unwrap();
    assert_eq!(delivery.resources, [resource("a@1")]);
    let verdict = Verdict::accept();
    let (url, nonce) = (&delivery.type_url, &delivery.nonce);
    let acked = bench.sink.handle_verdict(url, nonce, verdict, bench.now);
    assert!(acked.unwrap());
    assert_eq!(bench.effects(), ["+cds a@1"]);
    assert_eq!(bench.states(), ["cds a Acked 1"]);
}

#[test]
fn c21_everything_is_asked_for_by_a_wildcard() {
    let mut bench = Bench::subscribed(Mode::Delta, &["cds *"]);
    let effects = bench.accept(delta("cds", "n1", &["a@1", "b@1"], &["never"]));
    assert_eq!(effects, ["+cds a@1", "+cds b@1"]);
}

#[test]
fn c21_a_delivery_has_all_that_must_be_judged() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a", "eds b", "eds c", "eds d"]);
    bench.accept(delta("eds", "n0", &["a@1"], &[]));
    bench.requests();
    let mut response = delta("eds", "n1", &["b@1", "x@1"], &["c", "x2"]);
    response.resources.extend([beat("a@1!5"), beat("x3@1!5")]);
    let variant = |name| (Name::new(name), Some(constraint("k=v")));
    response.removed_variants = vec![variant("a"), variant("x5")];
    let denied = said("d", ErrorCode::PermissionDenied, "no");
    response.errors = vec![denied.clone(), said("x4", ErrorCode::NotFound, "no")];
    let delivery = bench.sink.handle_response(response).unwrap();
    let expected = Delivery {
        type_url: type_of("eds"),
        nonce: "n1".into(),
        resources: vec![resource("b@1")],
        heartbeats: vec![beat("a@1!5").resource],
        removed: vec![Name::new("c")],
        removed_variants: vec![variant("a")],
        errors: vec![denied],
    };
    assert_eq!(delivery, expected);
}

#[test]
fn c22_nothing_is_read_until_the_last_response_is_finished_with() {
    let mut bench = Bench::new(Mode::Delta, |_| {});
    assert!(!bench.sink.may_read(), "there is no stream");
    bench = bench.up(&["eds a", "rds r"]);
    let (eds, rds) = (type_of("eds"), type_of("rds"));
    assert!(bench.sink.may_read());
    let response = delta("eds", "n1", &["a@1"], &[]);
    bench.sink.handle_response(response).unwrap();
    assert!(!bench.sink.may_read());
    assert!(bench.sink.is_busy(&eds));
    assert!(!bench.sink.is_busy(&rds));
    assert!(!bench.sink.is_busy(&type_of("cds")));
    let early = bench.sink.handle_response(delta("eds", "n2", &[], &[]));
    let error = SinkError::Busy(eds.clone());
    assert_eq!(error.blame(), Blame::Caller);
    assert_eq!(early, Err(error));
    // A transport that looks into messages may read another type.
    bench.accept(delta("rds", "n3", &["r@1"], &[]));
    let other = bench
        .sink
        .handle_verdict(&eds, &"n2".into(), Verdict::accept(), bench.now);
    assert!(other.is_err(), "a verdict on another response");
    let mine = bench
        .sink
        .handle_verdict(&eds, &"n1".into(), Verdict::accept(), bench.now);
    assert!(mine.unwrap());
    assert!(bench.sink.is_busy(&eds), "the answer has not left");
    assert_eq!(bench.requests(), ["rds nonce=n3", "eds nonce=n1"]);
    assert!(bench.sink.may_read());
    bench.down("gone");
    assert!(!bench.sink.may_read());
}

#[test]
fn c22_one_verdict_for_each_response() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    for short in ["eds", "cds"] {
        let type_url = type_of(short);
        let nonce: Nonce = "n1".into();
        let twice = bench
            .sink
            .handle_verdict(&type_url, &nonce, Verdict::accept(), bench.now);
        let error = SinkError::NotJudging { type_url, nonce };
        assert_eq!(error.blame(), Blame::Caller);
        assert_eq!(twice, Err(error));
    }
    assert_eq!(bench.requests(), ["eds [a] version=1 nonce=n1"]);
}

#[test]
fn c23_two_who_ask_for_one_name_ask_once() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.sub("eds a");
    assert_eq!(bench.requests(), [""; 0]);
}

#[test]
fn c23_who_comes_later_hears_what_is_known() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds a", "cds b", "cds c", "cds d"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1", "b@1", "c@1"]));
    bench.requests();
    bench.judge(sotw("cds", "2", "n2", &["a@1", "b@2"]), &[("b", "bad")]);
    assert_eq!(bench.replay("cds a"), [""; 0]);
    assert_eq!(
        bench.replay("cds b"),
        ["cds b ~ Rejected: bad"],
        "C42: the value first"
    );
    let gone = "cds c ! Deleted: the source says that it does not exist";
    assert_eq!(bench.replay("cds c"), [gone]);
    assert_eq!(bench.replay("cds d"), [""; 0]);
    assert_eq!(bench.replay("cds unknown"), [""; 0]);
    assert_eq!(bench.replay("eds a"), [""; 0]);
}

#[test]
fn c24_the_same_again_is_no_news() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.requests();
    assert_eq!(bench.accept(sotw("eds", "2", "n2", &["a@1"])), [""; 0]);
    bench.requests();
    // Another version of the same body is a change for the database only.
    let mut response = sotw("eds", "3", "n3", &[]);
    let mut same = Arc::unwrap_or_clone(resource("a@1"));
    same.version = "1b".into();
    response.resources = vec![WireResource::full(Arc::new(same))].into();
    assert_eq!(bench.accept(response), ["+eds a@1b"]);
    bench.requests();
    let effects = bench.accept(sotw("eds", "4", "n4", &["a@4"]));
    assert_eq!(effects, ["+eds a@4"]);
}

#[test]
fn c24_the_same_again_is_news_if_it_ends_an_error() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.requests();
    bench.judge(sotw("eds", "2", "n2", &["a@2"]), &[("a", "bad")]);
    bench.requests();
    let effects = bench.accept(sotw("eds", "3", "n3", &["a@1"]));
    assert_eq!(effects, ["+eds a@1", "eds a ~ ok"]);
    assert_eq!(bench.states(), ["eds a Acked 1"]);
}

#[test]
fn c26_what_is_good_is_used_though_the_response_is_rejected() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    let (acked, effects) = bench.judge(
        sotw("cds", "1", "n1", &["a@1", "b@1", "c@1"]),
        &[("b", "no port"), ("c", "no name")],
    );
    assert!(!acked);
    assert_eq!(
        effects,
        [
            "+cds a@1",
            "cds b ! Rejected: no port",
            "cds c ! Rejected: no name"
        ]
    );
    assert_eq!(
        bench.states(),
        [
            "cds a Acked 1",
            "cds b Nacked Rejected",
            "cds c Nacked Rejected"
        ]
    );
    let all = "cds [] nonce=n1 error=3:b: no port; c: no name";
    assert_eq!(bench.requests(), [all]);
}

#[test]
fn c26_delta_counts_each_accepted_resource_as_held() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a", "eds b"]);
    bench.judge(delta("eds", "n1", &["a@1", "b@1"], &[]), &[("b", "bad")]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds +a +b held=a@1"]);
}

#[test]
fn c27_a_fault_without_a_name_is_told_to_the_source_only() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    let (acked, effects) = bench.judge(
        sotw("eds", "1", "n1", &["a@1"]),
        &[("", "resource 3 cannot be read")],
    );
    assert!(!acked);
    assert_eq!(effects, ["+eds a@1"]);
    let told = "eds [a] nonce=n1 error=3:resource 3 cannot be read";
    assert_eq!(bench.requests(), [told]);
}

#[test]
fn c27_a_fault_of_one_name_is_told_to_those_who_watch_it() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a", "eds b"]);
    let (_, effects) = bench.judge(
        sotw("eds", "1", "n1", &["a@1", "b@1"]),
        &[("b", "bad"), ("unasked", "bad")],
    );
    assert_eq!(effects, ["+eds a@1", "eds b ! Rejected: bad"]);
    assert_eq!(bench.states().len(), 2);
}

#[test]
fn c28_the_same_error_again_is_no_news() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    for (nonce, reason, effects) in [
        ("n1", "bad", vec!["eds a ! Rejected: bad"]),
        ("n2", "bad", vec![]),
        ("n3", "worse", vec!["eds a ! Rejected: worse"]),
        ("n4", "bad", vec!["eds a ! Rejected: bad"]),
    ] {
        let response = delta("eds", nonce, &["a@1"], &[]);
        assert_eq!(bench.judge(response, &[("a", reason)]).1, effects);
        bench.requests();
    }
    assert_eq!(
        bench.accept(delta("eds", "n5", &[], &["a"])),
        [
            "-eds a",
            "eds a ! Deleted: the source says that it does not exist"
        ]
    );
    bench.requests();
    assert_eq!(bench.accept(delta("eds", "n6", &[], &["a"])), [""; 0]);
}

#[test]
fn e8_listeners_go_before_others_come() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["lds *"]);
    bench.accept(sotw("lds", "1", "n1", &["a@1"]));
    bench.requests();
    let effects = bench.accept(sotw("lds", "2", "n2", &["b@1"]));
    assert_eq!(effects[..2], ["-lds a", "+lds b@1"]);
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    bench.requests();
    let effects = bench.accept(sotw("cds", "2", "n2", &["b@1"]));
    assert_eq!(effects[..2], ["+cds b@1", "-cds a"]);
}

#[test]
fn e8_envoys_rejections_are_internal_errors() {
    let bench = Bench::new(Mode::Sotw, |config| config.nack_code = NackCode::Internal);
    let mut bench = bench.up(&["eds a"]);
    bench.judge(sotw("eds", "1", "n1", &["a@1"]), &[("a", "bad")]);
    assert_eq!(bench.requests(), ["eds [a] nonce=n1 error=13:a: bad"]);
}

#[test]
fn e8_a_long_rejection_is_cut() {
    let bench = Bench::new(Mode::Sotw, |config| config.limits.error_bytes = 8);
    let mut bench = bench.up(&["eds a", "eds b"]);
    let (_, effects) = bench.judge(
        sotw("eds", "1", "n1", &["a@1", "b@1"]),
        &[("a", "12345é789"), ("b", "x")],
    );
    assert_eq!(
        effects,
        ["eds a ! Rejected: 12345é7", "eds b ! Rejected: x"]
    );
    assert_eq!(bench.requests(), ["eds [a b] nonce=n1 error=3:a: 12345"]);
}

#[test]
fn what_is_unsubscribed_while_it_is_judged_is_not_used() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a", "eds b"]);
    let response = delta("eds", "n1", &["a@1", "b@1"], &[]);
    let delivery = bench.sink.handle_response(response).unwrap();
    bench.unsub("eds a");
    assert_eq!(bench.requests(), ["eds -a"]);
    let verdict = Verdict::accept();
    let (url, nonce) = (&delivery.type_url, &delivery.nonce);
    let acked = bench.sink.handle_verdict(url, nonce, verdict, bench.now);
    assert!(acked.unwrap());
    assert_eq!(bench.effects(), ["+eds b@1"]);
    assert_eq!(bench.states(), ["eds b Acked 1"]);
}

#[test]
fn a_name_dropped_beside_a_wildcard_stays_if_it_is_held() {
    let mut bench = Bench::subscribed(Mode::Delta, &["cds *", "cds a", "cds b"]);
    bench.accept(delta("cds", "n1", &["a@1"], &[]));
    bench.requests();
    bench.unsub("cds a");
    bench.unsub("cds b");
    assert_eq!(bench.requests(), ["cds -a -b"]);
    // Whether the wildcard covers a is for the server to say (S23).
    assert_eq!(bench.states(), ["cds a Acked 1"]);
    assert_eq!(bench.due(), None, "nobody waits for b");
}

#[test]
fn a_name_dropped_beside_a_wildcard_stays_if_it_has_an_error() {
    let mut bench = Bench::subscribed(Mode::Delta, &["cds *", "cds a"]);
    bench.judge(delta("cds", "n1", &["a@1"], &[]), &[("a", "bad")]);
    bench.requests();
    bench.unsub("cds a");
    bench.requests();
    assert_eq!(bench.states(), ["cds a Nacked Rejected"]);
}
