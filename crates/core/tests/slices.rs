//! S85: what is large is done in slices. A change of many names never touches
//! more than a slice of them at once, while streams go on between two slices.

#![allow(clippy::unwrap_used)] // a test: what cannot fail here is part of it

#[path = "../benches/support/mod.rs"]
mod support;

use std::sync::Arc;

use support::{Peer, fill, group, host, host_name, put, settle, wildcards};
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::database::{Commit, Completion, Database, Progress, SLICE};
use trunkline_core::facts::Facts;
use trunkline_core::hosts::Domains;
use trunkline_core::kind::{CDS, EDS, LDS, VHDS};
use trunkline_core::message::{DeltaRequest, Mode, Response};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::{Config, Session};

const MANY: usize = 200_000;

/// Applies changes in slices; between two of them everybody is told what there
/// is to say. Returns how many slices there were.
fn apply(db: &mut Database, changes: Vec<Change>, peers: &mut [Peer]) -> usize {
    let mut commit = Commit::new(changes).unwrap();
    let mut slices = 0;
    db.end_slice();
    loop {
        let progress = commit.advance(db, SLICE, |_| ()).unwrap();
        db.end_slice();
        slices += 1;
        for peer in &mut *peers {
            peer.take(db);
            db.end_slice();
            peer.accept(db);
            db.end_slice();
        }
        if progress == Progress::Done {
            return slices;
        }
    }
}

fn all(url: &str, from: usize, edition: u64) -> Change {
    let resources = from..from + MANY;
    let resources = resources.map(|number| support::resource(number, edition));
    Change::ReplaceAll(url.into(), resources.collect())
}

#[test]
fn s85_a_change_of_many_touches_a_slice_at_once() {
    let mut db = Database::new();
    let mut peers = wildcards(&mut db, CDS, 1, 1);
    let upserts = (0..MANY).map(|number| support::resource(number, 0));
    let upserts = upserts.map(|r| Change::Upsert(CDS.into(), r));
    let slices = apply(&mut db, upserts.collect(), &mut peers);
    // Each name is checked and made.
    let least = 2 * MANY / SLICE;
    assert!((least..least + 2).contains(&slices), "{slices}");
    // Half of the names go, as many come, the others change.
    let slices = apply(&mut db, vec![all(CDS, MANY / 2, 2)], &mut peers);
    assert!(slices > least, "{slices}");
    settle(&mut db, &mut peers);
    assert_eq!(db.len(db.find_type(&CDS.into()).unwrap()), MANY);
    let largest = db.work().largest_slice;
    assert!(largest <= SLICE as u64, "{largest}");
    db.check().unwrap();
}

#[test]
fn s85_a_change_of_many_virtual_hosts_touches_a_slice_at_once() {
    let mut db = Database::new();
    let mut peer = Peer::open(&mut db, group(0));
    peer.ask(&mut db, VHDS, (0..100).map(|nth| host_name(nth * 100)));
    let mut peers = [peer];
    for edition in 0..2 {
        let hosts = (0..MANY / 8).map(|number| host(number, edition));
        let upserts = hosts.map(|r| Change::Upsert(VHDS.into(), r)).collect();
        assert!(apply(&mut db, upserts, &mut peers) >= MANY / 4 / SLICE);
    }
    let largest = db.work().largest_slice;
    // Beside each name, the hosts that are asked for under it.
    assert!(largest <= SLICE as u64 + 1, "{largest}");
    db.check().unwrap();
}

#[test]
fn s85_what_fits_into_a_slice_is_made_in_one() {
    let mut db = Database::new();
    let changes = |edition| {
        let resources = (0..SLICE).map(move |number| support::resource(number, edition));
        let upserts = resources.map(|r| Change::Upsert(EDS.into(), r));
        upserts.collect()
    };
    assert_eq!(apply(&mut db, changes(0), &mut []), 1);
    assert_eq!(apply(&mut db, changes(1), &mut []), 1);
    assert_eq!(db.work().largest_slice, SLICE as u64);
}

#[test]
fn s85_a_refused_transaction_changes_nothing() {
    let mut db = Database::new();
    fill(&mut db, CDS, 10, 0);
    let overlap = ["env=a", "zone=z"].map(|clients| {
        let constraints = Some(clients.parse().unwrap());
        let resource = Resource::new("zzz".into(), "b".into());
        Change::Upsert(
            LDS.into(),
            Arc::new(Resource {
                constraints,
                ..resource
            }),
        )
    });
    let changes = [all(CDS, 5, 1)].into_iter().chain(overlap).collect();
    let mut commit = Commit::new(changes).unwrap();
    let mut slices = 0;
    let refused = loop {
        match commit.advance(&mut db, SLICE, |_| panic!("nothing changes")) {
            Ok(progress) => assert_eq!(progress, Progress::More),
            Err(refused) => break refused,
        }
        slices += 1;
    };
    assert!(slices >= MANY / SLICE);
    assert!(refused.to_string().contains("zzz"));
    let cds = db.find_type(&CDS.into()).unwrap();
    assert_eq!(db.len(cds), 10);
    let first = support::name(0);
    assert_eq!(*db.variants(cds, &first), [support::resource(0, 0)]);
    db.check().unwrap();
}

