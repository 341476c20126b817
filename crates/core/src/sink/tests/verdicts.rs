//! What a verdict brings about: C21-C24, C26-C31, C43, E8, E9.

use super::*;

#[test]
fn c21_what_was_not_asked_for_is_left_out() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds a"]);
    let response = sotw("cds", "1", "n1", &["a@1", "b@1"]);
    let delivery = bench.sink.handle_response(response).unwrap();
    assert_eq!(delivery.resources, [resource("a@1")]);
    let verdict = Verdict::accept();
    let outcome =
        bench
            .sink
            .handle_verdict(&delivery.type_url, &delivery.nonce, verdict, bench.now);
    assert_eq!(show(&outcome.unwrap().effects), ["+cds a@1", "cds a = 1"]);
    assert_eq!(bench.states(), ["cds a Acked 1"]);
}

#[test]
fn c21_everything_is_asked_for_by_a_wildcard() {
    let mut bench = Bench::asking(Mode::Delta, &["cds *"]);
    let effects = bench.accept(delta("cds", "n1", &["a@1", "b@1"], &["never"]));
    assert_eq!(effects, ["+cds a@1", "+cds b@1", "cds a = 1", "cds b = 1"]);
}

#[test]
fn c21_a_delivery_has_all_that_must_be_judged() {
    let mut bench = Bench::asking(Mode::Delta, &["eds a", "eds b", "eds c", "eds d"]);
    bench.accept(delta("eds", "n0", &["a@1"], &[]));
    bench.requests();
    let mut response = delta("eds", "n1", &["b@1", "x@1"], &["c", "x2"]);
    response.resources.extend([beat("a@1!5"), beat("x3@1!5")]);
    let denied = said("d", ErrorCode::PermissionDenied, "no");
    response.errors = vec![denied.clone(), said("x4", ErrorCode::NotFound, "no")];
    let delivery = bench.sink.handle_response(response).unwrap();
    let expected = Delivery {
        type_url: type_of("eds"),
        nonce: "n1".into(),
        resources: vec![resource("b@1")],
        heartbeats: vec![beat("a@1!5").resource],
        removed: vec![Name::new("c")],
        removed_variants: vec![],
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
    assert_eq!(error.whose(), Whose::Caller);
    assert_eq!(early, Err(error));
    // Another type may be read by who looks.
    bench.accept(delta("rds", "n3", &["r@1"], &[]));
    let other = bench
        .sink
        .handle_verdict(&eds, &"n2".into(), Verdict::accept(), bench.now);
    assert!(other.is_err(), "a verdict on another response");
    let mine = bench
        .sink
        .handle_verdict(&eds, &"n1".into(), Verdict::accept(), bench.now);
    assert!(mine.unwrap().acked);
    assert!(bench.sink.is_busy(&eds), "the answer has not left");
    assert_eq!(bench.requests(), ["rds nonce=n3", "eds nonce=n1"]);
    assert!(bench.sink.may_read());
    bench.down("gone");
    assert!(!bench.sink.may_read());
}

#[test]
fn c22_one_verdict_for_each_response() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    for short in ["eds", "cds"] {
        let type_url = type_of(short);
        let nonce: Nonce = "n1".into();
        let twice = bench
            .sink
            .handle_verdict(&type_url, &nonce, Verdict::accept(), bench.now);
        let error = SinkError::NotJudging { type_url, nonce };
        assert_eq!(error.whose(), Whose::Caller);
        assert_eq!(twice, Err(error));
    }
    assert_eq!(bench.requests(), ["eds [a] version=1 nonce=n1"]);
}

#[test]
fn c23_two_who_ask_for_one_name_ask_once() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.sub("eds a");
    assert_eq!(bench.requests(), [""; 0]);
}

