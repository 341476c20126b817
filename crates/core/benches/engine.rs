//! How long the pieces of the engine take.
//!
//! Times depend on the machine; what is meant to be read are ratios within a
//! group: how a time grows with what should not matter.
#![allow(
    missing_docs,
    clippy::expect_used,
    reason = "a program with input of its own"
)]

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use support::{Peer, fill, filled, named, resource, settle, touch, variant, wildcards};
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::client::{Client, FallbackPolicy, ServerConfig, ServerId, Watched};
use trunkline_core::database::{Database, SubscriberId};
use trunkline_core::kind::{CDS, EDS};
use trunkline_core::message::{DeltaResponse, Form, Mode, Node, WireResource};
use trunkline_core::name::Selector;
use trunkline_core::params::{Constraints, Params, ParamsId};
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::{BackoffConfig, SinkConfig, Verdict};

const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];

/// Visits all of many things, each far from the one before.
const STRIDE: usize = 7_919_777;

/// Applies one change after another and adds up what that takes, without
/// making the resources and without what `after` does.
fn time_changes(
    db: &mut Database,
    rounds: u64,
    mut number: impl FnMut(u64) -> usize,
    mut after: impl FnMut(&mut Database),
) -> Duration {
    static EDITION: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let url = TypeUrl::from(EDS);
    let mut taken = Duration::ZERO;
    for round in 0..rounds {
        let edition = EDITION.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let changes = vec![Change::Upsert(
            url.clone(),
            resource(number(round), edition),
        )];
        let start = Instant::now();
        db.apply(changes).expect("sound contents");
        taken += start.elapsed();
        after(db);
    }
    taken
}

/// Any resource changes among many, and nobody asks for it. The more there are,
/// the less of them is in a cache.
fn change_alone(c: &mut Criterion) {
    let mut group = c.benchmark_group("change of any, no subscribers, resources");
    for count in SIZES {
        let mut db = filled(EDS, count);
        group.bench_function(BenchmarkId::from_parameter(count), |b| {
            let number = |round: u64| (round as usize).wrapping_mul(STRIDE) % count;
            b.iter_custom(|rounds| time_changes(&mut db, rounds, number, |_| {}));
        });
    }
    group.finish();
}

/// One resource changes among many, and has subscribers by name. The same
/// thousand change in turn, far apart: nothing but the number of others differs.
fn change_named(c: &mut Criterion) {
    const ASKED: usize = 1_000;
    for subscribers in [1, 100] {
        let title = format!("change, {subscribers} named subscribers, resources");
        let mut group = c.benchmark_group(title);
        for count in SIZES {
            let mut db = filled(EDS, count);
            let spread = count / ASKED;
            let ids = subscribe(&mut db, subscribers, (0..ASKED).map(|n| n * spread));
            group.bench_function(BenchmarkId::from_parameter(count), |b| {
                let number = |round: u64| (round as usize).wrapping_mul(STRIDE) % ASKED * spread;
                b.iter_custom(|rounds| {
                    time_changes(&mut db, rounds, number, |db| {
                        db.take_woken_streams();
                        for id in &ids {
                            db.take_dirty(*id, usize::MAX);
                        }
                    })
                });
            });
        }
        group.finish();
    }
}

/// That many subscribers to all of these resources.
fn subscribe(
    db: &mut Database,
    count: usize,
    numbers: impl Iterator<Item = usize> + Clone,
) -> Vec<SubscriberId> {
    let type_id = db.type_id(&TypeUrl::from(EDS));
    let one = |_| {
        let stream = db.open_stream();
        let id = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
        for number in numbers.clone() {
            db.subscribe(id, &support::name(number), ParamsId::EMPTY);
        }
        id
    };
    (0..count).map(one).collect()
}

