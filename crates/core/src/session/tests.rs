//! Tests of a session's private state.

mod progress;
mod quiet;
mod status;
mod stream;
mod whole_sets;
mod withheld;

use std::sync::Arc;

use stream::Stream;

use super::*;
use crate::change::Change;
use crate::facts::{Facts, Reference};
use crate::kind::{self, Kind};
use crate::message::{DeltaRequest, ErrorDetail, Locator, Response};
use crate::name::{Name, NameError};
use crate::resource::{ErrorCode, Resource};
use crate::source::ClientCache;

/// The number of exceptions of a wildcard stream.
fn exceptions(session: &Session) -> usize {
    let all = session.type_streams.iter().map(|c| &c.client_cache);
    let walks = |client_cache: &ClientCache| {
        client_cache
            .cursors()
            .iter()
            .map(|v| v.partial_advances.len())
            .sum::<usize>()
    };
    all.map(|client_cache| client_cache.exceptions().len() + walks(client_cache))
        .sum()
}

#[test]
fn what_was_an_exception_is_forgotten_when_it_is_the_rule_again() {
    let (mut db, now) = (Database::new(), Moment::START);
    let url = TypeUrl::from(kind::CDS);
    let resources = ["a", "b"].map(|name| Resource::new(Name::new(name), "x".into()));
    let upsert = |r: Resource| Change::Upsert(url.clone(), Arc::new(r));
    db.apply(resources.map(upsert).into()).unwrap();
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    let selector = |nonce, error| DeltaRequest {
        type_url: Some(url.clone()),
        nonce,
        error,
        ..DeltaRequest::default()
    };
    session
        .handle_delta(&mut db, selector(None, None), now)
        .unwrap();
    let first = session
        .poll(&mut db, now)
        .and_then(Response::into_delta)
        .unwrap();
    assert_eq!((first.resources.len(), exceptions(&session)), (2, 0));
    let error = ErrorDetail {
        code: 13,
        message: String::new(),
    };
    let nack = selector(Some(first.nonce), Some(error));
    session.handle_delta(&mut db, nack, now).unwrap();
    assert_eq!(exceptions(&session), 2);
    for left in [1, 0] {
        let half = session
            .poll(&mut db, now)
            .and_then(Response::into_delta)
            .unwrap();
        assert_eq!(half.resources.len(), 1);
        session
            .handle_delta(&mut db, selector(Some(half.nonce), None), now)
            .unwrap();
        assert_eq!(exceptions(&session), left);
    }
    session.close(&mut db);
    assert_eq!(db.check(), Ok(()));
}
#[test]
fn s72_a_stream_brings_only_so_many_sets_of_parameters() {
    let (mut db, now) = (Database::new(), Moment::START);
    let mut config = Config::new(Mode::Delta);
    config.limits.params = 1;
    let mut session = Session::open(&mut db, config);
    let with = |value: &str| Locator {
        name: "a".to_owned(),
        params: Some(Params::new([("env", value)]).unwrap()),
    };
    let request = DeltaRequest {
        type_url: Some(TypeUrl::from(kind::EDS)),
        subscribe: vec![with("x"), with("y"), with("x"), "a".into()],
        ..DeltaRequest::default()
    };
    session.handle_delta(&mut db, request, now).unwrap();
    let refused = session.poll_event();
    let reason = Refusal::Params { limit: 1 };
    assert_eq!(
        refused,
        Some(Event::Refused {
            type_url: kind::EDS.into(),
            reason,
            names: 1,
        })
    );
    assert_eq!(session.poll_event(), None);
    assert_eq!(session.status().next().unwrap().subscriptions, 2);
    assert_eq!(db.params_count(), 2);
    session.close(&mut db);
    assert_eq!(db.params_count(), 1, "what nobody asks with is forgotten");
}

