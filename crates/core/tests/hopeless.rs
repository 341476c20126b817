//! A client that rejects all it is sent costs little (S69), and is still heard.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

use std::sync::Arc;
use std::time::Duration;

use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::Database;
use trunkline_core::kind;
use trunkline_core::message::{DeltaRequest, ErrorDetail, Mode};
use trunkline_core::name::Name;
use trunkline_core::resource::Resource;
use trunkline_core::session::{Config, Session};

fn put(name: &str, body: &'static str) -> Change {
    let resource = Resource::new(Name::new(name), body.into());
    Change::Upsert(kind::CDS.into(), Arc::new(resource))
}

/// Rejects what there is to hear now; how many responses that was.
fn reject_all(session: &mut Session, db: &mut Database, now: Moment) -> usize {
    let mut rejected = 0;
    while let Some(response) = session
        .poll(db, now)
        .and_then(trunkline_core::message::Response::into_delta)
    {
        rejected += 1;
        let answer = DeltaRequest {
            type_url: Some(kind::CDS.into()),
            nonce: Some(response.nonce),
            error: Some(ErrorDetail {
                code: 13,
                message: "never".into(),
            }),
            ..DeltaRequest::default()
        };
        session.handle_delta(db, answer, now).unwrap();
    }
    rejected
}

#[test]
fn s69_a_client_that_rejects_everything_is_tried_slowly() {
    let mut db = Database::new();
    let changes = (0..1000).map(|n| put(&format!("{n:04}"), "x")).collect();
    db.apply(changes).unwrap();
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    let ask = DeltaRequest {
        type_url: Some(kind::CDS.into()),
        ..DeltaRequest::default()
    };
    let mut now = Moment::START;
    session.handle_delta(&mut db, ask, now).unwrap();
    assert_eq!(reject_all(&mut session, &mut db, now), 257);
    // From here on, one after the other, each at the moment that it announces.
    let mut trials = 0;
    while let Some(next) = session.poll_timeout() {
        assert!(next <= now + Duration::from_millis(50), "{next:?}");
        now = next;
        trials += reject_all(&mut session, &mut db, now);
    }
    let parked: usize = session.status().map(|s| s.quarantined.len()).sum();
    assert_eq!(parked, 1000);
    assert_eq!(257 + trials, 1999);
    // What is new is sent at once, and what is accepted ends the waiting.
    db.apply(vec![put("new", "y")]).unwrap();
    let response = session
        .poll(&mut db, now)
        .and_then(trunkline_core::message::Response::into_delta)
        .unwrap();
    assert_eq!(response.resources.len(), 1);
    assert_eq!(db.check(), Ok(()));
}
