//! Source and sink together: they agree, and come to an end.

use std::time::Duration;

use testkit::pair::{Pair, put, remove};
use trunkline_core::kind::{CDS, EDS};
use trunkline_core::message::Mode;
use trunkline_core::name::{Name, Selector};

fn both(test: impl Fn(Pair)) {
    for mode in [Mode::Delta, Mode::Sotw] {
        for program in ["envoy", "another"] {
            test(Pair::new(mode, program));
        }
    }
}

fn name(text: &str) -> Selector {
    Selector::Name(Name::new(text))
}

#[test]
fn all_of_a_type_is_followed() {
    both(|mut pair| {
        pair.subscribe(CDS, Selector::Wildcard);
        pair.run();
        pair.apply(vec![put(CDS, "a", "v1"), put(CDS, "b", "v1")]);
        assert_eq!(pair.run(), 1);
        assert_eq!(pair.holds(CDS), ["a@v1", "b@v1"]);
        pair.apply(vec![remove(CDS, "a"), put(CDS, "b", "v2")]);
        pair.run();
        assert_eq!(pair.holds(CDS), ["b@v2"]);
        assert_eq!(pair.run(), 0);
    });
}

#[test]
fn names_are_followed_until_they_are_given_up() {
    both(|mut pair| {
        pair.apply(vec![put(EDS, "a", "v1"), put(EDS, "b", "v1")]);
        pair.subscribe(EDS, name("a"));
        pair.run();
        assert_eq!(pair.holds(EDS), ["a@v1"]);
        pair.subscribe(EDS, name("b"));
        pair.unsubscribe(EDS, &name("a"));
        pair.run();
        pair.apply(vec![put(EDS, "a", "v2"), put(EDS, "b", "v2")]);
        pair.run();
        assert_eq!(pair.holds(EDS), ["b@v2"]);
    });
}

#[test]
// rule: S12 C26
fn one_bad_among_ten_costs_only_itself() {
    both(|mut pair| {
        pair.subscribe(CDS, Selector::Wildcard);
        let all = |body: &str| (0..10).map(|n| put(CDS, &format!("c{n}"), body)).collect();
        pair.apply(all("v1"));
        pair.run();
        let mut next: Vec<_> = all("v2");
        next[5] = put(CDS, "c5", "bad");
        pair.apply(next);
        assert!(pair.run() < 10);
        let held = pair.holds(CDS);
        assert_eq!(held.iter().filter(|r| r.ends_with("@v2")).count(), 9);
        assert!(held.contains(&"c5@v1".to_owned()));
        pair.apply(vec![put(CDS, "c5", "v3")]);
        assert_eq!(pair.run(), 1);
        assert!(pair.holds(CDS).contains(&"c5@v3".to_owned()));
    });
}

#[test]
// rule: S45 S46 C19
fn a_lost_stream_is_taken_up_where_it_was() {
    both(|mut pair| {
        pair.subscribe(CDS, Selector::Wildcard);
        pair.apply(vec![put(CDS, "a", "v1"), put(CDS, "b", "v1")]);
        pair.run();
        pair.disconnect();
        pair.apply(vec![remove(CDS, "a"), put(CDS, "c", "v1")]);
        pair.connect();
        pair.wait(Duration::from_secs(2));
        assert_eq!(pair.holds(CDS), ["b@v1", "c@v1"]);
        pair.connect();
        assert!(pair.run() <= 1);
        assert_eq!(pair.holds(CDS), ["b@v1", "c@v1"]);
    });
}

#[test]
// rule: C32 C34
fn what_does_not_exist_may_still_come() {
    both(|mut pair| {
        pair.subscribe(CDS, name("x"));
        pair.wait(Duration::from_secs(60));
        assert_eq!(pair.holds(CDS), [""; 0]);
        pair.apply(vec![put(CDS, "x", "v1")]);
        pair.run();
        assert_eq!(pair.holds(CDS), ["x@v1"]);
    });
}
