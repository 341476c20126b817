//! A source as a whole, with canaries.

use std::time::Duration;

use super::*;
use crate::mcp::{Canaries, Publisher, PublisherStream, Stage};
use crate::moment::Moment;

const SOAK: Duration = Duration::from_secs(30);

fn at(seconds: u64) -> Moment {
    Moment::from_millis(1000 * seconds)
}

struct Fleet(Publisher);

impl Fleet {
    fn new() -> Self {
        let canaries = Canaries {
            key: "env".to_owned(),
            value: "canary".to_owned(),
            soak: SOAK,
        };
        Self(Publisher::new(Served::Any, Some(canaries)))
    }

    fn set(&mut self, text: &str, now: Moment) {
        let change = Change::ReplaceAll("A".into(), resources(text));
        self.0.apply(vec![change], now).unwrap();
    }

    /// A sink asks for the collection.
    fn sink(&mut self, env: &str, now: Moment) -> PublisherStream {
        let stream = self.0.open();
        let node = SinkNode {
            id: env.to_owned(),
            annotations: [("env".to_owned(), env.to_owned())].into(),
        };
        let request = RequestResources {
            node: Some(node),
            ..first("A", true)
        };
        self.0.handle_request(stream, request, now).unwrap();
        stream
    }

    fn sends(&mut self, stream: PublisherStream, expected: &str) -> Resources {
        let response = self.0.poll_resources(stream).expect(expected);
        assert_eq!(words(&response), expected);
        response
    }

    fn answers(&mut self, stream: PublisherStream, request: RequestResources, now: Moment) {
        self.0.handle_request(stream, request, now).unwrap();
    }
}

#[test]
fn m14_canaries_are_first_and_others_follow_after_the_soak_time() {
    let mut fleet = Fleet::new();
    fleet.set("a@1", at(0));
    let (canary, other) = (fleet.sink("canary", at(0)), fleet.sink("prod", at(0)));
    // Nothing is promoted yet, and an empty collection would be a lie.
    assert!(fleet.0.poll_resources(other).is_none());
    let one = fleet.sends(canary, "A 1 incremental: a@1");
    fleet.answers(canary, ack(&one, true), at(1));
    assert_eq!(fleet.0.deadline(), Some(at(31)));
    assert_eq!(fleet.0.promote(at(30)), []);
    assert_eq!(fleet.0.promote(at(31)), [other]);
    let one = fleet.sends(other, "A 1 incremental: a@1");
    fleet.answers(other, ack(&one, true), at(31));

    // Of an update, others get what has changed since they were promoted last.
    fleet.set("a@1 b@1", at(40));
    fleet.set("a@2 b@1", at(40));
    assert!(fleet.0.poll_resources(other).is_none());
    let two = fleet.sends(canary, "A 2 incremental: a@2 b@1");
    fleet.answers(canary, ack(&two, true), at(41));
    assert_eq!(fleet.0.promote(at(71)), [other]);
    fleet.sends(other, "A 2 incremental: a@2 b@1");
}

#[test]
fn m14_a_nack_stops_an_update_and_the_next_begins_anew() {
    let mut fleet = Fleet::new();
    fleet.set("a@1", at(0));
    let canary = fleet.sink("canary", at(0));
    let one = fleet.sends(canary, "A 1 incremental: a@1");
    fleet.answers(canary, nack(&one, true), at(1));
    let stopped = Stage::Stopped {
        canary,
        reason: "A: no".to_owned(),
    };
    assert_eq!(fleet.0.stage(), Some(&stopped));
    assert_eq!(fleet.0.promote(at(99)), []);
    fleet.set("a@2", at(100));
    let two = fleet.sends(canary, "A 2 incremental: a@2");
    fleet.answers(canary, ack(&two, true), at(100));
    fleet.0.promote(at(130));
    assert_eq!(fleet.0.stage(), Some(&Stage::Promoted));
}

#[test]
fn m14_a_canary_that_asks_for_more_has_to_take_it_too() {
    let mut fleet = Fleet::new();
    fleet.set("a@1", at(0));
    let canary = fleet.sink("canary", at(0));
    let one = fleet.sends(canary, "A 1 incremental: a@1");
    fleet.answers(canary, ack(&one, true), at(1));
    fleet.answers(canary, first("B", true), at(2));
    fleet.0.promote(at(99));
    assert_eq!(fleet.0.stage(), Some(&Stage::OnCanaries));
    let two = fleet.sends(canary, "B 2 full:");
    fleet.answers(canary, ack(&two, true), at(100));
    assert_eq!(fleet.0.deadline(), Some(at(130)));
}
