//! How far a client is with what it is to be sent.

use super::stream::Stream;
use crate::change::Change;
use crate::kind::{CDS, EDS, RDS};
use crate::name::Name;

/// Whether all of a type was sent, and whether all of it was answered.
fn progress(stream: &Stream, url: &str) -> (bool, bool) {
    let progress = stream.session.type_progress(&stream.db, &url.into());
    let progress = progress.unwrap();
    (progress.has_sent_all(), progress.is_settled())
}

/// How many resources of a type the client has, and should have.
fn counts(stream: &Stream, url: &str) -> (usize, usize) {
    let progress = stream.session.type_progress(&stream.db, &url.into());
    let progress = progress.unwrap();
    let counts = progress.resource_counts(progress.listed_counts(&stream.db));
    (counts.current, counts.desired)
}

/// The names of a type whose removal is withheld.
fn withheld(stream: &mut Stream, url: &str) -> Vec<Name> {
    let progress = stream.session.type_progress(&stream.db, &url.into());
    let withheld = progress.unwrap().withheld_removals(&mut stream.db);
    withheld.into_iter().cloned().collect()
}

#[test]
fn a_change_is_outstanding_before_the_stream_is_polled() {
    let mut stream = Stream::open();
    stream.put(EDS, "a", "1");
    stream.subscribe(EDS, &["a"]);
    assert_eq!(progress(&stream, EDS), (false, false));
    stream.settle();
    assert_eq!(progress(&stream, EDS), (true, true));
    stream.put(EDS, "a", "2");
    assert_eq!(progress(&stream, EDS), (false, false));
    let sent = stream.poll().unwrap();
    assert_eq!(progress(&stream, EDS), (true, false));
    let types = stream.session.progress(&stream.db);
    let names: Vec<Name> = types[0].unanswered_names().collect();
    assert_eq!(names, ["a".into()]);
    assert_eq!(types[0].unanswered_since(), Some(stream.now));
    stream.put(EDS, "a", "3");
    stream.ack(sent);
    assert_eq!(progress(&stream, EDS), (false, false), "it is newer");
}

#[test]
fn s73_an_addition_that_waits_is_outstanding_and_a_removal_is_withheld() {
    let mut stream = Stream::open();
    stream.put_all(&[(CDS, "c1", "1", &[]), (RDS, "r", "1", &[(CDS, "c1")])]);
    stream.subscribe(CDS, &[]);
    stream.subscribe(RDS, &["r"]);
    stream.settle();
    stream.put_all(&[(CDS, "c2", "1", &[]), (RDS, "r", "2", &[(CDS, "c2")])]);
    let cluster = stream.poll().unwrap();
    assert_eq!(stream.poll(), None);
    assert_eq!(progress(&stream, CDS), (true, false));
    assert_eq!(progress(&stream, RDS), (false, false));
    let removal = Change::Remove(CDS.into(), "c1".into());
    stream.db.apply(vec![removal]).unwrap();
    stream.ack(cluster);
    let route = stream.poll().unwrap();
    assert_eq!(withheld(&mut stream, CDS), ["c1".into()]);
    stream.ack(route);
    stream.poll();
    assert_eq!(progress(&stream, CDS), (true, true));
    assert_eq!(progress(&stream, RDS), (true, true));
}

#[test]
fn what_a_client_has_is_counted_until_it_is_as_it_should_be() {
    let mut stream = Stream::open();
    stream.put_all(&[(CDS, "a", "1", &[]), (CDS, "b", "1", &[])]);
    stream.put(EDS, "a", "1");
    stream.subscribe(CDS, &[]);
    stream.subscribe(EDS, &["a", "none"]);
    assert_eq!(counts(&stream, CDS), (0, 2));
    let first = stream.poll().unwrap();
    assert_eq!(counts(&stream, CDS), (0, 2));
    stream.ack(first);
    stream.settle();
    assert_eq!(counts(&stream, CDS), (2, 2));
    assert_eq!(counts(&stream, EDS), (1, 1), "the other does not exist");

    stream.put(CDS, "b", "2");
    assert_eq!(counts(&stream, CDS), (1, 2));
    let second = stream.poll().unwrap();
    assert_eq!(counts(&stream, CDS), (1, 2));
    stream.nack(second);
    assert_eq!(counts(&stream, CDS), (1, 2), "it rejects one");
    stream.put(EDS, "none", "1");
    stream.settle();
    assert_eq!(counts(&stream, EDS), (2, 2));
}