/// One resource changes and every wildcard stream takes and accepts it.
fn change_wildcard(c: &mut Criterion) {
    for (streams, views) in [(100, 1), (100, 10)] {
        let title = format!("change to {streams} wildcard streams in {views} views, resources");
        let mut group = c.benchmark_group(title);
        group.sample_size(20);
        for count in [1_000, 100_000] {
            let mut db = filled(CDS, count);
            if views > 1 {
                let split = (0..views).map(|group| variant(count, 0, group));
                support::put(&mut db, &TypeUrl::from(CDS), split);
            }
            let mut peers = wildcards(&mut db, CDS, streams, views);
            let mut edition = 1;
            group.bench_function(BenchmarkId::from_parameter(count), |b| {
                b.iter(|| {
                    edition += 1;
                    touch(&mut db, CDS, edition as usize * 619 % count, edition);
                    settle(&mut db, &mut peers);
                });
            });
        }
        group.finish();
    }
}

/// One stream takes one changed resource by name and accepts it.
fn round_named(c: &mut Criterion) {
    let mut group = c.benchmark_group("change, response and ACK of one stream, its names");
    for names in [1, 1_000, 10_000] {
        let mut db = filled(EDS, 10_000);
        let all: Vec<_> = (0..names).map(support::name).collect();
        let mut peers: Vec<Peer> = named(&mut db, EDS, 1, &all);
        let mut edition = 1;
        group.bench_function(BenchmarkId::from_parameter(names), |b| {
            b.iter(|| {
                edition += 1;
                touch(&mut db, EDS, edition as usize * 619 % names, edition);
                settle(&mut db, &mut peers);
            });
        });
    }
    group.finish();
}

/// What a client of a category that has been met sees.
fn choose(c: &mut Criterion) {
    let mut group = c.benchmark_group("choice, variants");
    for variants in [1, 10, 100] {
        let mut db = Database::new();
        let url = TypeUrl::from(CDS);
        support::put(&mut db, &url, (0..variants).map(|g| variant(0, 0, g)));
        let type_id = db.type_id(&url);
        let entry = db.find(type_id, &support::name(0)).expect("it exists");
        let clients: Vec<_> = (0..variants)
            .map(|g| db.intern_params(support::group(g)))
            .collect();
        let mut turn = 0;
        group.bench_function(BenchmarkId::from_parameter(variants), |b| {
            b.iter(|| {
                turn = (turn + 1) % variants;
                black_box(db.choose(type_id, entry, clients[turn]))
            });
        });
    }
    group.finish();
}

/// Whether two constraints can match one client.
fn overlap(c: &mut Criterion) {
    let mut group = c.benchmark_group("overlap, keys of each constraint");
    for keys in [1, 4, 16] {
        let all = |last: &str| {
            let values = (1..keys).map(|key| format!("key{key}=value"));
            let parts: Vec<_> = values.chain([format!("last={last}")]).collect();
            let parsed: Constraints = parts.join(" AND ").parse().expect("a constraint");
            parsed
        };
        let (one, other) = (all("a"), all("b"));
        group.bench_function(BenchmarkId::from_parameter(keys), |b| {
            b.iter(|| black_box(&one).overlap(black_box(&other)));
        });
    }
    group.finish();
}

/// Many resources come at once, into an empty database or one that has them.
fn apply(c: &mut Criterion) {
    const COUNT: usize = 100_000;
    let mut group = c.benchmark_group("100000 resources applied");
    group.sample_size(10);
    let changes = |edition| {
        let url = TypeUrl::from(CDS);
        let upsert = |n| Change::Upsert(url.clone(), resource(n, edition));
        (0..COUNT).map(upsert).collect::<Vec<_>>()
    };
    group.bench_function("new", |b| {
        let setup = || (Database::new(), changes(0));
        let run = |(mut db, changes): (Database, _)| {
            db.apply(changes).expect("sound contents");
            db
        };
        b.iter_batched(setup, run, BatchSize::PerIteration);
    });
    let mut db = filled(CDS, COUNT);
    let mut edition = 0;
    group.bench_function("changed", |b| {
        b.iter_custom(|rounds| {
            let mut taken = Duration::ZERO;
            for _ in 0..rounds {
                edition += 1;
                let changes = changes(edition);
                let start = Instant::now();
                db.apply(changes).expect("sound contents");
                taken += start.elapsed();
            }
            taken
        });
    });
    fill(&mut db, CDS, COUNT, 0);
    group.bench_function("the same again", |b| {
        let run = |changes| db.apply(changes).expect("sound contents");
        b.iter_batched(|| changes(0), run, BatchSize::PerIteration);
    });
    group.finish();
}

