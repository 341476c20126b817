//! Subscriptions to wildcards and globs.

use super::*;

#[test]
fn wildcard_alone_is_an_empty_first_request() {
    let mut bench = Bench::subscribed(Mode::Sotw, &[]);
    bench.sub("cds *");
    assert_eq!(bench.requests(), ["node:n cds []"]);
    bench.accept(sotw("cds", "1", "n1", &[]));
    assert_eq!(bench.requests(), ["cds [] version=1 nonce=n1"]);
    let mut bench = Bench::subscribed(Mode::Delta, &[]);
    bench.sub("cds *");
    assert_eq!(bench.requests(), ["node:n cds"]);
}

#[test]
fn wildcard_of_a_type_without_the_empty_form_is_named() {
    let mut bench = Bench::subscribed(Mode::Sotw, &[]);
    bench.sub("other *");
    assert_eq!(bench.requests(), ["node:n other [*]"]);
    let mut bench = Bench::subscribed(Mode::Delta, &[]);
    bench.sub("other *");
    assert_eq!(bench.requests(), ["node:n other +*"]);
}

#[test]
fn wildcard_beside_names_is_named() {
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.sub("cds a");
    assert_eq!(bench.requests(), ["cds [* a]"]);
    bench.unsub("cds a");
    assert_eq!(bench.requests(), ["cds [*]"], "once named, always named");
    bench.unsub("cds *");
    assert_eq!(bench.requests(), ["cds []"]);

    let mut bench = Bench::subscribed(Mode::Delta, &["cds *"]);
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
    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.accept(sotw("cds", "1", "n1", &["a@1"]));
    bench.unsub("cds *");
    assert_eq!(
        bench.requests(),
        [
            "cds [] version=1 nonce=n1",
            "cds [*] version=1 nonce=n1",
            "cds [] version=1 nonce=n1"
        ]
    );
    assert_eq!(bench.states(), [""; 0]);

    let mut bench = Bench::subscribed(Mode::Sotw, &["cds *"]);
    bench.sub("cds a");
    bench.unsub("cds *");
    assert_eq!(bench.requests(), ["cds [a]"], "a name drops it as well");
}

#[test]
fn globs_are_asked_for_as_they_stand() {
    let glob = "xdstp://x/T/d/*";
    let mut bench = Bench::subscribed(Mode::Delta, &[]);
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
