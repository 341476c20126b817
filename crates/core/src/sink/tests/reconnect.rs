//! State that outlives a stream, or stays until a request is sent: C19, C25,
//! E9.

use super::*;

#[test]
fn c19_a_new_stream_keeps_versions_and_clears_nonces() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *", "eds a"]);
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
        let mut bench = Bench::subscribed(mode, &["rds r", "eds a"]);
        match mode {
            Mode::Sotw => bench.accept(sotw("eds", "1", "n1", &["a@1"])),
            Mode::Delta => bench.accept(delta("eds", "n1", &["a@1"], &[])),
        };
        // A stream may be replaced without word of its end.
        bench.sink.handle_connected();
        let expected = match mode {
            Mode::Sotw => ["node:n rds [r]", "eds [a] version=1"],
            Mode::Delta => ["node:n rds +r", "eds +a held=a@1"],
        };
        assert_eq!(bench.requests(), expected);
    }
}

#[test]
fn c19_an_unjudged_response_is_dropped_with_its_stream() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
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
fn c25_a_new_stream_does_not_mention_what_nobody_wants() {
    for mode in BOTH {
        let mut bench = Bench::subscribed(mode, &["cds a", "eds b"]);
        bench.unsub("cds a");
        bench.sink.handle_disconnected("gone");
        assert_eq!(bench.forgotten(), ["cds a"]);
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
fn c25_a_version_goes_with_what_it_was_of() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.down("gone");
    bench.unsub("eds a");
    bench.sub("eds b");
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds [b]"]);
}

#[test]
fn e9_removed_then_added_is_asked_for_again() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a", "cds *"]);
    bench.accept(delta("eds", "n1", &["a@1"], &[]));
    bench.requests();
    bench.unsub("eds a");
    bench.sub("eds a");
    bench.unsub("cds *");
    bench.sub("cds *");
    assert_eq!(bench.requests(), ["eds +a", "cds +*"]);
    assert_eq!(bench.states(), ["eds a Acked 1"]);
    assert_eq!(bench.forgotten(), [""; 0]);
}

#[test]
fn e9_removed_then_added_changes_nothing_in_sotw() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.requests();
    bench.unsub("eds a");
    // The server does not know, and sends on. The database is kept current.
    assert_eq!(bench.accept(sotw("eds", "2", "n2", &["a@2"])), ["+eds a@2"]);
    bench.sub("eds a");
    assert_eq!(bench.requests(), ["eds [a] version=2 nonce=n2"]);
    bench.unsub("eds a");
    bench.sub("eds a");
    assert_eq!(bench.requests(), [""; 0]);
    assert_eq!(bench.forgotten(), [""; 0]);
}

#[test]
fn e9_a_wildcard_finds_the_errors_that_linger_and_not_those_that_were_told() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *", "cds a"]);
    let response = sotw("cds", "1", "n1", &["a@1", "b@1", "c@1"]);
    bench.judge(response, &[("a", "bad"), ("b", "bad")]);
    bench.requests();
    bench.unsub("cds *");
    assert_eq!(bench.sub_again("cds *"), ["cds b ! Rejected: bad"]);
    assert_eq!(bench.sub_again("cds *"), [""; 0]);
}

#[test]
fn e9_versions_are_told_in_the_first_request_of_a_type_only() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a", "eds b", "eds c"]);
    bench.accept(delta("eds", "n1", &["a@1", "c@"], &[]));
    bench.requests();
    bench.down("gone");
    bench.sink.handle_connected();
    // b is not cached, and c has no version.
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
    // The server believes that b is removed; of c it knows what we ACKed.
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
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a", "eds b"]);
    bench.accept(delta("eds", "n1", &["a@1", "b@1"], &[]));
    bench.down("gone");
    bench.sink.forget_versions();
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds +a +b"]);
    assert_eq!(bench.accept(delta("eds", "n1", &["a@1"], &[])), [""; 0]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds +a +b held=a@1"]);

    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.sink.forget_versions();
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds [a]"]);
    assert_eq!(bench.states(), ["eds a Acked 1"]);
}

#[test]
fn c25_a_version_stays_with_what_is_wanted_again() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.unsub("eds a");
    bench.requests();
    bench.sub("eds b");
    bench.requests();
    bench.accept(sotw("eds", "2", "n2", &["b@2"]));
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds [b] version=2"]);
}

