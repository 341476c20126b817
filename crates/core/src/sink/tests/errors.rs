//! Errors that watchers get: C36, C39-C44.

use super::*;

/// `cds a` is cached at 1, `cds b` is not; both are subscribed to.
fn half_held(mode: Mode, policy: DataErrors) -> Bench {
    let bench = Bench::new(mode, |config| config.data_errors = policy);
    let mut bench = bench.up(&["cds a", "cds b"]);
    match mode {
        Mode::Sotw => bench.accept(sotw("cds", "1", "n1", &["a@1"])),
        Mode::Delta => bench.accept(delta("cds", "n1", &["a@1"], &[])),
    };
    bench.requests();
    bench
}

#[test]
fn c36_a_stream_without_a_response_is_an_error_for_everyone() {
    let mut bench = half_held(Mode::Sotw, DataErrors::Fail);
    bench.sub("eds c");
    bench.down("reset");
    bench.sink.handle_connected();
    bench.requests();
    let events = [
        "cds a ~ Unreachable: refused",
        "cds b ! Unreachable: refused",
        "eds c ! Unreachable: refused",
    ];
    assert!(!bench.sink.got_response());
    assert_eq!(bench.down("refused"), events, "C40: a is kept");
    assert_eq!(bench.down("refused"), [""; 0], "C28");
    assert_eq!(bench.down("timeout").len(), 3);
    assert_eq!(
        bench.states(),
        ["cds a Acked 1", "cds b Requested", "eds c Requested"]
    );
}

#[test]
fn c36_a_stream_that_answered_may_end() {
    let mut bench = half_held(Mode::Sotw, DataErrors::Obey);
    assert!(bench.sink.got_response());
    assert_eq!(bench.down("reset"), [""; 0]);
    assert!(bench.sink.got_response(), "for the back-off");
    bench.sink.handle_connected();
    assert!(!bench.sink.got_response());
}

#[test]
fn c36_any_response_counts() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    let unasked = bench.sink.handle_response(sotw("cds", "1", "n", &[]));
    assert!(unasked.is_err());
    assert!(bench.sink.got_response());
    assert_eq!(bench.down("reset"), [""; 0]);
    // The next attempt does not even become a stream.
    assert_eq!(bench.down("refused"), ["eds a ! Unreachable: refused"]);
    assert!(!bench.sink.got_response());
}

#[test]
fn c36_nobody_hears_of_what_nobody_wants() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a", "eds b"]);
    bench.unsub("eds a");
    assert_eq!(bench.down("reset"), ["eds b ! Unreachable: reset"]);
}

#[test]
fn c39_the_first_verdict_clears_what_was_said_of_the_stream() {
    let mut bench = half_held(Mode::Sotw, DataErrors::Obey);
    bench.sub("eds c");
    bench.requests();
    bench.wait(15_000);
    bench.sub("eds d");
    bench.down("reset");
    bench.down("refused");
    bench.sink.handle_connected();
    bench.requests();
    let effects = bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    let silent = "! Silent: the source did not answer in time";
    assert_eq!(
        effects,
        [
            "cds a ~ ok".to_owned(),
            format!("cds b {silent}"),
            format!("eds c {silent}"),
        ],
        "each is what it was before; of d nothing is known"
    );
    bench.requests();
    assert_eq!(bench.accept(sotw("cds", "1", "n2", &["a@1"])), [""; 0]);
}

#[test]
fn c39_an_older_error_comes_back_when_the_stream_does() {
    let mut bench = half_held(Mode::Sotw, DataErrors::Obey);
    bench.judge(sotw("cds", "2", "n2", &["a@2"]), &[("a", "bad")]);
    bench.down("reset");
    bench.down("refused");
    bench.sink.handle_connected();
    bench.requests();
    let mut response = sotw("cds", "2", "n1", &[]);
    response.errors = vec![said("b", ErrorCode::Unavailable, "busy")];
    let (_, effects) = bench.judge(response, &[("a", "bad")]);
    assert_eq!(
        effects,
        [
            "!cds b Unavailable",
            "cds b ! Source(Unavailable): busy",
            "cds a ~ Rejected: bad"
        ]
    );
}

