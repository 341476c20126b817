//! Random sets of variants: what is admitted is unambiguous, and who matches
//! what is the same wherever it is decided (S62).

#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod small_world;

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use small_world::{KEYS, MENTIONED, expr, holds, world};
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, Database};
use trunkline_core::facts::Facts;
use trunkline_core::hosts::Domains;
use trunkline_core::kind::{CDS, RDS, VHDS};
use trunkline_core::message::{
    DeltaRequest, Form, Locator, Mode, Node as Peer, SotwRequest, WireResource,
};
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::{Constraints, Expr, Params};
use trunkline_core::resource::Resource;
use trunkline_core::session::{Config, Session};
use trunkline_core::sink::{Response, Sink, SinkConfig, Verdict};

const NOW: Moment = Moment::START;

/// A variant of a name, with its place in the list as its body.
fn variant(name: &str, place: usize, expr: &Expr) -> Resource {
    let constraints = Constraints::new(expr).unwrap();
    Resource {
        constraints: Some(constraints).filter(|c| !c.is_always()),
        ..Resource::new(Name::new(name), Bytes::from(place.to_string()))
    }
}

fn put(url: &str, resource: Resource) -> Change {
    Change::Upsert(url.into(), Arc::new(resource))
}

/// Which variant a client matches by the meaning of the expressions.
fn meant(admitted: &[(usize, Expr)], client: &Params) -> Option<String> {
    let mut found = admitted.iter().filter(|(_, expr)| holds(expr, client));
    let first = found.next().map(|(place, _)| place.to_string());
    assert!(found.next().is_none(), "{client} matches two variants");
    first
}

/// Those of a list that are admitted one after the other. What is refused is
/// refused for a reason, and all that has none is taken. `replaces` is whether
/// one with equal constraints takes the place of the other.
fn admit(
    db: &mut Database,
    list: &[Expr],
    replaces: bool,
    change: impl Fn(usize, &Expr) -> Change,
) -> Vec<(usize, Expr)> {
    let mut admitted: Vec<(usize, Expr)> = Vec::new();
    for (place, new) in list.iter().enumerate() {
        let same = |old: &Expr| Constraints::new(old).unwrap() == Constraints::new(new).unwrap();
        let others = admitted.iter().filter(|(_, old)| !(replaces && same(old)));
        let others: Vec<_> = others.cloned().collect();
        let both = |client: &Params| {
            holds(new, client) && others.iter().any(|(_, old)| holds(old, client))
        };
        match db.apply(vec![change(place, new)]) {
            Ok(()) => {
                assert!(
                    !world().iter().any(both),
                    "{new} was taken beside {others:?}"
                );
                admitted = others;
                admitted.push((place, new.clone()));
            }
            Err(ApplyError::Overlap { witness, .. } | ApplyError::Domain { witness, .. }) => {
                assert!(both(&witness), "{witness} does not match {new} and another");
            }
            Err(other) => panic!("{other}"),
        }
    }
    admitted
}

/// Constraints as a receiver reads them must match the client that gets them.
fn received(mut all: impl Iterator<Item = WireResource>, client: &Params) -> Option<String> {
    let only = all.next()?.resource;
    assert!(all.next().is_none(), "one variant for one client");
    let constraints = only.constraints.as_ref();
    assert!(constraints.is_none_or(|c| c.matches(client) && holds(c.expr(), client)));
    only.body.as_ref().map(text)
}

fn text(body: &Bytes) -> String {
    String::from_utf8_lossy(body).into_owned()
}

/// How a client asks: for everything or by name; and who it is, for the stream
/// or with the name.
#[derive(Clone, Copy, Debug)]
enum Way {
    Wildcard,
    Named,
    Located,
}

fn locators(way: Way, client: &Params) -> Vec<Locator> {
    let params = matches!(way, Way::Located).then(|| client.clone());
    match way {
        Way::Wildcard => Vec::new(),
        Way::Named | Way::Located => vec![Locator {
            name: "a".to_owned(),
            params,
        }],
    }
}

fn session(db: &mut Database, mode: Mode, way: Way, client: &Params) -> Session {
    let mut config = Config::new(mode);
    if !matches!(way, Way::Located) {
        config.params = client.clone();
    }
    Session::open(db, config)
}

fn by_delta(db: &mut Database, way: Way, client: &Params) -> Option<String> {
    let mut session = session(db, Mode::Delta, way, client);
    let request = DeltaRequest {
        type_url: Some(CDS.into()),
        subscribe: locators(way, client),
        ..DeltaRequest::default()
    };
    session.handle_delta(db, request, NOW).unwrap();
    let response = session
        .poll(db, NOW)
        .and_then(Response::into_delta)
        .unwrap();
    session.close(db);
    received(response.resources.iter().cloned(), client)
}

fn by_sotw(db: &mut Database, way: Way, client: &Params) -> Option<String> {
    let mut session = session(db, Mode::Sotw, way, client);
    let request = SotwRequest {
        node: Some(Peer {
            user_agent: "envoy".to_owned(),
            ..Peer::default()
        }),
        type_url: Some(CDS.into()),
        names: locators(way, client).into(),
        ..SotwRequest::default()
    };
    session.handle_sotw(db, request, NOW).unwrap();
    let response = session.poll(db, NOW).and_then(Response::into_sotw).unwrap();
    session.close(db);
    let wrapped = |d: &WireResource| d.resource.constraints.is_none() || d.form == Form::Wrapped;
    assert!(response.resources.iter().all(wrapped));
    received(response.resources.iter().cloned(), client)
}

