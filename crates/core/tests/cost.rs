//! What things cost, counted: a change costs those whom it concerns, and what
//! is kept is bounded by what somebody may still need.
//!
//! The same bars at full size, and bytes, are in `benches/memory.rs`.

#[path = "../benches/support/mod.rs"]
mod support;

use std::sync::Arc;

use support::{Peer, filled, group, named, put, settle, since, touch, variant, wildcards};
use trunkline_core::change::Change;
use trunkline_core::database::{Database, MemoryCounts, Work};
use trunkline_core::kind::{CDS, EDS, VHDS};
use trunkline_core::message::InitialVersions;
use trunkline_core::name::Name;
use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;
use trunkline_core::resource_list::ResourceList;

const FEW: usize = 1_000;
const MANY: usize = 20_000;

/// What one change costs until everybody has accepted it.
fn work_of_change(db: &mut Database, url: &str, number: usize, peers: &mut [Peer]) -> Work {
    let before = db.work();
    touch(db, url, number, 7);
    settle(db, peers);
    since(db, before)
}

fn kept(db: &Database, url: &str) -> MemoryCounts {
    let type_id = db.find_type(&url.into());
    type_id.map(|id| db.memory_counts(id)).unwrap_or_default()
}

#[test]
fn a_change_costs_its_named_subscribers_however_many_resources_there_are() {
    for count in [FEW, MANY] {
        let mut db = filled(EDS, count);
        let mut asked = named(&mut db, EDS, 10, &[support::name(3)]);
        let mut other = named(&mut db, EDS, 10, &[support::name(4)]);
        let work = work_of_change(&mut db, EDS, 3, &mut asked);
        // The name itself, and once for each answer.
        let expected = Work {
            entries: 11,
            subscribers: 10,
            ..Work::default()
        };
        assert_eq!(work, expected, "{count} resources");
        assert!(!other.iter_mut().any(|peer| peer.take(&mut db)));
    }
}

#[test]
fn a_change_of_a_virtual_host_costs_who_asks_for_it_however_many_hosts_there_are() {
    let work = [FEW, MANY].map(|count| {
        let mut db = support::hosts(count);
        let mut asked = named(&mut db, VHDS, 10, &[support::host_name(3)]);
        let mut other = named(&mut db, VHDS, 10, &[support::host_name(4)]);
        let before = db.work();
        put(&mut db, &VHDS.into(), [support::host(3, 7)]);
        settle(&mut db, &mut asked);
        assert!(!other.iter_mut().any(|peer| peer.take(&mut db)));
        since(&db, before)
    });
    assert_eq!(work[0], work[1]);
    assert_eq!(work[0].subscribers, 10);
}

#[test]
fn a_change_that_nobody_sees_wakes_nobody() {
    let mut db = filled(EDS, FEW);
    let _asked = named(&mut db, EDS, 10, &[support::name(3)]);
    touch(&mut db, EDS, 4, 1);
    touch(&mut db, EDS, 3, 0);
    assert_eq!(db.take_woken_streams(), []);
}

#[test]
fn a_change_costs_its_views_and_their_streams_however_many_resources_there_are() {
    const STREAMS: usize = 4;
    for views in [1, 2] {
        for count in [FEW, MANY] {
            let mut db = filled(CDS, count);
            if views > 1 {
                let split = (0..views).map(|group| variant(count, 0, group));
                put(&mut db, &CDS.into(), split);
            }
            let mut peers = wildcards(&mut db, CDS, STREAMS, views);
            let work = work_of_change(&mut db, CDS, 3, &mut peers);
            // The name, and once for each view: its streams share the step.
            let expected = Work {
                entries: 1 + views as u64,
                views: views as u64,
                subscribers: STREAMS as u64,
                ..Work::default()
            };
            assert_eq!(work, expected, "{count} resources, {views} views");
            assert_eq!(kept(&db, CDS).views, views);
        }
    }
}

#[test]
fn a_change_for_one_group_wakes_only_that_group() {
    let mut db = Database::new();
    put(
        &mut db,
        &CDS.into(),
        (0..4).map(|group| variant(0, 0, group)),
    );
    let mut peers = wildcards(&mut db, CDS, 12, 4);
    put(&mut db, &CDS.into(), [variant(0, 1, 2)]);
    assert_eq!(db.take_woken_streams().len(), 3);
    let told = peers
        .iter_mut()
        .filter_map(|p| p.take(&mut db).then_some(()));
    assert_eq!(told.count(), 3);
}

#[test]
fn tp2_a_change_to_one_variant_costs_those_who_have_it() {
    const GROUPS: usize = 8;
    let mut db = Database::new();
    let url = TypeUrl::from(EDS);
    put(&mut db, &url, (0..GROUPS).map(|group| variant(0, 0, group)));
    let mut peers: Vec<_> = (0..40 * GROUPS)
        .map(|nth| {
            let mut peer = Peer::open(&mut db, group(nth % GROUPS));
            peer.ask(&mut db, EDS, [support::name(0)]);
            peer
        })
        .collect();
    settle(&mut db, &mut peers);
    let before = db.work();
    put(&mut db, &url, [variant(0, 1, 3)]);
    let work = since(&db, before);
    assert_eq!((work.subscribers, work.evaluations), (40, 0), "{work:?}");
    assert_eq!(db.take_woken_streams().len(), 40);
}

