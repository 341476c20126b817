//! A NACK costs the resource that caused it, and no other (S12).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use interop::{Backend, Envoy, Mode, Serving, assert_no_init_fetch_timeout, bootstrap, http};
use trunkline::{Change, Name, Version, kind};
use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, cluster::LbPolicy};

use crate::resources::{
    cluster, put_cluster, put_endpoints, put_endpoints_at, put_listener, put_route, seconds,
};

const SOON: Duration = Duration::from_secs(5);
const BAD: usize = 5;

/// The fault of the bad cluster decides what Envoy does with the others: it
/// takes none of them, or all.
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

/// Ten clusters with one timeout, but for one of them.
fn all_but(odd: usize, timeout: i64, odd_timeout: i64) -> BTreeMap<String, String> {
    let timeout_of = |number| if number == odd { odd_timeout } else { timeout };
    (0..10)
        .map(|number| (name(number), format!("{}s", timeout_of(number))))
        .collect()
}

/// Ten clusters with their endpoints, behind a listener that uses the bad one.
fn ten_clusters(backend: &Backend) -> Vec<Change> {
    let mut contents = vec![put_listener("http", "r"), put_route("r", &name(BAD))];
    for number in 0..10 {
        contents.push(put_cluster(&version(number, 1)));
        contents.push(put_endpoints(&name(number), backend.address()));
    }
    contents
}

fn bad_cluster(spoil: Spoil) -> Change {
    let mut bad = version(BAD, 2);
    spoil(&mut bad);
    put_cluster(&bad)
}

/// Waits until a resource is quarantined and gives its name and version.
fn parked(serving: &Serving) -> (Name, Version) {
    let (name, version, _) = serving.journal.wait_parked(0);
    (name, version)
}

fn identity(change: &Change) -> (Name, Version) {
    match change {
        Change::Upsert(_, resource) => (resource.name.clone(), resource.version.clone()),
        other => panic!("{other:?} brings nothing"),
    }
}

fn wait_for_clusters(envoy: &Envoy, what: &str, expected: &BTreeMap<String, String>) {
    envoy.wait_for(what, SOON, |envoy| {
        (envoy.active_clusters() == *expected).then_some(())
    });
}

fn one_bad_cluster_among_ten(mode: Mode, spoil: Spoil) {
    let backend = Backend::start("served");
    let serving = Serving::start(ten_clusters(&backend));
    let envoy = Envoy::start(&bootstrap::ads(serving.port, mode, "n1"));
    let listener = envoy.listener("http").expect("the listener");

    let bad = bad_cluster(spoil);
    let mut changes: Vec<_> = (0..10).map(|n| put_cluster(&version(n, 2))).collect();
    changes[BAD] = bad.clone();
    let start = Instant::now();
    serving.apply(changes);
    assert_eq!(parked(&serving), identity(&bad));
    wait_for_clusters(&envoy, "nine new and one old", &all_but(BAD, 2, 1));
    println!("{mode:?}: nine took effect after {:?}", start.elapsed());

    let place = serving.journal.place();
    serving.apply(vec![put_cluster(&version(0, 3))]);
    serving
        .journal
        .wait_accepted("another change", place, kind::CDS, |sent| sent.brings("c0"));
    let sent = serving.journal.sent(place, kind::CDS);
    let again = sent.iter().any(|s| s.resources.contains(&identity(&bad)));
    assert!(!again, "what was rejected is not sent again");

    let mut healed = all_but(0, 2, 3);
    serving.apply(vec![put_cluster(&version(BAD, 4))]);
    healed.insert(name(BAD), "4s".to_owned());
    wait_for_clusters(&envoy, "the bad one to be mended", &healed);
    assert_eq!(http::get(listener, "/").expect("an answer").body, "served");
    assert_no_init_fetch_timeout(&envoy);
}

fn one_bad_cluster_from_the_start(mode: Mode, spoil: Spoil) {
    let backend = Backend::start("served");
    let mut contents = ten_clusters(&backend);
    let bad = bad_cluster(spoil);
    contents.push(bad.clone());
    contents.push(put_route("r", "c0"));
    let serving = Serving::start(contents);
    let envoy = Envoy::start(&bootstrap::ads(serving.port, mode, "n1"));
    assert_eq!(parked(&serving), identity(&bad));
    let mut nine = all_but(BAD, 1, 1);
    nine.remove(&name(BAD));
    wait_for_clusters(&envoy, "nine clusters", &nine);
    let listener = envoy.listener("http").expect("the listener");
    assert_eq!(http::get(listener, "/").expect("an answer").body, "served");
    assert_no_init_fetch_timeout(&envoy);
}

/// Envoy uses some of the other assignments and not others.
fn one_bad_assignment_among_ten(mode: Mode) {
    let (first, second) = (Backend::start("first"), Backend::start("second"));
    let serving = Serving::start(ten_clusters(&first));
    let envoy = Envoy::start(&bootstrap::ads(serving.port, mode, "n1"));
    let bad = put_endpoints_at(&name(BAD), "not-an-address", 1);
    let mut changes: Vec<_> = (0..10)
        .map(|number| put_endpoints(&name(number), second.address()))
        .collect();
    changes[BAD] = bad.clone();
    serving.apply(changes);
    assert_eq!(parked(&serving), identity(&bad));
    envoy.wait_for("nine new endpoints and one old", SOON, |envoy| {
        let hosts = envoy.get("/clusters").body;
        let uses = |number, backend: &Backend| {
            hosts.contains(&format!("{}::{}::", name(number), backend.address()))
        };
        let right = |number| uses(number, if number == BAD { &first } else { &second });
        (0..10).all(right).then_some(())
    });
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

#[test]
fn s12_an_invalid_cluster_from_the_start_by_delta() {
    one_bad_cluster_from_the_start(Mode::Delta, invalid_field);
}

#[test]
fn s12_an_invalid_cluster_from_the_start_by_state_of_the_world() {
    one_bad_cluster_from_the_start(Mode::Sotw, invalid_field);
}

#[test]
fn s12_a_bad_assignment_by_delta() {
    one_bad_assignment_among_ten(Mode::Delta);
}

#[test]
fn s12_a_bad_assignment_by_state_of_the_world() {
    one_bad_assignment_among_ten(Mode::Sotw);
}
