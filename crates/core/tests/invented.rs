//! S72, S85: what clients invent is bounded, shared among them, and gone when
//! they are.

#![allow(clippy::unwrap_used)] // a test: what cannot fail here is part of it

use std::sync::Arc;

use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{Database, NAME_OVERHEAD, SLICE};
use trunkline_core::kind::{EDS, RDS};
use trunkline_core::message::{DeltaRequest, DeltaResponse, Locator, Mode, Response, SotwRequest};
use trunkline_core::params::Params;
use trunkline_core::resource::Resource;
use trunkline_core::session::{Config, Event, Refusal, Session};

const NOW: Moment = Moment::START;

/// The weight of a name of four bytes.
const WEIGHT: usize = 4 + NAME_OVERHEAD;

fn names(from: usize, count: usize) -> Vec<Locator> {
    let names = (from..from + count).map(|nth| format!("{nth:04}"));
    names.map(|name| Locator::from(name.as_str())).collect()
}

fn located(name: &str, env: usize) -> Locator {
    Locator {
        name: name.to_owned(),
        params: Some(Params::new([("env", env.to_string().as_str())]).unwrap()),
    }
}

fn with(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::new(Mode::Delta);
    change(&mut config);
    config
}

/// Reads a request to its end. Returns what was refused, with the number of
/// names.
fn ask(db: &mut Database, session: &mut Session, subscribe: Vec<Locator>) -> Vec<(Refusal, usize)> {
    ask_of(db, session, EDS, subscribe)
}

fn ask_of(
    db: &mut Database,
    session: &mut Session,
    url: &str,
    subscribe: Vec<Locator>,
) -> Vec<(Refusal, usize)> {
    let request = DeltaRequest {
        type_url: Some(url.into()),
        subscribe,
        ..DeltaRequest::default()
    };
    session.handle_delta(db, request, NOW).unwrap();
    while session.is_busy() {
        session.work_off(db);
    }
    let events = std::iter::from_fn(|| session.poll_event());
    let refused = events.filter_map(|event| match event {
        Event::Refused { reason, names, .. } => Some((reason, names)),
        _ => None,
    });
    refused.collect()
}

fn drop_names(db: &mut Database, session: &mut Session, unsubscribe: Vec<Locator>) {
    let request = DeltaRequest {
        type_url: Some(EDS.into()),
        unsubscribe,
        ..DeltaRequest::default()
    };
    session.handle_delta(db, request, NOW).unwrap();
}

fn subscriptions(session: &Session) -> usize {
    session.status().map(|status| status.subscriptions).sum()
}

fn put(db: &mut Database, name: &str) {
    let resource = Resource::new(name.into(), "x".into());
    let upsert = Change::Upsert(EDS.into(), Arc::new(resource));
    db.apply(vec![upsert]).unwrap();
}

/// The next response, ACKed.
fn answer(db: &mut Database, session: &mut Session) -> Option<DeltaResponse> {
    let response = session.poll(db, NOW)?.into_delta().unwrap();
    let ack = DeltaRequest {
        type_url: Some(response.type_url.clone()),
        nonce: Some(response.nonce.clone()),
        ..DeltaRequest::default()
    };
    session.handle_delta(db, ack, NOW).unwrap();
    Some(response)
}

#[test]
fn s72_names_are_weighed_and_those_too_many_are_refused_and_counted() {
    let mut db = Database::new();
    let limit = 10 * WEIGHT;
    let config = with(|config| config.limits.subscription_bytes = limit);
    let mut session = Session::open(&mut db, config);
    let refused = ask(&mut db, &mut session, names(0, 15));
    assert_eq!(refused, [(Refusal::SubscriptionBytes { limit }, 5)]);
    assert_eq!(subscriptions(&session), 10);
    let answered = answer(&mut db, &mut session).unwrap();
    assert_eq!(
        answered.removed.len(),
        15,
        "refused names are answered, too"
    );
    drop_names(&mut db, &mut session, names(0, 3));
    let refused = ask(&mut db, &mut session, names(20, 4));
    assert_eq!(refused, [(Refusal::SubscriptionBytes { limit }, 1)]);
    assert_eq!(ask(&mut db, &mut session, names(5, 2)), [], "it has them");
    session.check(&mut db).unwrap();
    db.check().unwrap();
    session.close(&mut db);
    assert_eq!(db.missing_weight(), 0);
}

