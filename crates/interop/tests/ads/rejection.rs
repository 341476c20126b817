//! A rejection costs the resource that caused it, and no other (S12).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use interop::{Backend, Envoy, Mode, assert_no_init_fetch_timeout, bootstrap, http};
use trunkline::{Change, Event, Resource, kind};
use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, cluster::LbPolicy};

use crate::dump::active_clusters;
use crate::journal::Entry;
use crate::resources::{cluster, put_cluster, put_endpoints, put_listener, put_route, seconds};
use crate::serving::Serving;

const SOON: Duration = Duration::from_secs(5);
const BAD: usize = 5;

/// What is wrong with the bad cluster decides what Envoy does with the others:
/// nothing at all, or what it would have done anyway.
type Spoil = fn(&mut Cluster);

fn invalid_field(cluster: &mut Cluster) {
    cluster.connect_timeout = Some(seconds(-1));
}

fn not_constructible(cluster: &mut Cluster) {
    cluster.lb_policy = LbPolicy::ClusterProvided.into();
}

fn name(number: usize) -> String {
    format!("c{number}")
}

/// A version of a cluster that its connect timeout tells.
fn version(number: usize, timeout: i64) -> Cluster {
    Cluster {
        connect_timeout: Some(seconds(timeout)),
        ..cluster(&name(number))
    }
}

fn resource(change: &Change) -> Arc<Resource> {
    match change {
        Change::Upsert(_, resource) => Arc::clone(resource),
        other => panic!("{other:?} brings nothing"),
    }
}

/// Ten clusters with one timeout, but for one of them.
fn all_but(odd: usize, timeout: i64, odd_timeout: i64) -> BTreeMap<String, String> {
    let timeout_of = |number| if number == odd { odd_timeout } else { timeout };
    (0..10)
        .map(|number| (name(number), format!("{}s", timeout_of(number))))
        .collect()
}

fn one_bad_cluster_among_ten(mode: Mode, spoil: Spoil) {
    let backend = Backend::start("served");
    let mut contents = vec![put_listener("http", "r"), put_route("r", &name(BAD))];
    for number in 0..10 {
        contents.push(put_cluster(&version(number, 1)));
        contents.push(put_endpoints(&name(number), &[backend.address()]));
    }
    let serving = Serving::start(contents);
    let envoy = Envoy::start(&bootstrap::ads(serving.port, mode, "n1"));
    let listener = envoy.listener("http").expect("the listener");
    let wait_for_clusters = |what, expected| {
        envoy.wait_for(what, SOON, |envoy| {
            (active_clusters(envoy) == expected).then_some(())
        });
    };

    let mut bad = version(BAD, 2);
    spoil(&mut bad);
    let bad = put_cluster(&bad);
    let mut changes: Vec<_> = (0..10).map(|n| put_cluster(&version(n, 2))).collect();
    changes[BAD] = bad.clone();
    let start = Instant::now();
    serving.apply(changes);
    let parked = serving
        .journal
        .wait("the bad one to be parked", 0, |entry| match entry {
            Entry::Event(Event::Parked { name, version, .. }) => {
                Some((name.clone(), version.clone()))
            }
            _ => None,
        });
    let bad = resource(&bad);
    assert_eq!(parked, (bad.name.clone(), bad.version.clone()));
    wait_for_clusters("nine new and one old", all_but(BAD, 2, 1));
    println!("{mode:?}: nine took effect after {:?}", start.elapsed());

    let place = serving.journal.place();
    serving.apply(vec![put_cluster(&version(0, 3))]);
    serving
        .journal
        .wait_accepted("another change", place, kind::CDS, |sent| sent.brings("c0"));
    let again = serving
        .journal
        .sent(place, kind::CDS)
        .iter()
        .any(|sent| sent.resources.contains(&parked));
    assert!(!again, "what was rejected is not sent again");

    let mut healed = all_but(0, 2, 3);
    serving.apply(vec![put_cluster(&version(BAD, 4))]);
    healed.insert(name(BAD), "4s".to_owned());
    wait_for_clusters("the bad one to be mended", healed);
    assert_eq!(http::get(listener, "/").expect("an answer").body, "served");
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s12_an_invalid_cluster_by_delta() {
    one_bad_cluster_among_ten(Mode::Delta, invalid_field);
}

#[test]
fn s12_an_invalid_cluster_by_state_of_the_world() {
    one_bad_cluster_among_ten(Mode::Sotw, invalid_field);
}

#[test]
fn s12_a_cluster_that_cannot_be_made_by_delta() {
    one_bad_cluster_among_ten(Mode::Delta, not_constructible);
}

#[test]
fn s12_a_cluster_that_cannot_be_made_by_state_of_the_world() {
    one_bad_cluster_among_ten(Mode::Sotw, not_constructible);
}
