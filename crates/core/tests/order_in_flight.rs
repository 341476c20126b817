//! What was sent and is not answered yet counts as used (S73).
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

use std::sync::Arc;

use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::Database;
use trunkline_core::facts::{Facts, Reference};
use trunkline_core::kind;
use trunkline_core::message::{DeltaRequest, DeltaResponse, Mode, Node};
use trunkline_core::name::Name;
use trunkline_core::resource::Resource;
use trunkline_core::session::{Config, Session};

const NOW: Moment = Moment::START;

fn put(url: &str, name: &str, refers_to: Option<(&str, &str)>) -> Change {
    let text = format!("{name} {refers_to:?}");
    let references = refers_to.map(|(url, name)| Reference {
        type_url: url.into(),
        name: Name::new(name),
    });
    let facts = Facts {
        references: references.into_iter().collect(),
        ..Facts::default()
    };
    let resource = Resource {
        facts: Some(Box::new(facts)),
        ..Resource::new(Name::new(name), text.into())
    };
    Change::Upsert(url.into(), Arc::new(resource))
}

fn ask(session: &mut Session, db: &mut Database, url: &str, names: &[&str]) {
    let node = Node {
        user_agent: "envoy".into(),
        ..Node::default()
    };
    let request = DeltaRequest {
        node: Some(node),
        type_url: Some(url.into()),
        subscribe: names.iter().map(|name| (*name).into()).collect(),
        ..DeltaRequest::default()
    };
    session.handle_delta(db, request, NOW).unwrap();
}

fn ack(session: &mut Session, db: &mut Database, response: &DeltaResponse) {
    let request = DeltaRequest {
        type_url: Some(response.type_url.clone()),
        nonce: Some(response.nonce.clone()),
        ..DeltaRequest::default()
    };
    session.handle_delta(db, request, NOW).unwrap();
}

#[test]
fn s73_a_cluster_stays_while_a_route_to_it_is_on_its_way() {
    let mut db = Database::new();
    let route = |cluster| put(kind::RDS, "r", Some((kind::CDS, cluster)));
    let contents = vec![put(kind::CDS, "old", None), route("old")];
    db.apply(contents).unwrap();
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    ask(&mut session, &mut db, kind::CDS, &[]);
    let clusters = session
        .poll(&mut db, NOW)
        .and_then(trunkline_core::message::Response::into_delta)
        .unwrap();
    ack(&mut session, &mut db, &clusters);
    ask(&mut session, &mut db, kind::RDS, &["r"]);
    let sent = session
        .poll(&mut db, NOW)
        .and_then(trunkline_core::message::Response::into_delta)
        .unwrap();

    // The route is used from the moment it arrives, before its ACK does.
    let removal = Change::Remove(kind::CDS.into(), Name::new("old"));
    db.apply(vec![put(kind::CDS, "new", None), route("new"), removal])
        .unwrap();
    let addition = session
        .poll(&mut db, NOW)
        .and_then(trunkline_core::message::Response::into_delta)
        .unwrap();
    assert_eq!(addition.resources.len(), 1);
    assert_eq!(addition.removed, []);
    ack(&mut session, &mut db, &addition);
    ack(&mut session, &mut db, &sent);
    let moved = session
        .poll(&mut db, NOW)
        .and_then(trunkline_core::message::Response::into_delta)
        .unwrap();
    assert_eq!(moved.type_url.as_str(), kind::RDS);
    assert_eq!(
        session
            .poll(&mut db, NOW)
            .and_then(trunkline_core::message::Response::into_delta),
        None
    );
    ack(&mut session, &mut db, &moved);
    let removal = session
        .poll(&mut db, NOW)
        .and_then(trunkline_core::message::Response::into_delta)
        .unwrap();
    assert_eq!(removal.removed, [Name::new("old")]);
}