#[test]
fn c40_c41_the_table() {
    use DataErrors::{Fail, Keep, Obey};
    use ErrorCode::{NotFound, Other, PermissionDenied, Unavailable};
    let source = |code| {
        let mut response = delta("cds", "n2", &[], &[]);
        response.errors = vec![said("a", code, "why"), said("b", code, "why")];
        (response, &[][..])
    };
    let nack = || {
        let response = delta("cds", "n2", &["a@2", "b@2"], &[]);
        (response, &[("a", "why"), ("b", "why")][..])
    };
    let removed = || (delta("cds", "n2", &[], &["a", "b"]), &[][..]);
    let gone = "Deleted: the source says that it does not exist";
    for (policy, (response, rejected), error, dropped) in [
        (Obey, source(Unavailable), "Source(Unavailable): why", false),
        (Keep, source(Unavailable), "Source(Unavailable): why", false),
        (Fail, source(Unavailable), "Source(Unavailable): why", false),
        (Fail, source(Other(13)), "Source(Other(13)): why", false),
        (Obey, source(NotFound), "Source(NotFound): why", true),
        (Keep, source(NotFound), "Source(NotFound): why", false),
        (Fail, source(NotFound), "Source(NotFound): why", true),
        (
            Keep,
            source(PermissionDenied),
            "Source(PermissionDenied): why",
            false,
        ),
        (
            Fail,
            source(PermissionDenied),
            "Source(PermissionDenied): why",
            true,
        ),
        (Obey, nack(), "Rejected: why", false),
        (Keep, nack(), "Rejected: why", false),
        (Fail, nack(), "Rejected: why", true),
        (Obey, removed(), gone, true),
        (Keep, removed(), gone, false),
        (Fail, removed(), gone, true),
    ] {
        let mut bench = half_held(Mode::Delta, policy);
        let (_, effects) = bench.judge(response, rejected);
        let events: Vec<_> = effects.iter().filter(|e| e.starts_with("cds")).collect();
        let fate = if dropped { "!" } else { "~" };
        let expected = [format!("cds a {fate} {error}"), format!("cds b ! {error}")];
        assert_eq!(events, expected.iter().collect::<Vec<_>>(), "{policy:?}");
        let removed = effects.iter().any(|effect| effect == "-cds a");
        assert_eq!(removed, dropped, "{policy:?} {error}");
        let held = bench.states()[0].contains(" 1");
        assert_eq!(held, !dropped, "{policy:?} {error}");
    }
}

#[test]
fn c41_a_deletion_by_absence_can_be_kept_in_use() {
    let mut bench = half_held(Mode::Sotw, DataErrors::Keep);
    let gone = "Deleted: the source says that it does not exist";
    let effects = bench.accept(sotw("cds", "2", "n2", &[]));
    assert_eq!(effects, [format!("cds a ~ {gone}")]);
    assert_eq!(
        bench.states(),
        ["cds a DoesNotExist 1 Deleted", "cds b Requested"]
    );
    bench.requests();
    assert_eq!(bench.accept(sotw("cds", "3", "n3", &[])), [""; 0]);
    bench.requests();
    let effects = bench.accept(sotw("cds", "4", "n4", &["a@1"]));
    assert_eq!(effects, ["+cds a@1", "cds a ~ ok"]);
}

#[test]
fn c42_a_new_watcher_hears_the_value_then_the_error() {
    let mut bench = half_held(Mode::Sotw, DataErrors::Obey);
    bench.judge(sotw("cds", "2", "n2", &["a@2"]), &[("a", "bad")]);
    assert_eq!(bench.replay("cds a"), ["cds a ~ Rejected: bad"]);
    bench.down("reset");
    bench.down("refused");
    assert_eq!(bench.replay("cds a"), ["cds a ~ Unreachable: refused"]);
    assert_eq!(bench.replay("cds b"), ["cds b ! Unreachable: refused"]);
}