#[test]
fn constraints_are_evaluated_once_for_each_category() {
    const VARIANTS: usize = 20;
    let mut db = Database::new();
    let url = TypeUrl::from(CDS);
    put(
        &mut db,
        &url,
        (0..VARIANTS).map(|group| variant(0, 0, group)),
    );
    let type_id = db.type_id(&url);
    let mut choose = |zone: usize, group: usize| {
        let pairs = [("group", group.to_string()), ("zone", zone.to_string())];
        let params = db.intern_params(Params::new(pairs).unwrap());
        let before = db.work();
        let choice = db.choose_name(type_id, &support::name(0), params);
        assert_eq!(choice.resource().is_some(), group < VARIANTS);
        since(&db, before).evaluations
    };
    for group in [0, 7, 50] {
        assert!(choose(0, group) > 0);
        for zone in 1..100 {
            assert_eq!(choose(zone, group), 0);
        }
    }
}

#[test]
fn s46_clients_that_come_back_at_once_share_what_is_listed() {
    let mut db = filled(CDS, FEW);
    let held: Vec<_> = (0..FEW)
        .map(|number| support::resource(number, 0))
        .map(|r| (r.name.clone(), r.version.clone()))
        .collect();
    touch(&mut db, CDS, 3, 7);
    let before = db.work();
    for _ in 0..10 {
        let mut peer = Peer::open(&mut db, group(0));
        peer.resume(&mut db, CDS, &held.iter().cloned().collect());
        assert!(peer.take(&mut db));
        peer.accept(&mut db);
        assert!(!peer.take(&mut db));
    }
    // Once to make their view and once to list it, for all of them.
    assert_eq!(since(&db, before).entries, 2 * FEW as u64);
}

#[test]
fn s46_clients_that_hold_the_same_share_what_they_are_sent() {
    let mut db = filled(CDS, FEW);
    let held = (0..FEW).map(|number| support::resource(number, 0));
    let held: InitialVersions = held.map(|r| (r.name.clone(), r.version.clone())).collect();
    touch(&mut db, CDS, 3, 7);
    let mut open = |held: &InitialVersions| {
        let mut peer = Peer::open(&mut db, group(0));
        peer.resume(&mut db, CDS, held);
        assert!(peer.take(&mut db));
        peer
    };
    let sent = |peer: &Peer| peer.taken().unwrap().resources.clone();
    let list = |peer: &Peer| match sent(peer) {
        ResourceList::Shared(list) => list,
        ResourceList::Own(_) => panic!("it is written for one client"),
    };
    let (one, other) = (open(&held), open(&held));
    assert!(Arc::ptr_eq(&list(&one), &list(&other)));
    assert_eq!(sent(&one).len(), 1);
    // A client of another set is compared by itself.
    let less: InitialVersions = held.iter().skip(1).cloned().collect();
    assert_eq!(sent(&open(&less)).len(), 2);
    // So is everybody once there was a change.
    touch(&mut db, CDS, 5, 7);
    let mut late = Peer::open(&mut db, group(0));
    late.resume(&mut db, CDS, &held);
    assert!(late.take(&mut db));
    assert_eq!(sent(&late).len(), 2);
}

#[test]
fn a_follower_that_is_stuck_costs_what_it_holds() {
    const COUNT: usize = 50;
    let mut db = filled(CDS, COUNT);
    let mut stuck = wildcards(&mut db, CDS, 1, 1);
    let mut lively = wildcards(&mut db, CDS, 1, 1);
    for edition in 1..10_000 {
        touch(&mut db, CDS, edition as usize % COUNT, edition);
        // It takes one response and never answers.
        stuck[0].take(&mut db);
        settle(&mut db, &mut lively);
    }
    let now = kept(&db, CDS);
    assert_eq!((now.names, now.views), (COUNT, 1));
    // Two positions to come back to, and what is swept at the next occasion.
    assert!(now.retired <= 4 * COUNT + 64, "{now:?}");
    assert!((COUNT..=3 * COUNT / 2 + 65).contains(&now.items), "{now:?}");
    db.check().unwrap();

    for peer in stuck {
        peer.close(&mut db);
    }
    touch(&mut db, CDS, 0, 10_000);
    settle(&mut db, &mut lively);
    assert_eq!(kept(&db, CDS).retired, 0);
}

#[test]
fn names_that_come_and_go_leave_nothing() {
    let mut db = filled(CDS, 10);
    let mut peers = wildcards(&mut db, CDS, 2, 1);
    for edition in 0..300 {
        touch(&mut db, CDS, 100 + edition, 1);
        settle(&mut db, &mut peers);
        let gone = vec![Change::Remove(CDS.into(), support::name(100 + edition))];
        db.apply(gone).unwrap();
        settle(&mut db, &mut peers);
    }
    let now = kept(&db, CDS);
    assert_eq!((now.names, now.retired), (10, 0));
    assert!(now.items <= 80, "{now:?}");
    db.check().unwrap();
}

#[test]
fn streams_that_end_leave_nothing() {
    let mut db = filled(CDS, 10);
    for round in 0..100 {
        let mut peer = Peer::open(&mut db, group(0));
        peer.ask(&mut db, CDS, []);
        peer.ask(&mut db, EDS, [Name::new("wanted"), Name::new("wanted too")]);
        peer.take(&mut db);
        touch(&mut db, CDS, 0, round);
        peer.close(&mut db);
    }
    let left = MemoryCounts {
        names: 10,
        ..MemoryCounts::default()
    };
    assert_eq!(kept(&db, CDS), left);
    assert_eq!(kept(&db, EDS), MemoryCounts::default());
    assert_eq!(db.take_woken_streams(), []);
    db.check().unwrap();
}