#[test]
fn s72_names_that_do_not_exist_leave_a_share_for_every_newcomer() {
    let mut db = Database::new();
    let limit = 1000 * WEIGHT;
    let open = |db: &mut Database| {
        let config = with(|config| config.limits.missing_bytes = limit);
        Session::open(db, config)
    };
    let mut sessions = Vec::new();
    let mut shares = Vec::new();
    for nth in 0..4 {
        let mut session = open(&mut db);
        let refused = ask(&mut db, &mut session, names(nth * 2000, 2000));
        let share = subscriptions(&session);
        assert_eq!(refused, [(Refusal::MissingBytes { limit }, 2000 - share)]);
        shares.push(share);
        sessions.push(session);
    }
    // Each may have as much as is left.
    assert_eq!(shares, [500, 250, 125, 63]);
    // A name that exists is never refused for it.
    put(&mut db, "real");
    let real = vec![Locator::from("real")];
    assert_eq!(ask(&mut db, &mut sessions[0], real), []);
    assert!(db.missing_weight() < limit);
    db.check().unwrap();

    // Names that come to exist are not among them any more.
    let before = db.missing_weight();
    put(&mut db, "0000");
    assert_eq!(db.missing_weight(), before - WEIGHT);
    let gone = Change::Remove(EDS.into(), "0000".into());
    db.apply(vec![gone]).unwrap();
    assert_eq!(db.missing_weight(), before);
    for session in sessions {
        session.close(&mut db);
    }
    assert_eq!(db.missing_weight(), 0);
    db.check().unwrap();
}

#[test]
fn s72_short_of_memory_only_names_that_exist_are_taken() {
    let mut db = Database::new();
    put(&mut db, "real");
    let mut session = Session::open(&mut db, with(|_| ()));
    assert_eq!(ask(&mut db, &mut session, names(0, 3)), []);
    db.set_memory_short(true);
    let refused = ask(&mut db, &mut session, names(0, 5));
    assert_eq!(refused, [(Refusal::Memory, 2)], "it has three of them");
    assert_eq!(ask(&mut db, &mut session, vec![Locator::from("real")]), []);
    let answered = answer(&mut db, &mut session).unwrap();
    assert_eq!(answered.removed.len(), 5, "refused names are answered, too");

    db.set_memory_short(false);
    assert_eq!(ask(&mut db, &mut session, names(3, 2)), []);
    session.check(&mut db).unwrap();
    db.check().unwrap();
}

#[test]
fn s72_sets_of_parameters_leave_a_share_for_every_newcomer() {
    let mut db = Database::new();
    let limit = 41;
    let open = |db: &mut Database| {
        let config = with(|config| {
            config.limits.all_params = limit;
            config.supports_resource_errors = true;
        });
        Session::open(db, config)
    };
    let mut greedy = open(&mut db);
    let many = (0..100).map(|env| located("a", env)).collect();
    let refused = ask(&mut db, &mut greedy, many);
    assert_eq!(refused, [(Refusal::AllParams { limit }, 80)]);
    let mut other = open(&mut db);
    let few = (200..205).map(|env| located("b", env)).collect();
    assert_eq!(ask(&mut db, &mut other, few), []);

    // The parameters of a node are taken however many sets there are.
    let mut full = with(|config| config.limits.all_params = 1);
    full.params = Params::new([("env", "own")]).unwrap();
    let mut late = Session::open(&mut db, full);
    late.set_params(&mut db, Params::new([("env", "new")]).unwrap());
    assert_eq!(late.poll_event(), None);
    for session in [greedy, other, late] {
        session.close(&mut db);
    }
    db.check().unwrap();
}

#[test]
fn tp3_a_name_whose_parameters_are_refused_is_answered_and_takes_nothing_away() {
    let mut db = Database::new();
    put(&mut db, "held");
    let config = with(|config| {
        config.limits.params = 0;
        config.supports_resource_errors = true;
    });
    let mut session = Session::open(&mut db, config);
    ask(&mut db, &mut session, vec!["held".into()]);
    let first = answer(&mut db, &mut session).unwrap();
    assert_eq!(first.resources.len(), 1);
    let refused = ask(
        &mut db,
        &mut session,
        vec![located("held", 1), located("other", 1)],
    );
    assert_eq!(refused, [(Refusal::Params { limit: 0 }, 2)]);
    let answered = answer(&mut db, &mut session).unwrap();
    let errors: Vec<_> = answered.errors.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(errors, ["other"]);
    assert!(answered.removed.is_empty(), "{:?}", answered.removed);
}