fn vhost(name: &str, domains: &[&str]) -> Arc<Resource> {
    Arc::new(Resource {
        facts: Some(Box::new(Facts {
            domains: Domains::new(domains.iter().copied()),
            ..Facts::default()
        })),
        ..Resource::new(Name::new(name), "body".into())
    })
}

#[test]
fn s85_virtual_hosts_that_exchange_domains_change_together() {
    let mut db = Database::new();
    let url = TypeUrl::from(VHDS);
    let old = [
        vhost("r/a", &["a.com", "both.com"]),
        vhost("r/m", &["m.com"]),
        vhost("r/z", &["z.com"]),
    ];
    put(&mut db, &url, old);
    // `a` gives one domain to `y`, which is new, and takes one from `z`, which
    // goes; `m` has nothing to do with them.
    let new = vec![
        vhost("r/a", &["a.com", "z.com"]),
        vhost("r/m", &["m.com", "n.com"]),
        vhost("r/y", &["both.com"]),
    ];
    let vhds = db.type_id(&url);
    let mut commit = Commit::new(vec![Change::ReplaceAll(url, new)]).unwrap();
    let mut steps = Vec::new();
    while commit
        .advance(&mut db, 1, |made| steps.push(made.name.to_string()))
        .unwrap()
        == Progress::More
    {
        db.check().unwrap();
        let owners =
            |domain| db.hosts_with_domain(vhds, "r", trunkline_core::hosts::Domain::of(domain));
        for domain in ["a.com", "both.com", "m.com", "z.com"] {
            assert_eq!(owners(domain).len(), 1, "{domain}");
        }
        steps.push("|".into());
    }
    let steps = steps.join(" ");
    let steps = steps.trim_start_matches(['|', ' ']);
    assert_eq!(steps, "r/a r/y r/z | r/m |");
}

#[test]
fn s85_what_changes_together_waits_for_a_slice_with_room_for_all_of_it() {
    let mut db = Database::new();
    let url = TypeUrl::from(VHDS);
    let domains = |names: [&'static str; 8], of: [&'static str; 8]| {
        let all = names.into_iter().zip(of);
        all.map(|(name, domain)| vhost(name, &[domain]))
    };
    let names = ["r/a", "r/b", "r/c", "r/d", "r/e", "r/f", "r/g", "r/h"];
    put(
        &mut db,
        &url,
        domains(names, ["a", "b", "c", "d", "e", "f", "g", "h"]),
    );
    // `d` and `e` exchange their domains, and so do `f` and `g`.
    let new = domains(names, ["A", "B", "C", "e", "d", "g", "f", "H"]);
    let changes = new.map(|host| Change::Upsert(url.clone(), host)).collect();
    let mut commit = Commit::new(changes).unwrap();
    let mut steps = String::new();
    while commit
        .advance(&mut db, 4, |made| steps.push_str(&made.name.as_str()[2..]))
        .unwrap()
        == Progress::More
    {
        steps.push('|');
    }
    // Two slices check all names; then there is room for one beside `c`, and for
    // two beside `d` and `e`.
    assert_eq!(steps.trim_start_matches('|'), "abc|defg|h");
}

#[test]
fn s85_contents_that_become_complete_touch_a_slice_at_once() {
    let mut db = Database::cache();
    apply(&mut db, vec![all(CDS, 0, 0)], &mut []);
    let before = db.work().entries;
    let mut settling = Completion::default();
    while db.complete_slice(&mut settling, SLICE) == Progress::More {
        db.end_slice();
    }
    assert_eq!(db.work().entries - before, MANY as u64);
    assert!(db.work().largest_slice <= SLICE as u64);
}

/// A stream asks for all names there are, is told of them, and leaves: others
/// have their turn after a slice of names at most.
#[test]
fn s85_asking_for_many_names_and_leaving_touches_a_slice_at_once() {
    let (mut db, now) = (Database::new(), Moment::START);
    fill(&mut db, EDS, MANY, 0);
    let mut session = Session::open(&mut db, Config::new(Mode::Delta));
    db.end_slice();
    let before = db.work();
    let ask = DeltaRequest {
        type_url: Some(EDS.into()),
        subscribe: (0..MANY)
            .map(|n| support::name(n).as_str().into())
            .collect(),
        ..DeltaRequest::default()
    };
    let mut largest = 0;
    let mut touched = before.entries;
    let mut hold = |db: &mut Database| {
        let now = db.work().entries;
        largest = largest.max(now - std::mem::replace(&mut touched, now));
        db.end_slice();
    };
    session.handle_delta(&mut db, ask, now).unwrap();
    hold(&mut db);
    let mut told = 0;
    loop {
        let response = session.poll(&mut db, now).and_then(Response::into_delta);
        hold(&mut db);
        let Some(response) = response else {
            if session.has_more() {
                continue;
            }
            break;
        };
        told += response.resources.len();
        let ack = DeltaRequest {
            type_url: Some(EDS.into()),
            nonce: Some(response.nonce),
            ..DeltaRequest::default()
        };
        session.handle_delta(&mut db, ack, now).unwrap();
        hold(&mut db);
    }
    assert_eq!(told, MANY);
    while !session.close_slice(&mut db) {
        hold(&mut db);
    }
    hold(&mut db);
    // A name is looked at a few times while it is.
    assert!(largest <= 6 * SLICE as u64, "{largest}");
    db.check().unwrap();
}