#[test]
fn s61_why_a_name_cannot_be_had_is_said_to_who_understands() {
    let (mut db, now) = (Database::new(), Moment::START);
    let mut config = Config::new(Mode::Delta);
    config.limits.subscriptions = 1;
    let mut session = Session::open(&mut db, config);
    session.set_supports_resource_errors(true);
    session.deny(kind::SDS.into());
    let mut updated = |url: &str, names: &[&str]| {
        let request = DeltaRequest {
            type_url: Some(TypeUrl::from(url)),
            subscribe: names.iter().map(|name| (*name).into()).collect(),
            ..DeltaRequest::default()
        };
        session.handle_delta(&mut db, request, now).unwrap();
        let response = session
            .poll(&mut db, now)
            .and_then(Response::into_delta)
            .unwrap();
        assert!(response.resources.is_empty() && response.removed.is_empty());
        let errors = response.errors.iter();
        let codes: Vec<_> = errors.map(|(name, e)| (name.to_string(), e.code)).collect();
        codes
    };
    let error = |name: &str, code| (name.to_owned(), code);
    let denied = error("s", ErrorCode::PermissionDenied);
    assert_eq!(updated(kind::SDS, &["s"]), [denied]);
    let refused = error("a", ErrorCode::Unavailable);
    assert_eq!(updated(kind::EDS, &["a"]), [refused]);
}

#[test]
fn tp2_sets_of_parameters_go_with_the_last_stream_that_has_them() {
    let (mut db, now) = (Database::new(), Moment::START);
    let variant = |env: &str| Resource {
        constraints: Some(format!("env={env}").parse().unwrap()),
        ..Resource::new("a".into(), "body".into())
    };
    let both = ["x", "y"].map(|env| Change::Upsert(kind::EDS.into(), variant(env).into()));
    db.apply(both.into()).unwrap();
    let open = |db: &mut Database, id: &str, env: &str| {
        let mut config = Config::new(Mode::Delta);
        config.params = Params::new([("id", id), ("env", env)]).unwrap();
        let mut session = Session::open(db, config);
        let request = DeltaRequest {
            type_url: Some(TypeUrl::from(kind::EDS)),
            subscribe: vec!["a".into()],
            ..DeltaRequest::default()
        };
        session.handle_delta(db, request, now).unwrap();
        let response = session
            .poll(db, now)
            .and_then(Response::into_delta)
            .unwrap();
        assert_eq!(response.resources.len(), 1, "{id} {env}");
        session
    };
    let first = open(&mut db, "1", "x");
    let second = open(&mut db, "2", "x");
    // The empty set, two of clients, and the category of both.
    assert_eq!(db.params_count(), 4);
    first.close(&mut db);
    assert_eq!(db.params_count(), 3);
    second.close(&mut db);
    assert_eq!(db.params_count(), 1);
    // Clients that come and go for ever leave nothing behind, and none gets the
    // variant of a set that had its number before.
    for nth in 0..5000 {
        let env = if nth % 3 == 0 { "x" } else { "y" };
        open(&mut db, &nth.to_string(), env).close(&mut db);
    }
    assert_eq!(db.params_count(), 1);
    assert_eq!(db.check(), Ok(()));
}
#[test]
fn s72_a_flood_of_bad_names_is_counted_and_not_remembered() {
    let (mut db, now) = (Database::new(), Moment::START);
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    let request = DeltaRequest {
        type_url: Some(TypeUrl::from(kind::EDS)),
        subscribe: vec!["".into(); MAX_EVENTS + 7],
        ..DeltaRequest::default()
    };
    session.handle_delta(&mut db, request, now).unwrap();
    while session.is_busy() {
        session.poll(&mut db, now);
    }
    let events: Vec<_> = std::iter::from_fn(|| session.poll_event()).collect();
    let refused = Event::Refused {
        type_url: kind::EDS.into(),
        reason: Refusal::Name(NameError::Empty),
        names: MAX_EVENTS + 7,
    };
    assert_eq!(events, [refused]);
}
#[test]
fn a_step_that_says_nothing_is_made_all_the_same() {
    let (mut db, now) = (Database::new(), Moment::START);
    let url = TypeUrl::from(kind::CDS);
    let put = |body: &'static str| {
        let resource = Resource::new(Name::new("a"), body.into());
        vec![Change::Upsert(url.clone(), Arc::new(resource))]
    };
    db.apply(put("x")).unwrap();
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    let selector = |nonce| DeltaRequest {
        type_url: Some(url.clone()),
        nonce,
        ..DeltaRequest::default()
    };
    session.handle_delta(&mut db, selector(None), now).unwrap();
    let first = session
        .poll(&mut db, now)
        .and_then(Response::into_delta)
        .unwrap();
    session
        .handle_delta(&mut db, selector(Some(first.nonce)), now)
        .unwrap();
    db.apply(put("y")).unwrap();
    db.apply(put("x")).unwrap();
    assert_eq!(
        session.poll(&mut db, now).and_then(Response::into_delta),
        None
    );
    assert!(!session.has_more(), "there is nothing else");
    let type_id = db.type_id(&url);
    assert_eq!(db.memory_counts(type_id).retired, 0);
}