#[test]
fn s72_types_that_clients_invent_are_shared_and_go_with_them() {
    let mut db = Database::new();
    let open = |db: &mut Database| {
        let config = with(|config| config.limits.all_types = 60);
        Session::open(db, config)
    };
    let mut sessions = Vec::new();
    let mut opened = Vec::new();
    for stream in 0..3 {
        let mut session = open(&mut db);
        let mut refusals = 0;
        for nth in 0..64 {
            let url = format!("invented {stream} {nth}");
            let refused = ask_of(&mut db, &mut session, &url, vec!["a".into()]);
            refusals += usize::from(refused == [(Refusal::AllTypes { limit: 60 }, 1)]);
        }
        opened.push(session.status().count());
        assert_eq!(session.status().count() + refusals, 64);
        let known = ask_of(&mut db, &mut session, RDS, vec!["a".into()]);
        assert_eq!(known, [], "types that are known are few");
        sessions.push(session);
    }
    assert_eq!(opened, [31, 15, 7]);
    for session in sessions {
        session.close(&mut db);
    }
    db.drop_idle_types();
    assert_eq!(db.types().count(), 0);
    db.check().unwrap();
}

#[test]
fn s85_a_list_of_many_names_is_compared_and_replaced_in_slices() {
    let mut db = Database::new();
    let mut session = Session::open(&mut db, Config::new(Mode::Sotw));
    let list = |db: &mut Database, session: &mut Session, names: Vec<Locator>| {
        let request = SotwRequest {
            type_url: Some(EDS.into()),
            names: names.into(),
            ..SotwRequest::default()
        };
        session.handle_sotw(db, request, NOW).unwrap();
        let mut slices = 1;
        while session.is_busy() {
            let before = (subscriptions(session), session.name_count());
            session.work_off(db);
            let after = subscriptions(session);
            assert!(after.abs_diff(before.0) <= SLICE, "{before:?} {after}");
            slices += 1;
        }
        session.check(db).unwrap();
        slices
    };
    let count = 5 * SLICE;
    // Each name is compared, and then subscribed to.
    assert_eq!(list(&mut db, &mut session, names(0, count)), 10);
    assert_eq!(subscriptions(&session), count);
    // The same list again is only compared.
    assert_eq!(list(&mut db, &mut session, names(0, count)), 5);
    // Half of the names go, and as many come.
    let slices = list(&mut db, &mut session, names(count / 2, count));
    assert!((10..=15).contains(&slices), "{slices}");
    assert_eq!(subscriptions(&session), count);
    let type_id = db.find_type(&EDS.into()).unwrap();
    assert_eq!(db.memory_counts(type_id).names, count);
    assert!(db.find(type_id, &"0000".into()).is_none());
    list(&mut db, &mut session, Vec::new());
    assert_eq!(subscriptions(&session), 0);
    db.check().unwrap();
}

#[test]
fn s85_new_parameters_are_applied_to_many_names_in_slices() {
    let mut db = Database::new();
    let count = 4 * SLICE;
    let env = |env: &str| Params::new([("env", env)]).unwrap();
    let mut config = Config::new(Mode::Delta);
    config.params = env("a");
    let mut session = Session::open(&mut db, config);
    for value in ["a", "b"] {
        let variant = Resource {
            constraints: Some(format!("env={value}").parse().unwrap()),
            ..Resource::new("0007".into(), value.to_owned().into())
        };
        let upsert = Change::Upsert(EDS.into(), Arc::new(variant));
        db.apply(vec![upsert]).unwrap();
    }
    ask(&mut db, &mut session, names(0, count));
    while answer(&mut db, &mut session).is_some() || session.has_more() {}

    session.set_params(&mut db, env("b"));
    assert!(session.is_busy());
    let mut slices = 0;
    while session.is_busy() {
        session.work_off(&mut db);
        session.check(&mut db).unwrap();
        slices += 1;
    }
    assert!((4..=5).contains(&slices), "{slices}");
    let mut sent = Vec::new();
    loop {
        match session.poll(&mut db, NOW).and_then(Response::into_delta) {
            Some(response) => sent.push(response),
            None if session.has_more() => {}
            None => break,
        }
    }
    let bodies = sent.iter().flat_map(|response| response.resources.iter());
    let bodies: Vec<_> = bodies.map(|wire| wire.resource.body.clone()).collect();
    assert_eq!(bodies, [Some("b".into())]);
    assert_eq!(subscriptions(&session), count);
    session.check(&mut db).unwrap();
    db.check().unwrap();
}

#[test]
fn s85_a_stream_that_ends_within_a_long_request_leaves_nothing() {
    let mut db = Database::new();
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    let request = DeltaRequest {
        type_url: Some("invented".into()),
        subscribe: names(0, 9 * SLICE),
        ..DeltaRequest::default()
    };
    session.handle_delta(&mut db, request, NOW).unwrap();
    assert!(session.is_reading());
    assert_eq!(session.name_count(), 9 * SLICE + SLICE);
    let mut slices = 0;
    while !session.close_slice(&mut db) {
        slices += 1;
    }
    assert!(slices >= 8, "{slices}");
    db.drop_idle_types();
    assert_eq!((db.types().count(), db.missing_weight()), (0, 0));
    db.check().unwrap();
}
