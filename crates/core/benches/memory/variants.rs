//! Variants at scale (TP2): many clients in few categories.

use std::sync::Arc;

use trunkline_core::database::{Database, MemoryCounts};
use trunkline_core::kind::{CDS, EDS};
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};

use super::support::{Peer, group, name, put, resource, settle, since};
use super::{Report, cost};

const RESOURCES: usize = 1_000;
const VARIANTS: usize = 8;
const CLIENTS: usize = 5_000;
const CATEGORIES: usize = 50;
/// Names that each client asks for.
const NAMES: usize = 10;

/// The variant of a resource that serves each so many-th category.
fn variant(number: usize, edition: u64, nth: usize, of: usize) -> Arc<Resource> {
    let served = (0..CATEGORIES).filter(|category| category % of == nth);
    let served: Vec<String> = served.map(|category| format!("group={category}")).collect();
    let constraints: Constraints = served.join(" OR ").parse().expect("constraints");
    let resource = resource(number, edition);
    Arc::new(Resource {
        constraints: Some(constraints),
        ..Resource::clone(&resource)
    })
}

fn contents(url: &str, resources: usize, variants: usize) -> Database {
    let mut db = Database::new();
    let all = (0..resources).flat_map(|n| (0..variants).map(move |v| variant(n, 0, v, variants)));
    put(&mut db, &TypeUrl::from(url), all);
    db
}

/// Clients that ask for names, each for the next ones.
fn clients(db: &mut Database) -> Vec<Peer> {
    let mut one = |nth: usize| {
        let names: Vec<_> = (0..NAMES).map(|n| name((nth + n) % RESOURCES)).collect();
        let mut peer = Peer::open(db, group(nth % CATEGORIES));
        peer.ask(db, EDS, names);
        peer
    };
    let mut peers: Vec<Peer> = (0..CLIENTS).map(&mut one).collect();
    settle(db, &mut peers);
    peers
}

pub(super) fn run(report: &mut Report) {
    let each = [1, VARIANTS].map(|variants| {
        let mut db = contents(EDS, RESOURCES, variants);
        let before = db.work();
        let (bytes, mut peers) = cost(|| clients(&mut db));
        let evaluations = since(&db, before).evaluations;
        if variants == VARIANTS {
            evaluated(report, evaluations);
            changed(report, &mut db, &mut peers);
        }
        bytes / CLIENTS as f64
    });
    let what = format!("bytes of a client with {NAMES} names, of {VARIANTS} variants each");
    let bar = format!("{:.0}, as of one variant, + 1 %", each[0]);
    let figure = format!("{:.0}", each[1]);
    report.row(&what, &figure, &bar, each[1] <= 1.01 * each[0]);
    views(report);
}

/// Each category that asks for a resource looks at its variants once.
fn evaluated(report: &mut Report, evaluations: u64) {
    let most = (CATEGORIES * RESOURCES * VARIANTS) as u64;
    let what = format!(
        "constraints evaluated: {RESOURCES} resources x {VARIANTS} variants, \
         {CLIENTS} clients in {CATEGORIES} categories"
    );
    let bar = format!("at most {most}: once for each category and variant");
    let kept = evaluations > 0 && evaluations <= most;
    report.row(&what, &evaluations.to_string(), &bar, kept);
}

/// A change to one variant.
fn changed(report: &mut Report, db: &mut Database, peers: &mut [Peer]) {
    let before = db.work();
    put(db, &TypeUrl::from(EDS), [variant(500, 1, 3, VARIANTS)]);
    let mut told = 0;
    for peer in &mut *peers {
        if peer.take(db) {
            peer.accept(db);
            told += 1;
        }
    }
    let asks = |nth: &usize| (0..NAMES).any(|n| (nth + n) % RESOURCES == 500);
    let serves = |nth: &usize| (nth % CATEGORIES) % VARIANTS == 3;
    let expected = (0..CLIENTS).filter(asks).filter(serves).count();
    let what = format!("clients told of a change to one of {VARIANTS} variants, of {CLIENTS}");
    report.row(
        &what,
        &told.to_string(),
        &expected.to_string(),
        told == expected,
    );
    let work = since(db, before);
    let asking = (0..CLIENTS).filter(asks).count() as u64;
    let what = "subscribers looked at for it";
    let bar = format!("at most {asking}, who ask for the name");
    let kept = work.subscribers <= asking;
    report.row(what, &work.subscribers.to_string(), &bar, kept);
}

/// Wildcards over many clusters.
fn views(report: &mut Report) {
    const CLUSTERS: usize = 10_000;
    let mut db = contents(CDS, CLUSTERS, 2);
    let mut peers: Vec<Peer> = (0..CLIENTS)
        .map(|nth| {
            let mut peer = Peer::open(&mut db, group(nth % CATEGORIES));
            peer.ask(&mut db, CDS, []);
            peer
        })
        .collect();
    settle(&mut db, &mut peers);
    let id = db.find_type(&CDS.into()).expect("the type");
    let MemoryCounts { views, .. } = db.memory_counts(id);
    let what =
        format!("views of {CLIENTS} wildcards in {CATEGORIES} categories over {CLUSTERS} clusters");
    let kept = views == CATEGORIES;
    report.row(&what, &views.to_string(), &CATEGORIES.to_string(), kept);
}
