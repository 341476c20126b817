//! A source, asked by hand.

use super::*;

#[test]
fn m1_collections_are_conversations_of_their_own() {
    let mut source = Source::with(&[("A", "a@1"), ("B", "b@1")]);
    source.handle(first("A", false));
    source.handle(first("B", true));
    let a = source.sends("A 1 full: a@1");
    let b = source.sends("B 2 incremental: b@1");
    // One of them rejects and the other goes on; a nonce is of one collection.
    let crossed = RequestResources {
        nonce: Some(b.nonce.clone()),
        ..first("A", false)
    };
    assert_eq!(source.handle(crossed), Handled::Stale);
    assert_eq!(source.handle(nack(&a, false)), Handled::Nack(error("no")));
    assert_eq!(source.handle(ack(&b, true)), Handled::Ack);
    source.set("B", "b@2");
    source.sends("B 3 incremental: b@2");
    source.is_silent();
}

#[test]
fn m2_changes_meanwhile_are_one_response() {
    let mut source = Source::with(&[("A", "a@1")]);
    source.handle(first("A", true));
    let one = source.sends("A 1 incremental: a@1");
    for state in ["a@2", "a@3 b@1", "a@4 c@1"] {
        source.set("A", state);
        source.is_silent();
    }
    assert_eq!(source.machine.pending().count(), 1);
    source.handle(ack(&one, true));
    let two = source.sends("A 2 incremental: a@4 c@1");
    source.set("A", "a@5");
    source.set("A", "a@4 c@1");
    source.handle(ack(&two, true));
    source.is_silent();
}

#[test]
fn m3_an_error_makes_a_nack_whatever_else_is_said() {
    let mut source = Source::with(&[("A", "a@1")]);
    source.handle(first("A", false));
    let response = source.sends("A 1 full: a@1");
    // The text and the code say nothing, its presence does.
    let empty = ErrorDetail {
        code: 0,
        message: String::new(),
    };
    let request = RequestResources {
        error: Some(empty.clone()),
        ..ack(&response, false)
    };
    assert_eq!(source.handle(request), Handled::Nack(empty));
    assert!(!source.machine.is_current(&source.db));
}

#[test]
fn m4_a_stale_nonce_is_ignored_and_counted() {
    let mut source = Source::with(&[("A", "a@1")]);
    source.handle(first("A", false));
    let one = source.sends("A 1 full: a@1");
    source.handle(ack(&one, false));
    source.set("A", "a@2");
    let two = source.sends("A 2 full: a@2");
    assert_eq!(source.handle(nack(&one, false)), Handled::Stale);
    let unknown = RequestResources {
        nonce: Some(Nonce::new("x")),
        ..first("A", true)
    };
    assert_eq!(source.handle(unknown), Handled::Stale);
    assert_eq!((source.machine.stale(), source.machine.nacks()), (2, 0));
    // It still waits for the newest, which may be acknowledged twice.
    source.is_silent();
    assert_eq!(source.handle(ack(&two, false)), Handled::Ack);
    assert_eq!(source.handle(ack(&two, false)), Handled::Ack);
    source.is_silent();
}

#[test]
fn m5_no_rejected_set_is_sent_again_and_a_changed_one_at_once() {
    let mut source = Source::with(&[("A", "a@1")]);
    source.handle(first("A", true));
    let one = source.sends("A 1 incremental: a@1");
    source.handle(ack(&one, true));
    source.set("A", "a@2");
    let two = source.sends("A 2 incremental: a@2");
    source.set("A", "a@3");
    source.handle(nack(&two, true));
    let three = source.sends("A 3 incremental: a@3");
    source.handle(nack(&three, true));
    // Both are known to be bad, and what the sink holds need not be sent.
    for state in ["a@2", "a@3", "a@1"] {
        source.set("A", state);
        source.is_silent();
    }
    source.set("A", "a@1 b@1");
    source.sends("A 4 incremental: b@1");
}

#[test]
fn m6_incremental_is_agreed_message_by_message() {
    let mut source = Source::with(&[("A", "a@1 b@1")]);
    source.handle(first("A", true));
    let one = source.sends("A 1 incremental: a@1 b@1");
    source.handle(ack(&one, false));
    source.set("A", "a@2 b@1");
    let two = source.sends("A 2 full: a@2 b@1");
    source.handle(ack(&two, true));
    source.set("A", "a@2 b@2");
    source.sends("A 3 incremental: b@2");
}