#[test]
fn c23_who_comes_later_hears_what_is_known() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds a", "cds b", "cds c", "cds d"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1", "b@1", "c@1"]));
    bench.requests();
    bench.judge(sotw("cds", "2", "n2", &["a@1", "b@2"]), &[("b", "bad")]);
    assert_eq!(bench.replay("cds a"), ["cds a = 1"]);
    assert_eq!(
        bench.replay("cds b"),
        ["cds b = 1", "cds b ~ Rejected: bad"],
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
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.requests();
    assert_eq!(bench.accept(sotw("eds", "2", "n2", &["a@1"])), [""; 0]);
    bench.requests();
    // Another version of the same contents is news for a database only.
    let mut response = sotw("eds", "3", "n3", &[]);
    let mut same = Arc::unwrap_or_clone(resource("a@1"));
    same.version = "1b".into();
    response.resources.push(Delivered::full(Arc::new(same)));
    assert_eq!(bench.accept(response), ["+eds a@1b"]);
    bench.requests();
    let effects = bench.accept(sotw("eds", "4", "n4", &["a@4"]));
    assert_eq!(effects, ["+eds a@4", "eds a = 4"]);
}

#[test]
fn c24_the_same_again_is_news_if_it_ends_an_error() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.requests();
    bench.judge(sotw("eds", "2", "n2", &["a@2"]), &[("a", "bad")]);
    bench.requests();
    let effects = bench.accept(sotw("eds", "3", "n3", &["a@1"]));
    assert_eq!(effects, ["+eds a@1", "eds a = 1"]);
    assert_eq!(bench.states(), ["eds a Acked 1"]);
}

#[test]
fn c26_what_is_good_is_used_though_the_response_is_rejected() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds *"]);
    let (acked, effects) = bench.judge(
        sotw("cds", "1", "n1", &["a@1", "b@1", "c@1"]),
        &[("b", "no port"), ("c", "no name")],
    );
    assert!(!acked);
    assert_eq!(
        effects,
        [
            "+cds a@1",
            "cds a = 1",
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
    let mut bench = Bench::asking(Mode::Delta, &["eds a", "eds b"]);
    bench.judge(delta("eds", "n1", &["a@1", "b@1"], &[]), &[("b", "bad")]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds +a +b held=a@1"]);
}

#[test]
fn c27_a_fault_without_a_name_is_told_to_the_source_only() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a"]);
    let (acked, effects) = bench.judge(
        sotw("eds", "1", "n1", &["a@1"]),
        &[("", "resource 3 cannot be read")],
    );
    assert!(!acked);
    assert_eq!(effects, ["+eds a@1", "eds a = 1"]);
    let told = "eds [a] nonce=n1 error=3:resource 3 cannot be read";
    assert_eq!(bench.requests(), [told]);
}

#[test]
fn c27_a_fault_of_one_name_is_told_to_those_who_watch_it() {
    let mut bench = Bench::asking(Mode::Sotw, &["eds a", "eds b"]);
    let (_, effects) = bench.judge(
        sotw("eds", "1", "n1", &["a@1", "b@1"]),
        &[("b", "bad"), ("unasked", "bad")],
    );
    assert_eq!(effects, ["+eds a@1", "eds a = 1", "eds b ! Rejected: bad"]);
    assert_eq!(bench.states().len(), 2);
}

#[test]
fn c28_the_same_error_again_is_no_news() {
    let mut bench = Bench::asking(Mode::Delta, &["eds a"]);
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
fn c29_what_a_whole_set_leaves_out_is_deleted() {
    for short in ["cds", "lds"] {
        let mut bench = Bench::asking(Mode::Sotw, &[&format!("{short} *")]);
        bench.accept(sotw(short, "1", "n1", &["a@1", "b@1"]));
        bench.requests();
        let effects = bench.accept(sotw(short, "2", "n2", &["b@1"]));
        let gone = "a ! Deleted: the source says that it does not exist";
        assert_eq!(effects, [format!("-{short} a"), format!("{short} {gone}")]);
        assert_eq!(bench.states(), [format!("{short} b Acked 1")]);
        bench.requests();
        bench.accept(sotw(short, "3", "n3", &[]));
        assert_eq!(bench.states(), [""; 0]);
    }
}

#[test]
fn c29_a_name_that_was_asked_for_is_remembered_as_deleted() {
    let mut bench = Bench::asking(Mode::Sotw, &["lds a"]);
    bench.accept(sotw("lds", "1", "n1", &["a@1"]));
    bench.requests();
    bench.accept(sotw("lds", "2", "n2", &[]));
    assert_eq!(bench.states(), ["lds a DoesNotExist Deleted"]);
    bench.requests();
    let effects = bench.accept(sotw("lds", "3", "n3", &["a@1"]));
    assert_eq!(effects, ["+lds a@1", "lds a = 1"]);
}

#[test]
fn c29_what_a_partial_set_leaves_out_means_nothing() {
    for short in ["eds", "rds", "other"] {
        let wants = [format!("{short} a"), format!("{short} b")];
        let mut bench = Bench::asking(Mode::Sotw, &[&wants[0], &wants[1]]);
        bench.accept(sotw(short, "1", "n1", &["a@1", "b@1"]));
        bench.requests();
        assert_eq!(bench.accept(sotw(short, "2", "n2", &[])), [""; 0]);
        assert_eq!(bench.states().len(), 2);
    }
}

#[test]
fn c29_what_a_delta_response_leaves_out_means_nothing() {
    let mut bench = Bench::asking(Mode::Delta, &["cds *"]);
    bench.accept(delta("cds", "n1", &["a@1", "b@1"], &[]));
    bench.requests();
    assert_eq!(bench.accept(delta("cds", "n2", &[], &[])), [""; 0]);
    bench.requests();
    let effects = bench.accept(delta("cds", "n3", &["c@1"], &["a"]));
    let gone = "cds a ! Deleted: the source says that it does not exist";
    assert_eq!(effects, ["+cds c@1", "-cds a", "cds c = 1", gone]);
    assert_eq!(bench.states(), ["cds b Acked 1", "cds c Acked 1"]);
}

#[test]
fn c30_absence_proves_nothing_of_what_was_never_there() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds a", "cds b"]);
    let effects = bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    assert_eq!(effects, ["+cds a@1", "cds a = 1"]);
    assert_eq!(bench.states(), ["cds a Acked 1", "cds b Requested"]);
    assert_eq!(bench.due(), Some(15_000));
}

#[test]
fn c30_a_rejected_member_that_is_left_out_is_forgotten() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds *"]);
    bench.judge(sotw("cds", "1", "n1", &["a@1"]), &[("a", "bad")]);
    bench.requests();
    assert_eq!(bench.accept(sotw("cds", "2", "n2", &[])), [""; 0]);
    assert_eq!(bench.states(), [""; 0]);
}

