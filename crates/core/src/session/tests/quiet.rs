//! When a stream need not be polled.

use super::stream::{Stream, env};
use crate::database::{Database, SLICE};
use crate::kind::{CDS, EDS, RDS, SDS};
use crate::message::Mode;
use crate::session::Config;

#[test]
fn a_stream_is_quiet_while_an_ack_is_pending_and_when_there_is_nothing_new() {
    let mut stream = Stream::open();
    assert!(stream.is_quiet());
    stream.put(EDS, "a", "1");
    stream.subscribe(EDS, &["a"]);
    assert!(!stream.is_quiet());
    let first = stream.poll().unwrap();
    assert!(stream.is_quiet());
    stream.put(EDS, "a", "2");
    assert!(stream.is_quiet(), "the ACK comes first");
    stream.ack(first);
    assert!(!stream.is_quiet());
    stream.settle();
    assert!(stream.is_quiet());
    stream.put(SDS, "s", "1");
    stream.subscribe(SDS, &["s"]);
    assert!(!stream.is_quiet(), "one type is not");
}

#[test]
fn s73_a_stream_with_deferred_names_is_quiet_until_the_database_changes() {
    let mut stream = Stream::open();
    stream.put_all(&[(CDS, "c1", "1", &[]), (RDS, "r", "1", &[(CDS, "c1")])]);
    stream.subscribe(CDS, &[]);
    stream.subscribe(RDS, &["r"]);
    stream.settle();
    stream.put_all(&[(CDS, "c2", "1", &[]), (RDS, "r", "2", &[(CDS, "c2")])]);
    let cluster = stream.poll().unwrap();
    assert_eq!(cluster.resources.len(), 1);
    assert_eq!(stream.poll(), None);
    assert!(
        stream.is_quiet(),
        "the route waits for the ACK of its cluster"
    );
    stream.put(CDS, "c3", "1");
    assert!(!stream.is_quiet());
    assert_eq!(stream.poll(), None);
    stream.ack(cluster);
    assert!(!stream.is_quiet());
    stream.settle();
    assert!(stream.is_quiet());
}

#[test]
fn tp2_a_stream_is_not_quiet_after_its_parameters_changed() {
    let mut stream = Stream::with_variants("x", &[EDS]);
    stream.subscribe(EDS, &["a"]);
    stream.settle();
    assert!(stream.is_quiet());
    stream.session.set_params(&mut stream.db, env("y"));
    assert!(!stream.is_quiet());
    stream.settle();
    assert!(stream.is_quiet());
}

#[test]
fn s85_a_stream_is_not_quiet_while_a_request_is_not_read_to_its_end() {
    let mut stream = Stream::open();
    let names: Vec<String> = (0..=SLICE).map(|nth| nth.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    stream.subscribe(EDS, &["a"]);
    stream.settle();
    stream.subscribe(EDS, &names);
    assert!(!stream.is_quiet());
    assert_eq!(stream.poll(), None);
    assert!(stream.session.has_more());
    assert_eq!(
        stream.session.status().next().unwrap().subscriptions,
        SLICE + 2
    );
    assert!(stream.poll().is_some());
}

#[test]
fn s85_a_stream_has_more_while_names_are_left_to_evaluate() {
    let mut stream = Stream::over(Database::cache(), Config::new(Mode::Delta));
    let names: Vec<String> = (0..4 * SLICE).map(|nth| nth.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    stream.subscribe(EDS, &names);
    // The first slice of the request was read.
    for _ in 1..4 {
        assert_eq!(stream.poll(), None);
        assert!(stream.session.has_more());
    }
    assert_eq!(
        stream.session.status().next().unwrap().subscriptions,
        4 * SLICE
    );
    for has_more in [true, false] {
        assert!(!stream.is_quiet());
        assert_eq!(stream.poll(), None, "nothing is known of any name");
        assert_eq!(stream.session.has_more(), has_more);
    }
    assert!(stream.is_quiet());
}
