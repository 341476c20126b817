//! Roll-outs, by hand.

use std::time::Duration;

use crate::mcp::{Rollout, Stage};
use crate::moment::Moment;

fn at(seconds: u64) -> Moment {
    Moment::from_millis(1000 * seconds)
}

fn rollout(canaries: &[&'static str]) -> Rollout<&'static str> {
    let mut rollout = Rollout::new(1, Duration::from_secs(30));
    for canary in canaries {
        rollout.handle_connected(*canary);
    }
    rollout
}

#[test]
fn m14_an_update_is_promoted_when_all_canaries_took_it_and_it_soaked() {
    let mut rollout = rollout(&["a", "b"]);
    rollout.propose(2);
    rollout.handle_ack(&"a", 2, at(1));
    assert_eq!(rollout.stage(), &Stage::OnCanaries);
    // An ACK of what was before does not count.
    rollout.handle_ack(&"b", 1, at(2));
    assert_eq!(rollout.poll_promoted(at(99)), None);
    rollout.handle_ack(&"b", 2, at(100));
    assert_eq!(rollout.deadline(), Some(at(130)));
    assert_eq!(rollout.poll_promoted(at(129)), None);
    assert_eq!(rollout.promoted(), 1);
    assert_eq!(rollout.poll_promoted(at(130)), Some(2));
    assert_eq!(rollout.poll_promoted(at(131)), None);
    assert_eq!((rollout.promoted(), rollout.stage()), (2, &Stage::Promoted));
}

#[test]
fn m14_a_nack_stops_the_rollout_until_there_is_another_update() {
    let mut rollout = rollout(&["a", "b"]);
    rollout.propose(2);
    rollout.handle_ack(&"a", 2, at(1));
    rollout.handle_ack(&"b", 2, at(1));
    // Also while it soaks.
    rollout.handle_nack(&"a", 2, "no");
    let stopped = Stage::Stopped {
        canary: "a",
        reason: "no".to_owned(),
    };
    assert_eq!(rollout.stage(), &stopped);
    rollout.handle_ack(&"a", 2, at(2));
    assert_eq!(rollout.poll_promoted(at(99)), None);
    rollout.propose(2);
    assert_eq!(rollout.stage(), &stopped);
    rollout.propose(3);
    // A NACK of the one before is late.
    rollout.handle_nack(&"b", 2, "no");
    rollout.handle_ack(&"a", 3, at(3));
    rollout.handle_ack(&"b", 3, at(3));
    assert_eq!(rollout.poll_promoted(at(33)), Some(3));
}

#[test]
fn m14_without_a_canary_nothing_is_promoted() {
    let mut rollout = rollout(&["a"]);
    rollout.propose(2);
    rollout.handle_disconnected(&"a", at(1));
    assert_eq!(rollout.poll_promoted(at(99)), None);
    rollout.handle_ack(&"a", 2, at(100));
    assert_eq!(rollout.deadline(), None);
    rollout.handle_connected("b");
    rollout.handle_ack(&"b", 2, at(100));
    // One that comes while it soaks has to take it as well, or leave.
    rollout.handle_connected("c");
    assert_eq!(rollout.poll_promoted(at(200)), None);
    rollout.handle_disconnected(&"c", at(200));
    assert_eq!(rollout.poll_promoted(at(230)), Some(2));
}

#[test]
fn m14_an_update_that_replaces_another_has_to_be_taken_itself() {
    let mut rollout = rollout(&["a"]);
    rollout.propose(2);
    rollout.handle_ack(&"a", 2, at(0));
    rollout.propose(3);
    assert_eq!(rollout.poll_promoted(at(99)), None);
    rollout.handle_ack(&"a", 3, at(100));
    assert_eq!(rollout.poll_promoted(at(130)), Some(3));
}