#[test]
fn s72_a_type_url_that_is_too_long_is_refused_and_the_stream_goes_on() {
    let (mut db, now) = (Database::new(), Moment::START);
    let mut config = Config::new(Mode::Delta);
    config.limits.name_bytes = 20;
    let limit = config.limits.types;
    let mut session = Session::open(&mut db, config);
    for (bytes, refused) in [(20, false), (21, true), (22, true)] {
        let url = TypeUrl::from("t".repeat(bytes).as_str());
        let request = DeltaRequest {
            type_url: Some(url.clone()),
            subscribe: vec!["a".into()],
            ..DeltaRequest::default()
        };
        session.handle_delta(&mut db, request, now).unwrap();
        let reason = Refusal::Types { limit };
        let event = Event::Refused {
            type_url: url,
            reason,
            names: 1,
        };
        assert_eq!(session.poll_event() == Some(event), refused, "{bytes}");
        while session.poll_event().is_some() {}
    }
}

#[test]
fn s73_a_reference_is_forgotten_when_it_has_drained() {
    let mut stream = Stream::open();
    stream.put_all(&[
        (kind::CDS, "c", "1", &[]),
        (kind::LDS, "l", "1", &[(kind::CDS, "c")]),
    ]);
    stream.subscribe(kind::CDS, &[]);
    stream.subscribe(kind::LDS, &[]);
    stream.settle();
    stream.put(kind::LDS, "l", "2");
    stream.settle();
    assert_eq!(stream.session.draining.len(), 1);
    let until = stream.session.poll_timeout().unwrap();
    assert_eq!(until, Moment::START + Config::new(Mode::Delta).drain_time);
    stream.now = until;
    assert_eq!(stream.poll(), None);
    assert_eq!(stream.session.draining.len(), 0);
    assert_eq!(stream.session.poll_timeout(), None);
}

#[test]
fn s82_what_has_drained_on_an_earlier_stream_is_not_recalled() {
    let recalled = |left: Duration| {
        let mut stream = Stream::open();
        stream.put_all(&[
            (kind::CDS, "c", "1", &[]),
            (kind::LDS, "l", "1", &[(kind::CDS, "c")]),
        ]);
        stream.begin_as_envoy();
        stream.resume(kind::LDS, &[], &[("m", "1")]);
        stream.subscribe(kind::CDS, &[]);
        stream.settle();
        stream.put(kind::LDS, "l", "2");
        stream.settle();
        let until = Config::new(Mode::Delta).drain_time;
        stream.reconnect();
        stream.now = Moment::START + (until - left);
        stream.begin_as_envoy();
        stream.resume(kind::LDS, &[], &[("l", "2")]);
        let (references, types) = (&stream.session.draining, &stream.session.draining_types);
        (references.len(), types.len())
    };
    let types = Kind::of(&kind::LDS.into()).refers_to.len();
    assert_eq!(recalled(Duration::from_millis(1)), (1, types));
    assert_eq!(recalled(Duration::ZERO), (0, 0));
}

#[test]
fn a_change_beside_a_name_that_is_asked_for_too_is_no_exception() {
    let (mut db, now) = (Database::new(), Moment::START);
    let url = TypeUrl::from(kind::CDS);
    let put = |db: &mut Database, name: &str, body: &'static str| {
        let resource = Arc::new(Resource::new(Name::new(name), body.into()));
        db.apply(vec![Change::Upsert(url.clone(), resource)])
            .unwrap();
    };
    put(&mut db, "a", "x");
    put(&mut db, "b", "x");
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    let request = |subscribe: &[&str], nonce| DeltaRequest {
        type_url: Some(url.clone()),
        subscribe: subscribe.iter().map(|name| (*name).into()).collect(),
        nonce,
        ..DeltaRequest::default()
    };
    let first = request(&["*", "a"], None);
    session.handle_delta(&mut db, first, now).unwrap();
    let response = session
        .poll(&mut db, now)
        .and_then(Response::into_delta)
        .unwrap();
    assert_eq!(response.resources.len(), 2);
    let ack = request(&[], Some(response.nonce));
    session.handle_delta(&mut db, ack, now).unwrap();
    put(&mut db, "b", "y");
    assert!(session.poll(&mut db, now).is_some());
    assert_eq!(exceptions(&session), 1, "the name itself");
}

