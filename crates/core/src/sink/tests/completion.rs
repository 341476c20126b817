//! When a subscription is answered (S51).

use super::*;

const GLOB: &str = "xdstp://x/T/d/*";

fn with_silence(mode: Mode, millis: u64, wants: &[&str]) -> Bench {
    let bench = Bench::new(mode, |config| {
        config.silence = Duration::from_millis(millis);
    });
    bench.up(wants)
}

/// Hands a response over, accepts it, and returns what is complete with it.
fn completes(bench: &mut Bench, response: impl Into<Response>) -> Vec<String> {
    let delivery = bench.sink.handle_response(response).unwrap();
    let (url, nonce) = (&delivery.type_url, &delivery.nonce);
    let verdict = Verdict::accept();
    let judged = bench.sink.handle_verdict(url, nonce, verdict, bench.now);
    judged.unwrap();
    let complete = bench.complete();
    bench.requests();
    complete
}

fn after(bench: &mut Bench, millis: u64) -> Vec<String> {
    bench.now = bench.now + Duration::from_millis(millis);
    bench.sink.handle_timeout(bench.now);
    bench.complete()
}

#[test]
fn s51_a_whole_set_completes_all_that_it_was_asked_for() {
    let mut bench = with_silence(Mode::Sotw, 100, &["cds *", "cds a"]);
    let first = completes(&mut bench, sotw("cds", "1", "n1", &["a@1"]));
    assert_eq!(first, ["cds a", "cds *"]);
    let second = completes(&mut bench, sotw("cds", "2", "n2", &["a@2"]));
    assert_eq!(second, [""; 0], "once");
    // A stream that is lost costs nothing of that.
    bench.down("gone");
    bench.sink.handle_connected();
    bench.requests();
    let third = completes(&mut bench, sotw("cds", "2", "n2", &["a@2"]));
    assert_eq!(third, [""; 0]);
}

#[test]
fn s51_a_set_that_cannot_be_read_is_not_complete() {
    let mut bench = with_silence(Mode::Sotw, 0, &["cds *"]);
    bench.judge(sotw("cds", "1", "n1", &["a@1"]), &[("", "unreadable")]);
    bench.requests();
    assert_eq!(
        completes(&mut bench, sotw("cds", "2", "n2", &["a@1"])),
        ["cds *"]
    );
}

#[test]
fn s51_silence_completes_a_delta_wildcard() {
    let mut bench = with_silence(Mode::Delta, 100, &["cds *", &format!("cds {GLOB}")]);
    assert_eq!(after(&mut bench, 10_000), [""; 0], "nothing was said");
    let first = completes(&mut bench, delta("cds", "n1", &["a@1"], &[]));
    assert_eq!(first, [""; 0]);
    assert_eq!(after(&mut bench, 60), [""; 0]);
    let second = completes(&mut bench, delta("cds", "n2", &["b@1"], &[]));
    assert_eq!(second, [""; 0]);
    assert_eq!(bench.due(), Some(100), "another part, another silence");
    assert_eq!(
        after(&mut bench, 100),
        ["cds *".to_owned(), format!("cds {GLOB}")]
    );
    assert_eq!(bench.due(), None);
}

#[test]
fn s51_one_response_is_all_of_a_server_that_sends_no_parts() {
    let mut bench = with_silence(Mode::Delta, 0, &["cds *"]);
    let first = completes(&mut bench, delta("cds", "n1", &[], &[]));
    assert_eq!(first, ["cds *"]);
}

#[test]
fn s51_a_response_that_may_be_older_than_the_request_needs_silence() {
    for mode in BOTH {
        let mut bench = with_silence(mode, 0, &["cds a"]);
        bench.sub("cds *");
        bench.requests();
        let first = match mode {
            Mode::Sotw => completes(&mut bench, sotw("cds", "1", "n1", &["a@1"])),
            Mode::Delta => completes(&mut bench, delta("cds", "n1", &["a@1"], &[])),
        };
        assert_eq!(first, ["cds a"]);
        assert_eq!(bench.due(), Some(5_000));
        assert_eq!(after(&mut bench, 5_000), ["cds *"]);
    }
    // The second whole set is newer.
    let mut bench = with_silence(Mode::Sotw, 0, &["cds a"]);
    bench.sub("cds *");
    bench.requests();
    completes(&mut bench, sotw("cds", "1", "n1", &["a@1"]));
    let second = completes(&mut bench, sotw("cds", "2", "n2", &["a@1", "b@1"]));
    assert_eq!(second, ["cds *"]);
}