/// A client that holds many resources takes a change of one, by delta: from the
/// response to its acknowledgement, with a watch for each name.
fn client_change(c: &mut Criterion) {
    let mut group = c.benchmark_group("a client takes one change by delta, resources");
    for count in [1_000, 10_000, 100_000] {
        let (mut client, server) = holding(count);
        let mut edition = 0;
        group.bench_function(BenchmarkId::from_parameter(count), |b| {
            b.iter_custom(|rounds| {
                let mut taken = Duration::ZERO;
                for _ in 0..rounds {
                    edition += 1;
                    let number = (edition as usize).wrapping_mul(STRIDE) % 1_000 * (count / 1_000);
                    let response = delta([number].into_iter(), edition);
                    let start = Instant::now();
                    take(&mut client, server, response);
                    taken += start.elapsed();
                }
                taken
            });
        });
    }
    group.finish();
}

/// A client that subscribes to so many names, watches each, and holds all.
fn holding(count: usize) -> (Client, ServerId) {
    let (url, now) = (TypeUrl::from(EDS), Moment::START);
    let mut client = Client::new(1);
    let server = client.add_server(ServerConfig {
        sink: SinkConfig::new(Mode::Delta, Node::default()),
        backoff: BackoffConfig::default(),
        rate_limit: None,
    });
    let source = client.add_source(vec![server], FallbackPolicy::Grpc);
    for number in 0..count {
        let selector = Selector::Name(support::name(number));
        let subscribed = client.subscribe(source, &url, selector.clone(), now);
        subscribed.expect("a stream for all types");
        client.watch(Watched {
            type_url: url.clone(),
            selector,
            params: Params::default(),
            source: Some(source),
        });
    }
    client.poll_action(now).expect("it connects");
    client.handle_connected(server, now);
    client.poll_request(server, now).expect("it subscribes");
    take(&mut client, server, delta(0..count, 0));
    (client, server)
}

/// A response with some resources in an edition.
fn delta(numbers: impl Iterator<Item = usize>, edition: u64) -> DeltaResponse {
    let one = |number| WireResource {
        resource: resource(number, edition),
        form: Form::Full,
    };
    DeltaResponse {
        type_url: EDS.into(),
        nonce: edition.to_string().as_str().into(),
        resources: numbers.map(one).collect::<Vec<_>>().into(),
        removed: Vec::new(),
        removed_variants: Vec::new(),
        errors: Vec::new(),
    }
}

/// A client takes a response, accepts it, tells its watches and acknowledges.
fn take(client: &mut Client, server: ServerId, response: DeltaResponse) {
    let now = Moment::START;
    let delivery = client.handle_response(server, response, now);
    let delivery = delivery.expect("a response that was asked for");
    let (url, nonce) = (&delivery.type_url, &delivery.nonce);
    let judged = client.handle_verdict(server, url, nonce, Verdict::accept(), now);
    judged.expect("a response that waits for it");
    while let Some(watch) = client.poll_watch() {
        black_box(client.state(watch));
    }
    black_box(client.poll_request(server, now)).expect("an acknowledgement");
}

criterion_group!(
    benches,
    change_alone,
    change_named,
    change_wildcard,
    round_named,
    choose,
    overlap,
    apply,
    client_change
);
criterion_main!(benches);