#[test]
fn c31_what_is_invalid_is_not_absent() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1", "b@1"]));
    bench.requests();
    let (_, effects) = bench.judge(sotw("cds", "2", "n2", &["a@2"]), &[("a", "bad")]);
    assert_eq!(
        effects,
        [
            "-cds b",
            "cds a ~ Rejected: bad",
            "cds b ! Deleted: the source says that it does not exist"
        ]
    );
    assert_eq!(bench.states(), ["cds a Nacked 1 Rejected"]);
}

#[test]
fn c31_what_cannot_be_named_may_be_any_of_them() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1", "b@1"]));
    bench.requests();
    let (_, effects) = bench.judge(sotw("cds", "2", "n2", &["a@1"]), &[("", "unreadable")]);
    assert_eq!(effects, [""; 0]);
    assert_eq!(bench.states(), ["cds a Acked 1", "cds b Acked 1"]);
}

#[test]
fn c31_what_has_an_error_is_not_absent() {
    let mut bench = Bench::asking(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    bench.requests();
    let mut response = sotw("cds", "2", "n2", &[]);
    response.errors = vec![said("a", ErrorCode::Unavailable, "busy")];
    assert_eq!(
        bench.accept(response),
        ["!cds a Unavailable", "cds a ~ Source(Unavailable): busy"]
    );
}

#[test]
fn e8_listeners_go_before_others_come() {
    let mut bench = Bench::asking(Mode::Sotw, &["lds *"]);
    bench.accept(sotw("lds", "1", "n1", &["a@1"]));
    bench.requests();
    let effects = bench.accept(sotw("lds", "2", "n2", &["b@1"]));
    assert_eq!(effects[..2], ["-lds a", "+lds b@1"]);
    let mut bench = Bench::asking(Mode::Sotw, &["cds *"]);
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
fn an_alias_answers_for_the_name_that_was_asked_for() {
    let mut bench = Bench::asking(Mode::Delta, &["vhds r/a", "vhds r/b"]);
    let effects = bench.accept(delta("vhds", "n1", &["r/w@1#r/a#r/b#r/c"], &[]));
    assert_eq!(
        effects,
        ["+vhds r/w@1", "vhds r/a = 1", "vhds r/b = 1"],
        "nobody asked for r/w and r/c"
    );
    assert_eq!(
        bench.states(),
        ["vhds r/a Acked 1", "vhds r/b Acked 1", "vhds r/w Acked 1"]
    );
    assert_eq!(bench.due(), None, "both are answered");
    bench.requests();
    // An alias that is lost does not exist.
    let effects = bench.accept(delta("vhds", "n2", &["r/w@2#r/a"], &[]));
    let gone =
        |name: &str| format!("vhds {name} ! Deleted: the source says that it does not exist");
    assert_eq!(
        effects,
        ["+vhds r/w@2", "-vhds r/b", "vhds r/a = 2", &gone("r/b")]
    );
    bench.requests();
    let effects = bench.accept(delta("vhds", "n3", &[], &["r/w"]));
    assert_eq!(effects, ["-vhds r/a", "-vhds r/w", &gone("r/a")]);
}

#[test]
fn an_alias_may_pass_to_another_resource() {
    let mut bench = Bench::asking(Mode::Delta, &["vhds r/a"]);
    bench.accept(delta("vhds", "n1", &["r/w@1#r/a"], &[]));
    bench.requests();
    let effects = bench.accept(delta("vhds", "n2", &["r/v@2#r/a"], &["r/w"]));
    assert_eq!(effects, ["+vhds r/v@2", "-vhds r/w", "vhds r/a = 2"]);
    assert_eq!(bench.states(), ["vhds r/a Acked 2", "vhds r/v Acked 2"]);
    bench.requests();
    bench.unsub("vhds r/a");
    bench.requests();
    assert_eq!(bench.states(), [""; 0], "nothing keeps r/v");
}

#[test]
fn versions_are_told_under_the_resources_own_name() {
    let mut bench = Bench::asking(Mode::Delta, &["vhds r/a"]);
    bench.accept(delta("vhds", "n1", &["r/w@1#r/a"], &[]));
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n vhds +r/a held=r/w@1"]);
}

#[test]
fn a_resource_without_a_body_does_not_exist() {
    let mut bench = Bench::asking(Mode::Delta, &["vhds r/a"]);
    let mut response = delta("vhds", "n1", &[], &[]);
    response.resources.push(nothing("r/a@#r/a"));
    let gone = "vhds r/a ! Deleted: the source says that it does not exist";
    assert_eq!(bench.accept(response), ["-vhds r/a", gone]);
    assert_eq!(bench.states(), ["vhds r/a DoesNotExist Deleted"]);
    assert_eq!(bench.due(), None);
    // The subscription stays, and it may still appear.
    bench.requests();
    let effects = bench.accept(delta("vhds", "n2", &["r/a@1"], &[]));
    assert_eq!(effects, ["+vhds r/a@1", "vhds r/a = 1"]);
}

#[test]
fn what_is_unsubscribed_while_it_is_judged_is_not_used() {
    let mut bench = Bench::asking(Mode::Delta, &["eds a", "eds b"]);
    let response = delta("eds", "n1", &["a@1", "b@1"], &[]);
    let delivery = bench.sink.handle_response(response).unwrap();
    bench.unsub("eds a");
    assert_eq!(bench.requests(), ["eds -a"]);
    let verdict = Verdict::accept();
    let outcome =
        bench
            .sink
            .handle_verdict(&delivery.type_url, &delivery.nonce, verdict, bench.now);
    assert_eq!(show(&outcome.unwrap().effects), ["+eds b@1", "eds b = 1"]);
    assert_eq!(bench.states(), ["eds b Acked 1"]);
}

#[test]
fn a_name_dropped_beside_a_wildcard_stays_if_it_is_held() {
    let mut bench = Bench::asking(Mode::Delta, &["cds *", "cds a", "cds b"]);
    bench.accept(delta("cds", "n1", &["a@1"], &[]));
    bench.requests();
    bench.unsub("cds a");
    bench.unsub("cds b");
    assert_eq!(bench.requests(), ["cds -a -b"]);
    // Whether a is one of all is for the source to say (S23).
    assert_eq!(bench.states(), ["cds a Acked 1"]);
    assert_eq!(bench.due(), None, "nobody waits for b");
}