#[test]
fn s51_a_lost_stream_begins_again() {
    let mut bench = with_silence(Mode::Delta, 100, &["cds *"]);
    completes(&mut bench, delta("cds", "n1", &["a@1"], &[]));
    bench.down("gone");
    assert_eq!(bench.due(), None);
    bench.sink.handle_connected();
    bench.requests();
    completes(&mut bench, delta("cds", "n1", &[], &[]));
    assert_eq!(after(&mut bench, 100), ["cds *"]);
}

#[test]
fn s51_an_error_or_a_removal_of_a_collection_answers_it() {
    for removed in [false, true] {
        let mut bench = with_silence(Mode::Delta, 100, &[&format!("cds {GLOB}"), "cds *"]);
        let mut response = delta("cds", "n1", &[], &[]);
        match removed {
            true => response.removed = vec![Name::new(GLOB)],
            false => response.errors = vec![said(GLOB, ErrorCode::NotFound, "none")],
        }
        let first = completes(&mut bench, response);
        assert_eq!(first, [format!("cds {GLOB}")]);
        assert_eq!(after(&mut bench, 100), ["cds *"]);
    }
}

#[test]
fn s51_what_was_removed_a_moment_ago_is_still_complete() {
    let mut bench = with_silence(Mode::Sotw, 0, &["cds *", "eds a"]);
    completes(&mut bench, sotw("cds", "1", "n1", &[]));
    completes(&mut bench, sotw("eds", "1", "n1", &["a@1"]));
    for want in ["cds *", "eds a"] {
        bench.unsub(want);
        let (type_url, name) = split(want);
        let subscribed = bench.sink.subscribe(&type_url, located(name), bench.now);
        subscribed.unwrap();
        assert_eq!(bench.complete(), [want]);
        bench.unsub(want);
        while bench.sink.poll_request(bench.now).is_some() {}
        bench.sub(want);
        assert_eq!(bench.complete(), [""; 0], "the server was told");
    }
}

#[test]
fn s51_parameters_that_the_server_does_not_tell_apart_are_answered_together() {
    let mut bench = with_silence(Mode::Sotw, 0, &["cds *", "cds a"]);
    completes(&mut bench, sotw("cds", "1", "n1", &["a@1"]));
    for want in ["cds *{env=prod}", "cds a{env=prod}"] {
        let (type_url, name) = split(want);
        let subscribed = bench.sink.subscribe(&type_url, located(name), bench.now);
        subscribed.unwrap();
        assert_eq!(bench.complete(), [want]);
    }
}

#[test]
fn s51_a_name_is_answered_by_a_resource_a_removal_an_error_or_silence() {
    let wants = ["eds a", "eds b", "eds c", "eds d", "eds e"];
    let mut bench = with_silence(Mode::Delta, 0, &wants);
    let mut response = delta("eds", "n1", &["a@1", "x@1#d"], &["b"]);
    response.errors = vec![said("c", ErrorCode::Unavailable, "busy")];
    let first = completes(&mut bench, response);
    assert_eq!(first, ["eds a", "eds d", "eds c", "eds b"]);
    assert_eq!(after(&mut bench, 15_000), ["eds e"]);
    let later = completes(&mut bench, delta("eds", "n2", &["a@2"], &["d"]));
    assert_eq!(later, [""; 0]);
}

#[test]
fn tp2_a_variant_answers_those_whom_it_is_for() {
    let bench = Bench::new(Mode::Delta, |config| config.locators = true);
    let mut bench = bench.up(&["eds a{env=prod}", "eds a{env=test}", "eds a{env=dev}"]);
    let prod_or_dev = "a@1[env=prod OR env=dev]";
    let first = completes(&mut bench, delta("eds", "n1", &[prod_or_dev], &[]));
    assert_eq!(first, ["eds a{env=dev}", "eds a{env=prod}"]);
    let second = completes(&mut bench, delta("eds", "n2", &["a@2[env=test]"], &[]));
    assert_eq!(second, ["eds a{env=test}"]);
}
