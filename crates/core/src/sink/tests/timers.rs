//! Time: C32-C35, E2, E10.

use super::*;

const SILENT: &str = "the source did not answer in time";

#[test]
fn c32_time_runs_from_the_message_that_asks() {
    for mode in [Mode::Sotw, Mode::Delta] {
        let mut bench = Bench::new(mode, |_| {});
        bench.sub("eds a");
        bench.sub("cds *");
        assert_eq!(bench.due(), None, "no stream");
        bench.sink.handle_connected();
        assert_eq!(bench.due(), None, "not sent");
        assert_eq!(bench.wait(5_000), [""; 0]);
        bench.requests();
        assert_eq!(bench.due(), Some(15_000));
        assert_eq!(bench.wait(10_000), [""; 0]);
        bench.sub("eds b");
        bench.requests();
        assert_eq!(bench.due(), Some(5_000), "each name has its own");
        let late = |name: &str| format!("eds {name} ! Silent: {SILENT}");
        assert_eq!(bench.wait(4_999), [""; 0]);
        assert_eq!(bench.wait(1), [late("a")]);
        assert_eq!(bench.due(), Some(10_000));
        assert_eq!(bench.wait(10_000), [late("b")]);
        assert_eq!(bench.due(), None);
        let states = ["eds a DoesNotExist Silent", "eds b DoesNotExist Silent"];
        assert_eq!(bench.states(), states);
    }
}

#[test]
fn c32_an_answer_ends_the_wait() {
    for rejected in [&[][..], &[("a", "bad")]] {
        let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
        bench.judge(delta("eds", "n1", &["a@1"], &[]), rejected);
        assert_eq!(bench.due(), None);
    }
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    bench.accept(delta("eds", "n1", &[], &["a"]));
    assert_eq!(bench.due(), None);
}

#[test]
fn c32_nobody_waits_for_what_nobody_wants() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a", "eds b"]);
    bench.unsub("eds a");
    assert_eq!(bench.due(), Some(15_000), "not told yet");
    bench.wait(15_000);
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    bench.unsub("eds a");
    bench.requests();
    assert_eq!(bench.due(), None);
}

#[test]
fn c32_silence_about_what_is_about_to_be_dropped_is_told_to_nobody() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.unsub("eds a");
    assert_eq!(bench.wait(15_000), [""; 0]);
    let silent = [format!("eds a ! Silent: {SILENT}")];
    assert_eq!(bench.sub_again("eds a"), silent);
    assert_eq!(bench.replay("eds a"), silent);
}

#[test]
fn c33_time_stops_with_the_stream_and_starts_in_full() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a", "eds b", "eds c"]);
    bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    bench.wait(14_000);
    bench.down("gone");
    assert_eq!(bench.due(), None);
    assert_eq!(bench.wait(60_000), [""; 0]);
    bench.sink.handle_connected();
    bench.requests();
    assert_eq!(bench.due(), Some(15_000));
    assert_eq!(
        bench.wait(15_000),
        [
            format!("eds b ! Silent: {SILENT}"),
            format!("eds c ! Silent: {SILENT}")
        ],
        "a is held"
    );
    // That they do not exist is known: a new stream does not wait again.
    bench.sink.handle_connected();
    bench.requests();
    assert_eq!(bench.due(), None);
}

#[test]
fn c34_what_was_silent_may_still_appear() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["eds a"]);
    bench.wait(15_000);
    let effects = bench.accept(sotw("eds", "1", "n1", &["a@1"]));
    assert_eq!(effects, ["+eds a@1"]);
    assert_eq!(bench.states(), ["eds a Acked 1"]);
}

#[test]
fn c35_silence_can_be_a_passing_failure() {
    let bench = Bench::new(Mode::Sotw, |config| {
        config.fetch_timeout = FetchTimeout::UNAVAILABLE;
    });
    let mut bench = bench.up(&["eds a"]);
    assert_eq!(bench.due(), Some(30_000));
    let effects = bench.wait(30_000);
    assert_eq!(effects, [format!("eds a ! TimedOut: {SILENT}")]);
    assert_eq!(bench.states(), ["eds a Timeout TimedOut"]);
    // Whether it exists is not known, so a new stream waits again.
    bench.sink.handle_connected();
    bench.requests();
    assert_eq!(bench.due(), Some(30_000));
    assert_eq!(bench.wait(30_000), [""; 0], "C28");
}

#[test]
fn a_name_may_wait_for_ever() {
    let bench = Bench::new(Mode::Sotw, |config| {
        config.fetch_timeout = FetchTimeout::Never;
    });
    assert_eq!(bench.up(&["eds a"]).due(), None);
}

#[test]
fn e2_time_can_run_from_the_subscription() {
    let mut bench = Bench::new(Mode::Sotw, |config| {
        config.fetch_start = FetchStart::Subscribed;
    });
    bench.sub("eds a");
    bench.sub("cds *");
    assert_eq!(bench.due(), Some(15_000), "without a stream");
    bench.wait(5_000);
    bench.sub("eds a");
    assert_eq!(bench.due(), Some(10_000), "asked twice, waited for once");
    bench.sink.handle_connected();
    bench.requests();
    assert_eq!(bench.due(), Some(10_000));
    bench.down("gone");
    assert_eq!(bench.due(), Some(10_000), "a lost stream does not stop it");
    assert_eq!(bench.wait(10_000), [format!("eds a ! Silent: {SILENT}")]);
    bench.sink.handle_connected();
    bench.requests();
    assert_eq!(bench.due(), None);
}