/// Only what differs from the rule costs memory, and a part of each
/// evaluation.
#[test]
fn beside_an_exception_all_others_stay_the_rule() {
    let (mut db, now) = (Database::new(), Moment::START);
    let url = TypeUrl::from(kind::CDS);
    let upsert = |name: &str, body: &'static str| {
        let resource = Resource::new(Name::new(name), body.into());
        Change::Upsert(url.clone(), Arc::new(resource))
    };
    let names = ["a", "b", "c", "d"];
    db.apply(names.map(|name| upsert(name, "1")).into())
        .unwrap();
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    let request = |nonce, error| DeltaRequest {
        type_url: Some(url.clone()),
        nonce,
        error,
        ..DeltaRequest::default()
    };
    let error = || ErrorDetail {
        code: 13,
        message: String::new(),
    };
    let next = |session: &mut Session, db: &mut Database| {
        let response = session.poll(db, now).and_then(Response::into_delta);
        response.unwrap()
    };
    session
        .handle_delta(&mut db, request(None, None), now)
        .unwrap();
    let first = next(&mut session, &mut db);
    session
        .handle_delta(&mut db, request(Some(first.nonce), None), now)
        .unwrap();
    // The client NACKs one resource.
    db.apply(vec![upsert("d", "bad")]).unwrap();
    let bad = next(&mut session, &mut db);
    session
        .handle_delta(&mut db, request(Some(bad.nonce), Some(error())), now)
        .unwrap();
    assert_eq!(exceptions(&session), 1);
    let removal = Change::Remove(url.clone(), Name::new("a"));
    db.apply(vec![removal, upsert("b", "2"), upsert("e", "1")])
        .unwrap();
    let changes = next(&mut session, &mut db);
    assert_eq!((changes.resources.len(), changes.removed.len()), (2, 1));
    assert_eq!(exceptions(&session), 1);
    session.close(&mut db);
    assert_eq!(db.check(), Ok(()));
}

#[test]
fn a_session_with_nothing_to_send_is_quiet() {
    let (mut db, now) = (Database::new(), Moment::START);
    let put = |url: &str, resource: Resource| Change::Upsert(url.into(), Arc::new(resource));
    let cluster = |name: &str| put(kind::CDS, Resource::new(Name::new(name), "x".into()));
    db.apply(vec![cluster("a")]).unwrap();
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    let request = |url: &str, nonce| DeltaRequest {
        type_url: Some(url.into()),
        nonce,
        ..DeltaRequest::default()
    };
    assert!(session.is_quiet(&db, now));
    for url in [kind::CDS, kind::LDS] {
        session
            .handle_delta(&mut db, request(url, None), now)
            .unwrap();
        assert!(!session.is_quiet(&db, now), "{url}");
        let response = session.poll(&mut db, now).unwrap();
        let ack = request(url, Some(response.nonce().clone()));
        session.handle_delta(&mut db, ack, now).unwrap();
        assert!(session.is_quiet(&db, now), "{url}");
    }
    // A listener waits for its cluster, which the client has not ACKed yet.
    let listener = Resource {
        facts: Some(Box::new(Facts {
            references: [Reference {
                type_url: kind::CDS.into(),
                name: Name::new("b"),
            }]
            .into(),
            ..Facts::default()
        })),
        ..Resource::new(Name::new("l"), "x".into())
    };
    db.apply(vec![cluster("b"), put(kind::LDS, listener)])
        .unwrap();
    assert!(!session.is_quiet(&db, now));
    let clusters = session.poll(&mut db, now).unwrap();
    assert_eq!(clusters.type_url().as_str(), kind::CDS);
    assert!(session.poll(&mut db, now).is_none());
    assert!(session.is_quiet(&db, now));
    session.close(&mut db);
}