/// What a client's cache holds, after a sink took it.
fn by_sink(db: &mut Database, client: &Params) -> Option<String> {
    let mut session = session(db, Mode::Delta, Way::Named, client);
    let mut sink = Sink::new(SinkConfig::new(Mode::Delta, Peer::default()));
    let url = CDS.into();
    sink.subscribe(&url, Selector::Name(Name::new("a")), NOW)
        .unwrap();
    sink.handle_connected();
    let Some(trunkline_core::sink::Request::Delta(request)) = sink.poll_request(NOW) else {
        panic!("a request");
    };
    session.handle_delta(db, request, NOW).unwrap();
    let response = session
        .poll(db, NOW)
        .and_then(Response::into_delta)
        .unwrap();
    session.close(db);
    let delivery = sink.handle_response(Response::Delta(response)).unwrap();
    let verdict = Verdict::accept();
    sink.handle_verdict(&url, &delivery.nonce, verdict, NOW)
        .unwrap();
    let changes = sink.take_effects().changes.into_iter();
    let resources = changes.filter_map(|change| match change {
        Change::Upsert(_, resource) => Some(WireResource::full(resource)),
        _ => None,
    });
    received(resources, client)
}

fn host(name: &str, place: usize, expr: &Expr) -> Resource {
    Resource {
        facts: Some(Box::new(Facts {
            domains: Domains::new(["x.com", "*.y.com"]),
            ..Facts::default()
        })),
        ..variant(name, place, expr)
    }
}

fn by_host(db: &mut Database, asked: &str, client: &Params) -> Option<String> {
    let type_id = db.type_id(&VHDS.into());
    let params = db.intern_params(client.clone());
    let found = db
        .explain_host(type_id, &Name::new(asked), params)
        .matched?;
    found.host.body.as_ref().map(text)
}

fn list() -> impl Strategy<Value = Vec<Expr>> {
    // Whole expressions mostly overlap; with a value of one key each, they
    // mostly do not, and what is admitted is more than one.
    let value = prop::sample::select(&MENTIONED[..]);
    let part = (value, expr()).prop_map(|(value, rest)| {
        let own = Expr::value(KEYS[0], value);
        Expr::and(vec![own, rest]).unwrap()
    });
    let absent = expr().prop_map(|rest| {
        let absent = Expr::not(Expr::exists(KEYS[0])).unwrap();
        Expr::and(vec![absent, rest]).unwrap()
    });
    prop::collection::vec(prop_oneof![2 => expr(), 4 => part, 1 => absent], 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn s62_a_client_matches_one_variant_at_most_and_the_same_everywhere(list in list()) {
        let mut db = Database::new();
        let admitted = admit(&mut db, &list, true, |n, expr| put(CDS, variant("a", n, expr)));
        let type_id = db.type_id(&CDS.into());
        for client in world() {
            let meant = meant(&admitted, &client);
            let by_meaning = db.variants(type_id, &Name::new("a")).iter().filter(|r| {
                r.constraints.as_ref().is_none_or(|c| c.matches(&client))
            });
            let by_meaning: Vec<_> = by_meaning.filter_map(|r| r.body.as_ref().map(text)).collect();
            prop_assert_eq!(by_meaning, Vec::from_iter(meant.clone()));
            let params = db.intern_params(client.clone());
            let chosen = db.choose_name(type_id, &Name::new("a"), params);
            let chosen = chosen.resource().and_then(|r| r.body.as_ref().map(text));
            prop_assert_eq!(&chosen, &meant, "{}", client);
            for way in [Way::Wildcard, Way::Named, Way::Located] {
                let delta = by_delta(&mut db, way, &client);
                prop_assert_eq!(&delta, &meant, "delta, {:?}, {}", way, client);
                let sotw = by_sotw(&mut db, way, &client);
                prop_assert_eq!(&sotw, &meant, "sotw, {:?}, {}", way, client);
            }
            prop_assert_eq!(by_sink(&mut db, &client), meant, "a sink, {}", client);
        }
        db.check().unwrap();
    }

    #[test]
    fn s62_hosts_are_found_among_what_a_client_sees(list in list()) {
        // Variants of one virtual host, and virtual hosts beside each other:
        // they conflict over a domain only if one client could see both.
        for apart in [false, true] {
            let mut db = Database::new();
            let name = |n: usize| if apart { format!("r/v{n}") } else { "r/v".to_owned() };
            let change = |n: usize, expr: &Expr| put(VHDS, host(&name(n), n, expr));
            let admitted = admit(&mut db, &list, !apart, change);
            for client in world() {
                let meant = meant(&admitted, &client);
                for asked in ["r/x.com", "r/sub.y.com"] {
                    prop_assert_eq!(&by_host(&mut db, asked, &client), &meant, "{}", client);
                }
            }
            db.check().unwrap();
        }
    }

    #[test]
    fn s62_a_whole_set_is_admitted_if_and_only_if_its_parts_exclude_each_other(list in list()) {
        let mut db = Database::new();
        let changes = list.iter().enumerate();
        let changes = changes.map(|(n, expr)| put(RDS, variant("a", n, expr)));
        let taken = db.apply(changes.collect());
        let mut distinct: Vec<Constraints> =
            list.iter().map(|expr| Constraints::new(expr).unwrap()).collect();
        distinct.sort();
        distinct.dedup();
        let matching = |client: &Params| distinct.iter().filter(|c| c.matches(client)).count();
        let ambiguous = world().iter().any(|client| matching(client) > 1);
        prop_assert_eq!(taken.is_err(), ambiguous);
        if let Err(error) = taken {
            let ApplyError::Overlap { witness, .. } = &error else {
                panic!("{error}");
            };
            prop_assert!(matching(witness) > 1, "{}", error);
            prop_assert!(db.is_empty());
        }
    }
}