#[test]
fn e10_what_is_not_refreshed_is_removed() {
    for policy in [DataErrors::Obey, DataErrors::Keep, DataErrors::Fail] {
        let bench = Bench::new(Mode::Delta, |config| config.data_errors = policy);
        let mut bench = bench.up(&["cds *", "eds a"]);
        bench.accept(delta("cds", "n1", &["m@1!100", "n@1"], &[]));
        bench.accept(delta("eds", "n2", &["a@1!200"], &[]));
        assert_eq!(bench.due(), Some(100));
        assert_eq!(bench.wait(99), [""; 0]);
        let expired = "Expired: not refreshed within its ttl";
        let gone = format!("cds m ! {expired}");
        assert_eq!(bench.wait(1), ["-cds m".to_owned(), gone]);
        let gone = format!("eds a ! {expired}");
        assert_eq!(bench.wait(100), ["-eds a".to_owned(), gone]);
        assert_eq!(
            bench.states(),
            ["cds n Acked 1", "eds a DoesNotExist Expired"]
        );
        assert_eq!(bench.due(), None);
        bench.sink.handle_connected();
        assert_eq!(bench.requests(), ["node:n cds held=n@1", "eds +a"]);
    }
}

#[test]
fn e10_a_ttl_goes_on_without_a_stream() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    bench.accept(delta("eds", "n1", &["a@1!100"], &[]));
    bench.down("gone");
    assert_eq!(bench.due(), Some(100));
}

#[test]
fn e10_a_heartbeat_refreshes_and_is_no_news() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    bench.accept(delta("eds", "n1", &["a@1!100"], &[]));
    bench.requests();
    for (nonce, wait, text, due) in [
        ("n2", 60, "a@1!100", Some(100)),
        ("n3", 30, "a@2!500", Some(70)), // of another version than is held
        ("n4", 30, "b@1!500", Some(40)), // of what is not held
        ("n5", 30, "a@1", None),
    ] {
        bench.wait(wait);
        let mut response = delta("eds", nonce, &[], &[]);
        response.resources.extend([beat(text)]);
        assert_eq!(bench.accept(response), [""; 0]);
        assert_eq!(bench.due(), due, "{nonce}");
        assert_eq!(bench.requests(), [format!("eds nonce={nonce}")]);
    }
    assert_eq!(bench.states(), ["eds a Acked 1"]);
}

#[test]
fn e10_a_heartbeat_is_no_whole_set() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1!100", "b@1"]));
    bench.requests();
    bench.wait(50);
    let mut response = sotw("cds", "1", "n2", &[]);
    response.resources = vec![beat("a@1!100")].into();
    assert_eq!(bench.accept(response), [""; 0]);
    assert_eq!(bench.due(), Some(100));
    assert_eq!(bench.states(), ["cds a Acked 1", "cds b Acked 1"]);
}

#[test]
fn e10_a_resource_without_a_ttl_has_none() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    bench.accept(delta("eds", "n1", &["a@1!100"], &[]));
    bench.requests();
    let effects = bench.accept(delta("eds", "n2", &["a@1"], &[]));
    assert_eq!(effects, ["+eds a@1"], "a database must know");
    assert_eq!(bench.due(), None);
}

#[test]
fn e10_what_is_rejected_does_not_refresh() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a"]);
    bench.accept(delta("eds", "n1", &["a@1!100"], &[]));
    bench.requests();
    bench.wait(50);
    bench.judge(delta("eds", "n2", &["a@2!100"], &[]), &[("a", "bad")]);
    assert_eq!(bench.due(), Some(50));
}

#[test]
fn e10_what_is_gone_has_no_ttl() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds a", "eds b"]);
    bench.accept(delta("eds", "n1", &["a@1!100", "b@1!200"], &[]));
    bench.requests();
    bench.accept(delta("eds", "n2", &[], &["a"]));
    assert_eq!(bench.due(), Some(200));
    bench.unsub("eds b");
    bench.requests();
    assert_eq!(bench.due(), None);
}

#[test]
fn e10_hosts_learned_on_demand_do_not_run_out() {
    let mut bench = Bench::subscribed(Mode::Delta, &["vhds r/a"]);
    bench.accept(delta("vhds", "n1", &["r/a@1!100"], &[]));
    assert_eq!(bench.due(), None);
}

#[test]
fn e10_an_alias_runs_out_with_its_resource() {
    let mut bench = Bench::subscribed(Mode::Delta, &["eds x"]);
    bench.accept(delta("eds", "n1", &["a@1#x!100"], &[]));
    let effects = bench.wait(100);
    assert_eq!(effects[..2], ["-eds a", "-eds x"]);
    assert_eq!(
        effects[2..],
        ["eds x ! Expired: not refreshed within its ttl"]
    );
    assert_eq!(bench.states(), ["eds x DoesNotExist Expired"]);
}