#[test]
fn c25_a_version_of_which_nothing_was_kept_is_not_told() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.requests();
    bench.unsub("cds *");
    assert_eq!(bench.requests(), ["cds [*]", "cds []"]);
    bench.sub("cds *");
    // The response to the first subscription, whose end the server does not
    // know yet.
    bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n cds []"]);
}

#[test]
fn c25_names_are_forgotten_when_the_server_was_told() {
    let globs = ["cds xdstp://x/T/d/*", "cds xdstp://x/T/e/*"];
    let mut bench = Bench::subscribed(Mode::Sotw, &globs);
    let members = ["xdstp://x/T/d/1@1", "xdstp://x/T/e/1@1"];
    bench.accept(sotw("cds", "1", "n1", &members));
    bench.requests();
    globs.iter().for_each(|glob| bench.unsub(glob));
    bench.sub(globs[1]);
    assert_eq!(bench.forgotten(), [""; 0]);
    assert_eq!(
        bench.requests(),
        ["cds [xdstp://x/T/e/*] version=1 nonce=n1"]
    );
    assert_eq!(bench.forgotten(), ["cds xdstp://x/T/d/1"]);
}

#[test]
fn e9_members_of_a_glob_that_are_not_sent_again_are_gone() {
    let glob = "eds xdstp://x/T/d/*";
    let (one, two) = ("xdstp://x/T/d/1@1", "xdstp://x/T/d/2@1");
    let second = Duration::from_secs(1);
    let bench = Bench::new(Mode::Delta, |config| config.silence = second);
    let mut bench = bench.up(&[glob]);
    bench.accept(delta("eds", "n1", &[one, two], &[]));
    bench.requests();
    bench.wait(2_000);
    bench.down("gone");
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n eds +xdstp://x/T/d/*"]);
    bench.accept(delta("eds", "n2", &[one], &[]));
    assert_eq!(bench.states().len(), 2, "more may come");
    bench.wait(2_000);
    assert_eq!(bench.states(), ["eds xdstp://x/T/d/1 Acked 1"]);
}

#[test]
fn e9_a_rejected_member_that_is_not_sent_again_is_gone() {
    for again in [&["b@1"][..], &[]] {
        let mut bench = Bench::subscribed(Mode::Delta, &["cds *"]);
        bench.judge(delta("cds", "n1", &["a@1", "b@1"], &[]), &[("b", "bad")]);
        bench.requests();
        bench.down("gone");
        bench.sink.handle_connected();
        assert_eq!(bench.requests(), ["node:n cds held=a@1"]);
        let bad = [("b", "bad")];
        bench.judge(delta("cds", "n2", again, &[]), &bad[..again.len()]);
        let expected = ["cds a Acked 1", "cds b Nacked Rejected"];
        assert_eq!(bench.states(), expected[..1 + again.len()]);
    }
}

#[test]
fn e9_a_name_that_a_wildcard_covers_outlives_a_subscription_of_its_own() {
    let mut bench = Bench::subscribed(Mode::Delta, &["cds *", "cds a"]);
    bench.accept(delta("cds", "n1", &["a@1"], &[]));
    bench.requests();
    bench.down("gone");
    bench.unsub("cds a");
    assert_eq!(bench.forgotten(), [""; 0]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n cds held=a@1"]);
}

/// A sink of a server with locators.
fn located(wants: &[&str]) -> Bench {
    Bench::new(Mode::Delta, |config| config.locators = true).up(wants)
}

#[test]
fn e9_a_variant_that_the_server_was_told_of_stays_beside_a_new_one() {
    let mut bench = located(&["cds *{env=prod}", "cds a{env=prod}"]);
    bench.accept(delta("cds", "n1", &["a@1[env=prod]"], &[]));
    bench.requests();
    bench.down("gone");
    bench.sink.handle_connected();
    let requests = bench.requests();
    assert!(requests[0].ends_with("held=a@1"), "{requests:?}");
    bench.sub("cds a{env=test}");
    bench.requests();
    let effects = bench.accept(delta("cds", "n2", &["a@2[env=test]"], &[]));
    assert_eq!(effects, ["+cds a@2[env=test]"]);
}

#[test]
fn e9_a_version_is_not_told_where_several_parameters_cover_the_name() {
    let mut bench = located(&["cds a{env=prod}", "cds a{env=test}"]);
    bench.accept(delta("cds", "n1", &["a@1[env=prod]"], &[]));
    bench.requests();
    bench.down("gone");
    bench.sink.handle_connected();
    let request = "node:n cds +a{env=prod} +a{env=test}";
    assert_eq!(bench.requests(), [request]);
}
