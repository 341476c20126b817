//! A sink, answered by hand.

use super::*;

fn full(nonce: &str, text: &str) -> Resources {
    Resources {
        collection: "A".into(),
        version: "s".into(),
        nonce: nonce.into(),
        update: ResourcesUpdate::FullState(resources(text)),
    }
}

fn incremental(nonce: &str, text: &str, removed: &[&str]) -> Resources {
    Resources {
        update: ResourcesUpdate::Incremental {
            resources: resources(text),
            removed: removed.iter().map(|name| (*name).into()).collect(),
        },
        ..full(nonce, "")
    }
}

/// The next request: its nonce and error.
fn says(sink: &mut Sink) -> Option<(String, Option<String>)> {
    let request = sink.machine.poll_request()?;
    let nonce = request.nonce.map(|nonce| nonce.to_string());
    let error = request.error.map(|error| error.message);
    Some((nonce.unwrap_or_default(), error))
}

#[test]
fn m6_a_source_may_send_full_state_although_incremental_was_asked_for() {
    let mut sink = Sink::new(&["A"], true);
    assert!(sink.machine.poll_request().unwrap().incremental);
    sink.handle(full("1", "a@1 b@1"), None);
    assert_eq!(says(&mut sink), Some(("1".to_owned(), None)));
    sink.handle(full("2", "b@2"), None);
    assert_eq!(sink.holds("A"), "b@2");
    // And go back to changes at any time.
    sink.handle(incremental("3", "c@1", &[]), None);
    assert_eq!(sink.holds("A"), "b@2 c@1");
}

#[test]
fn m6_an_incremental_update_that_was_not_asked_for_is_rejected() {
    let mut sink = Sink::new(&["A"], false);
    says(&mut sink);
    sink.handle(full("1", "a@1"), None);
    says(&mut sink);
    sink.handle(incremental("2", "b@1", &["a"]), None);
    let (nonce, error) = says(&mut sink).unwrap();
    assert_eq!(nonce, "2");
    assert!(error.unwrap().contains("not asked for"));
    assert_eq!(sink.holds("A"), "a@1");
}

#[test]
fn m8_an_empty_full_state_empties_the_collection() {
    let mut sink = Sink::new(&["A"], false);
    sink.handle(full("1", "a@1 b@1"), None);
    says(&mut sink);
    sink.handle(full("2", ""), None);
    assert_eq!(sink.holds("A"), "");
}

#[test]
fn m9_the_removal_of_an_unknown_name_is_ignored() {
    let mut sink = Sink::new(&["A"], true);
    says(&mut sink);
    sink.handle(incremental("1", "a@1", &["never"]), None);
    assert_eq!(says(&mut sink), Some(("1".to_owned(), None)));
    assert_eq!(sink.holds("A"), "a@1");
}

#[test]
fn m11_nothing_is_said_before_the_owner_has_applied() {
    let mut sink = Sink::new(&["A"], true);
    says(&mut sink);
    let received = sink.machine.handle_resources(full("1", "a@1")).unwrap();
    assert_eq!(says(&mut sink), None);
    let Received::Delivered(delivery) = received else {
        panic!("{received:?}");
    };
    let expected = [Change::ReplaceAll("A".into(), resources("a@1"))];
    assert_eq!(delivery.changes, expected);
    let second = sink.machine.handle_resources(full("2", "a@2"));
    assert_eq!(second, Err(SinkError::NotAcknowledged("A".into())));
    sink.machine.handle_verdict(&"A".into(), &Verdict::Accept);
    assert_eq!(says(&mut sink), Some(("1".to_owned(), None)));
    assert_eq!(says(&mut sink), None);
}

#[test]
fn m11_a_rejection_names_the_resource_and_leaves_the_last_good_state() {
    let mut sink = Sink::new(&["A"], true);
    says(&mut sink);
    sink.handle(full("1", "a@1"), None);
    says(&mut sink);
    sink.handle(full("2", "a@2 b@1"), Some("b"));
    let said = says(&mut sink);
    let reason = "b: spec.hosts: needed".to_owned();
    assert_eq!(said, Some(("2".to_owned(), Some(reason))));
    assert_eq!(sink.holds("A"), "a@1");
    // A response that cannot be read is a NACK, too.
    let fault = Rejected {
        name: None,
        reason: "resources[0]: no name".to_owned(),
    };
    let read = sink
        .machine
        .handle_malformed(&"A".into(), "3".into(), &fault);
    assert_eq!(read, Ok(()));
    let said = says(&mut sink);
    assert_eq!(said, Some(("3".to_owned(), Some(fault.reason))));
}

#[test]
fn m11_a_name_that_comes_twice_is_rejected() {
    let mut sink = Sink::new(&["A"], true);
    says(&mut sink);
    let twice = [full("1", "a@1 a@2"), incremental("2", "a@1", &["a"])];
    for response in twice {
        sink.handle(response, None);
        let (_, error) = says(&mut sink).unwrap();
        assert_eq!(error.as_deref(), Some("a: the name is in the update twice"));
    }
}

#[test]
fn a_collection_that_was_not_asked_for_changes_nothing() {
    let mut sink = Sink::new(&["B"], true);
    says(&mut sink);
    let received = sink.machine.handle_resources(full("1", "a@1"));
    assert_eq!(received, Err(SinkError::NotAskedFor("A".into())));
    assert_eq!(says(&mut sink), None);
}