#[test]
fn m7_initial_versions_count_in_the_first_request() {
    let claim = |incremental| RequestResources {
        initial_versions: vec![("a".into(), "1".into()), ("gone".into(), "1".into())].into(),
        ..first("A", incremental)
    };
    let mut source = Source::with(&[("A", "a@1 b@1")]);
    source.handle(claim(true));
    let one = source.sends("A 1 incremental: b@1 -gone");
    // Later they say nothing.
    let later = RequestResources {
        nonce: Some(one.nonce.clone()),
        ..claim(true)
    };
    source.handle(later);
    source.set("A", "a@1 b@1 c@1");
    source.sends("A 2 incremental: c@1");
    // Nor where the whole state is sent, and a sink that holds it all hears so.
    let mut source = Source::with(&[("A", "a@1")]);
    source.handle(claim(false));
    source.sends("A 1 full: a@1");
    let mut source = Source::with(&[("A", "a@1 gone@1")]);
    source.handle(claim(true));
    source.sends("A 1 incremental:");
}

#[test]
fn m7_a_resumption_that_is_rejected_leaves_what_was_claimed() {
    let mut source = Source::with(&[("A", "a@2 b@1")]);
    let claim = RequestResources {
        initial_versions: vec![("a".into(), "1".into())].into(),
        ..first("A", true)
    };
    source.handle(claim);
    let one = source.sends("A 1 incremental: a@2 b@1");
    source.handle(nack(&one, true));
    source.is_silent();
    source.set("A", "a@1 b@1");
    source.sends("A 2 incremental: b@1");
}

#[test]
fn m10_a_collection_that_is_not_there_is_empty_and_may_appear() {
    let mut source = Source::with(&[("A", "a@1")]);
    source.handle(first("A", false));
    source.handle(first("B", true));
    source.sends("A 1 full: a@1");
    let empty = source.sends("B 2 full:");
    source.handle(ack(&empty, true));
    source.is_silent();
    source.set("B", "b@1");
    source.sends("B 3 incremental: b@1");
}

#[test]
fn m10_a_source_of_one_collection_says_what_it_serves() {
    let mut source = Source::new(Served::Only("A".into()));
    source.handle(first("A", false));
    let asked = source
        .machine
        .handle_request(&mut source.db, first("B", false));
    let error = asked.unwrap_err();
    let expected = "the collection B is not served here; ask for A";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn m10_one_collection_too_many_ends_no_other() {
    let mut source = Source::with(&[("A", "a@1")]);
    for number in 0..1024 {
        assert_eq!(
            source.handle(first(&format!("c{number}"), false)),
            Handled::First
        );
    }
    assert_eq!(source.handle(first("A", false)), Handled::Refused);
    source.sends("c0 1 full:");
}

#[test]
fn m13_to_ask_again_without_a_nonce_restarts_the_collection() {
    let mut source = Source::with(&[("A", "a@1")]);
    source.handle(first("A", false));
    let one = source.sends("A 1 full: a@1");
    // Also with a response outstanding, whose nonce is stale from then on.
    assert_eq!(source.handle(first("A", true)), Handled::Restarted);
    let two = source.sends("A 2 incremental: a@1");
    assert_eq!(source.handle(ack(&one, true)), Handled::Stale);
    source.handle(nack(&two, true));
    source.is_silent();
    assert_eq!(source.handle(first("A", true)), Handled::Restarted);
    let three = source.sends("A 3 incremental: a@1");
    source.handle(ack(&three, true));
    assert_eq!(source.handle(first("A", true)), Handled::Restarted);
    source.sends("A 4 incremental: a@1");
}

#[test]
fn a_change_wakes_the_streams_that_asked_for_its_collection() {
    let mut source = Source::with(&[("A", "a@1"), ("B", "b@1")]);
    source.handle(first("A", true));
    source.db.take_woken_streams();
    source.set("B", "b@2");
    assert_eq!(source.db.take_woken_streams(), []);
    source.set("A", "a@2");
    assert_eq!(source.db.take_woken_streams(), [source.machine.stream()]);
}

#[test]
fn m6_an_incremental_change_costs_what_changed() {
    let all: Vec<_> = (0..5_000).map(|n| format!("n{n}@1")).collect();
    let mut source = Source::new(Served::Any);
    source.set("A", &all.join(" "));
    source.handle(first("A", true));
    let one = source.machine.poll_resources(&mut source.db).unwrap();
    assert_eq!(one.update.resources().len(), all.len());
    source.handle(ack(&one, true));
    let before = source.db.work().entries;
    let change = Change::Upsert("A".into(), resource("n7@2"));
    source.db.apply(vec![change]).unwrap();
    let two = source.machine.poll_resources(&mut source.db).unwrap();
    assert_eq!(words(&two), "A 2 incremental: n7@2");
    let entries = source.db.work().entries - before;
    assert!(entries < 10, "{entries} names were visited");
}