#[test]
fn c43_an_error_of_the_source_is_remembered_until_replaced() {
    for mode in [Mode::Sotw, Mode::Delta] {
        let mut bench = half_held(mode, DataErrors::Obey);
        let errors = vec![said("b", ErrorCode::NotFound, "none")];
        let mut respond = |nonce: &str, resources: &[&str], errors| {
            let effects = match mode {
                Mode::Sotw => {
                    let response = sotw("cds", nonce, nonce, resources);
                    bench.accept(SotwResponse { errors, ..response })
                }
                Mode::Delta => {
                    let response = delta("cds", nonce, resources, &[]);
                    bench.accept(DeltaResponse { errors, ..response })
                }
            };
            bench.requests();
            (effects, bench.states()[1].clone(), bench.due())
        };
        let (effects, state, due) = respond("n2", &["a@1"], errors);
        assert_eq!(
            effects,
            ["!cds b NotFound", "cds b ! Source(NotFound): none"]
        );
        assert_eq!(state, "cds b ReceivedError Source(NotFound)");
        assert_eq!(due, None, "the wait is over");
        let (effects, state, _) = respond("n3", &["a@1"], vec![]);
        assert_eq!(effects, [""; 0], "it is said once");
        assert_eq!(state, "cds b ReceivedError Source(NotFound)");
        let other = vec![said("b", ErrorCode::Unavailable, "busy")];
        let (_, state, _) = respond("n4", &["a@1"], other);
        assert_eq!(state, "cds b ReceivedError Source(Unavailable)");
        let (effects, state, _) = respond("n5", &["a@1", "b@1"], vec![]);
        assert_eq!(effects, ["+cds b@1"]);
        assert_eq!(state, "cds b Acked 1");
    }
}

#[test]
fn c43_members_of_a_wildcard_can_have_errors_too() {
    let mut bench = Bench::subscribed(Mode::Delta, &["cds *"]);
    let mut response = delta("cds", "n1", &[], &[]);
    response.errors = vec![said("a", ErrorCode::Unavailable, "busy")];
    bench.accept(response);
    bench.requests();
    assert_eq!(bench.states(), ["cds a ReceivedError Source(Unavailable)"]);
    bench.unsub("cds *");
    bench.requests();
    assert_eq!(bench.states(), [""; 0]);
}

#[test]
fn c44_the_states_of_a_name() {
    let bench = Bench::new(Mode::Delta, |config| {
        config.fetch_timeout = FetchTimeout::UNAVAILABLE;
    });
    let mut bench = bench.up(&["eds a", "eds b", "eds c", "eds d", "eds e"]);
    bench.wait(15_000);
    bench.sub("eds f");
    bench.requests();
    let mut response = delta("eds", "n1", &["a@1", "b@1"], &["c"]);
    response.errors = vec![said("d", ErrorCode::Unavailable, "busy")];
    bench.judge(response, &[("b", "bad")]);
    bench.wait(15_000);
    assert_eq!(
        bench.states(),
        [
            "eds a Acked 1",
            "eds b Nacked Rejected",
            "eds c DoesNotExist Deleted",
            "eds d ReceivedError Source(Unavailable)",
            "eds e Timeout TimedOut",
            "eds f Requested",
        ]
    );
}

#[test]
fn c43_an_error_of_a_collection_is_passed_on_and_nobodys() {
    let glob = "xdstp://x/T/d/*";
    for (want, name) in [
        ("cds *", "*"),
        ("cds *", ""),
        (&format!("cds {glob}"), glob),
    ] {
        let mut bench = Bench::subscribed(Mode::Delta, &[want]);
        let mut response = delta("cds", "n1", &[], &[]);
        response.errors = vec![
            said(name, ErrorCode::Unavailable, "busy"),
            said("xdstp://x/T/e/*", ErrorCode::Unavailable, "busy"),
        ];
        if want == "cds *" {
            response.errors.truncate(1);
        }
        assert_eq!(bench.accept(response), [format!("!cds {name} Unavailable")]);
        assert_eq!(bench.states(), [""; 0]);
    }
}

#[test]
fn c43_a_withdrawal_comes_before_its_reason() {
    let mut bench = half_held(Mode::Delta, DataErrors::Obey);
    let mut response = delta("cds", "n2", &[], &[]);
    response.errors = vec![said("a", ErrorCode::NotFound, "none")];
    assert_eq!(
        bench.accept(response),
        [
            "-cds a",
            "!cds a NotFound",
            "cds a ! Source(NotFound): none"
        ]
    );
}
