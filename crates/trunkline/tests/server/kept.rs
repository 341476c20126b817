//! A server with a store: what it keeps, what it takes back, and histories of
//! concurrent writers.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use trunkline::checked::{ContentSet, RowChange};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline::envoy::config::route::v3::VirtualHost;
use trunkline::wire::accept;
use trunkline::{
    Change, Changed, Hooks, Kept, Repeatable, ResourceMessage, Server, Store, StoreError,
    StoredTransaction, TransactionInfo, kind,
};

use crate::support::{Delta, build};

/// A store that notes what it is given, and fails when it is told to.
#[derive(Default)]
struct Noting {
    transactions: Mutex<Vec<StoredTransaction>>,
    commits: AtomicUsize,
    fails: AtomicBool,
    /// Where each commit waits to be told whether it succeeds.
    gate: Mutex<Option<Receiver<bool>>>,
}

impl Noting {
    /// Waits until so many commits were begun, but not for ever.
    fn wait_for_commits(&self, count: usize) {
        for _ in 0..10_000 {
            if self.commits.load(Ordering::SeqCst) >= count {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("no commit {count}");
    }
}

impl Store for Noting {
    fn load(&self) -> Result<Kept, StoreError> {
        Ok(Kept::default())
    }

    fn commit(&self, transactions: &[StoredTransaction]) -> Result<(), StoreError> {
        // Others settle meanwhile, as while a disk writes.
        thread::yield_now();
        self.commits.fetch_add(1, Ordering::SeqCst);
        let gate = self.gate.lock().unwrap();
        let is_let_through = gate.as_ref().is_none_or(|gate| gate.recv().unwrap());
        if self.fails.load(Ordering::SeqCst) || !is_let_through {
            return Err(StoreError::Unsupported("no space left"));
        }
        let mut kept = self.transactions.lock().unwrap();
        kept.extend_from_slice(transactions);
        Ok(())
    }

    fn transactions(&self, _: Option<u64>, _: usize) -> Result<Vec<TransactionInfo>, StoreError> {
        Ok(Vec::new())
    }

    fn changes(&self, _: u64) -> Result<Option<Vec<RowChange>>, StoreError> {
        Ok(None)
    }

    fn find_key(&self, _: &str) -> Result<Option<Repeatable>, StoreError> {
        Ok(None)
    }

    fn back_up(&self) -> Result<File, StoreError> {
        Err(StoreError::Unsupported("no"))
    }
}

fn cluster(name: &str, text: &str) -> ResourceMessage {
    ResourceMessage::of(&Cluster {
        name: name.to_owned(),
        alt_stat_name: text.to_owned(),
        ..Cluster::default()
    })
}

fn names(server: &Server) -> Vec<String> {
    let all = server.all(&kind::CDS.into());
    let mut names: Vec<String> = all.iter().map(|it| it.name.to_string()).collect();
    names.sort();
    names
}

#[test]
fn a_change_that_is_not_kept_is_not_made() {
    let store = Arc::new(Noting::default());
    let server = Server::builder().store(store.clone()).build();
    server.put("api", [cluster("a", "one")]).unwrap();
    store.fails.store(true, Ordering::SeqCst);
    for refused in [
        server.put("api", [cluster("a", "two"), cluster("b", "")]),
        server.remove("api", [(kind::CDS.into(), "a".into())]),
        server.set("api", []),
    ] {
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("cannot be kept: no space left"),
            "{refused}"
        );
    }
    assert_eq!(names(&server), ["a"]);
    assert_eq!(server.revision(), 1);

    // With room again, changes are made on what is there.
    store.fails.store(false, Ordering::SeqCst);
    let made = server.put("api", [cluster("a", "two")]).unwrap();
    assert_eq!(
        (made.applied.counts.changed, made.applied.revision),
        (1, Some(2))
    );
    let kept = store.transactions.lock().unwrap();
    let before = kept[1].changes[0].before.as_ref().unwrap();
    assert_eq!(before, kept[0].changes[0].after.as_ref().unwrap());
}

/// The one who finds that nothing has to change is told so when that is kept.
#[test]
fn what_waits_for_the_disk_is_acknowledged_to_nobody() {
    for succeeds in [true, false] {
        let (gate, waiting) = mpsc::channel();
        let store = Arc::new(Noting {
            gate: Mutex::new(Some(waiting)),
            ..Noting::default()
        });
        let server = Server::builder().store(store.clone()).build();
        let (answers, answered) = mpsc::channel();
        thread::scope(|scope| {
            let put = || {
                let (server, answers) = (server.clone(), answers.clone());
                scope.spawn(move || {
                    let made = server.put("api", [cluster("a", "one")]);
                    answers
                        .send(made.map(|made| made.applied.revision))
                        .unwrap();
                });
            };
            put();
            while store.commits.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            put();
            let early = answered.recv_timeout(Duration::from_millis(50));
            assert!(early.is_err(), "{early:?} before it is kept");
            gate.send(succeeds).unwrap();
            // A second commit there is only if the first one failed.
            let _ = gate.send(true);
        });
        let mut answers: Vec<_> = answered.try_iter().collect();
        answers.sort_by_key(|answer| answer.as_ref().ok().copied().flatten());
        match succeeds {
            true => assert!(
                matches!(answers[..], [Ok(None), Ok(Some(1))]),
                "{answers:?}"
            ),
            // The second one may have come after the first was taken back.
            false => assert!(answers.iter().any(Result::is_err), "{answers:?}"),
        }
        let made = answers.iter().any(|it| matches!(it, Ok(Some(_))));
        let told = answers.iter().any(Result::is_ok);
        assert_eq!(names(&server).is_empty(), !made);
        assert_eq!(told, made, "{answers:?}");
    }
}

/// Those whose change is on the disk need not wait for the next write to it.
#[test]
fn who_is_kept_is_answered_while_the_next_are_written() {
    const WAITING: usize = 16;
    let (gate, waiting) = mpsc::channel();
    let store = Arc::new(Noting {
        gate: Mutex::new(Some(waiting)),
        ..Noting::default()
    });
    let server = Server::builder().store(store.clone()).build();
    let (answers, answered) = mpsc::channel();
    thread::scope(|scope| {
        let put = |name: String| {
            let (server, answers) = (server.clone(), answers.clone());
            scope.spawn(move || {
                server.put("api", [cluster(&name, "")]).unwrap();
                answers.send(name).unwrap();
            });
        };
        put("first".to_owned());
        store.wait_for_commits(1);
        (0..WAITING).for_each(|number| put(format!("waiting-{number}")));
        let early = answered.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "{early:?} before its change was kept");

        gate.send(true).unwrap();
        assert_eq!(answered.recv().unwrap(), "first");
        store.wait_for_commits(2);
        put("last".to_owned());
        let early = answered.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "{early:?} before its change was kept");

        gate.send(true).unwrap();
        store.wait_for_commits(3);
        // Those that came too late for the second write wait with the last.
        let kept = store.transactions.lock().unwrap().len();
        for _ in 1..kept {
            let name = answered.recv_timeout(Duration::from_secs(10));
            assert!(name.is_ok(), "a change that is kept waits for the next");
        }
        gate.send(true).unwrap();
        for _ in kept..WAITING + 2 {
            answered.recv().unwrap();
        }
    });
}

/// Is slow to hear of the first cluster, so that making seems to take longer
/// than the commits of the test. Hears of `b` when the store was asked for a
/// third commit.
struct SlowHook(Arc<Noting>);

impl Hooks for SlowHook {
    fn changed(&self, _: u64, _: &str, changed: &[Changed]) {
        match changed[0].name.as_str() {
            "first" => thread::sleep(Duration::from_millis(300)),
            "b" => self.0.wait_for_commits(3),
            _ => {}
        }
    }
}

fn host(name: &str, domain: &str) -> VirtualHost {
    VirtualHost {
        name: name.to_owned(),
        domains: vec![domain.to_owned()],
        ..VirtualHost::default()
    }
}

/// A batch is with the store while the one before is made, in which the database
/// refuses a change: both are taken back from there on, in the store too.
#[test]
fn a_batch_that_is_kept_after_a_refused_change_is_taken_back_with_it() {
    let (gate, waiting) = mpsc::channel();
    let store = Arc::new(Noting {
        gate: Mutex::new(Some(waiting)),
        ..Noting::default()
    });
    let hook = SlowHook(store.clone());
    let server = Server::builder().store(store.clone()).hooks(hook).build();
    // Beside the checked contents, which therefore do not see the contradiction.
    let body = prost::Message::encode_to_vec(&host("r/beside", "a.com"));
    let beside = accept(&kind::VHDS.into(), body.into()).unwrap();
    let beside = Change::Upsert(kind::VHDS.into(), Arc::new(beside));
    server.apply(vec![beside]).unwrap();

    let (answers, answered) = mpsc::channel();
    thread::scope(|scope| {
        let put = |message: ResourceMessage| {
            let count = |set: &ContentSet| -> usize {
                let counts = set.count_by_origin();
                counts.values().flat_map(|types| types.values()).sum()
            };
            let before = server.read_set(count);
            let (server, answers) = (server.clone(), answers.clone());
            let number = before;
            scope.spawn({
                let server = server.clone();
                move || {
                    let made = server.put("api", [message]);
                    let revision = made.map(|made| made.applied.revision.unwrap());
                    answers.send((number, revision.ok())).unwrap();
                }
            });
            while server.read_set(count) == before {
                thread::yield_now();
            }
        };
        put(cluster("first", ""));
        store.wait_for_commits(1);
        put(cluster("a", ""));
        put(cluster("b", ""));
        put(ResourceMessage::of(&host("r/bad", "a.com")));
        gate.send(true).unwrap();
        store.wait_for_commits(2);
        // As many as are left to make when the turn is to be given away.
        put(cluster("later", ""));
        put(cluster("last", ""));
        // The second batch, the third, and the inverse of what is refused.
        (0..3).for_each(|_| gate.send(true).unwrap());
    });

    let mut answers: Vec<_> = answered.try_iter().collect();
    answers.sort();
    let made = [(0, Some(2)), (1, Some(3)), (2, Some(4))];
    assert_eq!(
        answers,
        [&made[..], &[(3, None), (4, None), (5, None)]].concat()
    );
    assert_eq!(names(&server), ["a", "b", "first"]);

    let kept: Vec<(u64, bool)> = {
        let kept = store.transactions.lock().unwrap();
        let is_removal = |it: &StoredTransaction| it.changes[0].after.is_none();
        kept.iter()
            .map(|it| (it.info.revision, is_removal(it)))
            .collect()
    };
    let written = (2..=7).map(|revision| (revision, false));
    let inverse = [(8, true), (9, true), (10, true)];
    assert_eq!(kept, written.chain(inverse).collect::<Vec<_>>());
    assert_eq!(server.revision(), 10);

    gate.send(true).unwrap();
    let made = server.put("api", [cluster("later", "")]).unwrap();
    assert_eq!(made.applied.revision, Some(11));
}

/// Random writes of several threads, of which some fail: the store has exactly
/// those that were acknowledged, each on what the one before left. So there is
/// one order of all that every writer agrees with.
#[test]
fn concurrent_changes_have_one_order() {
    let store = Arc::new(Noting::default());
    let server = Server::builder().store(store.clone()).build();
    let acknowledged: Mutex<Vec<(u64, String)>> = Mutex::default();
    thread::scope(|scope| {
        for writer in 0..8 {
            let (server, store, acknowledged) = (&server, &store, &acknowledged);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(writer);
                for step in 0..60 {
                    if random.u8(..20) == 0 {
                        store.fails.fetch_xor(true, Ordering::SeqCst);
                    }
                    // Few names, so that writers meet.
                    let name = format!("c{}", random.u8(..3));
                    let text = format!("w{writer}-{step}");
                    let made = match random.u8(..6) {
                        0 => server.remove("api", [(kind::CDS.into(), name.as_str().into())]),
                        _ => server.put("api", [cluster(&name, &text), cluster("all", &text)]),
                    };
                    if let Ok(made) = made
                        && let Some(revision) = made.applied.revision
                    {
                        acknowledged.lock().unwrap().push((revision, text));
                    }
                }
            });
        }
    });
    store.fails.store(false, Ordering::SeqCst);
    server.put("api", [cluster("last", "")]).unwrap();

    let mut acknowledged = acknowledged.into_inner().unwrap();
    acknowledged.sort();
    let kept = store.transactions.lock().unwrap();
    let revisions: Vec<u64> = kept.iter().map(|it| it.info.revision).collect();
    assert!(revisions.is_sorted_by(|a, b| a + 1 == *b), "{revisions:?}");
    let told: Vec<u64> = acknowledged.iter().map(|(revision, _)| *revision).collect();
    assert_eq!(
        told,
        revisions[..revisions.len() - 1],
        "each is acknowledged once"
    );

    // Each transaction begins where the one before ended.
    let mut rows = std::collections::BTreeMap::new();
    for transaction in kept.iter() {
        for change in &transaction.changes {
            assert_eq!(rows.get(&change.key), change.before.as_ref());
            match &change.after {
                Some(row) => rows.insert(change.key.clone(), row.clone()),
                None => rows.remove(&change.key),
            };
        }
    }
    // The database ends where the store does, and so do the checked contents.
    let stored: Vec<String> = rows.keys().map(|key| key.name.to_string()).collect();
    assert_eq!(names(&server), stored);
    for (key, row) in &rows {
        let served = server.all(&kind::CDS.into());
        let served = served.iter().find(|it| it.name == key.name).unwrap();
        assert_eq!(served.version, row.resource.version);
    }
    let counts = server.read_set(|set| set.count_by_origin());
    let counted: usize = counts.values().flat_map(|of| of.values()).sum();
    assert_eq!(counted, rows.len());
}

/// An Envoy does not say on a new stream which members of a collection it has.
/// One that was removed before the server was started again is told.
#[tokio::test]
async fn s75_a_name_that_was_removed_before_a_restart_is_known() {
    let store = Arc::new(Noting::default());
    let server = Server::builder().store(store.clone()).build();
    let name =
        |last: &str| format!("xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/c/{last}");
    let (stays, gone) = (name("stays"), name("gone"));
    let endpoints = |name: &str| {
        ResourceMessage::of(&ClusterLoadAssignment {
            cluster_name: name.to_owned(),
            ..ClusterLoadAssignment::default()
        })
    };
    let both = [endpoints(&stays), endpoints(&gone)];
    server.put("api", both).unwrap();
    let removed = [(kind::EDS.into(), gone.as_str().into())];
    server.remove("api", removed).unwrap();

    let changes = |nth: usize| store.transactions.lock().unwrap()[nth].changes.clone();
    let left = changes(0)
        .into_iter()
        .filter(|change| change.key.name.as_str() == stays);
    let kept = Kept {
        revision: 2,
        rows: left
            .map(|change| (change.key, change.after.unwrap()))
            .collect(),
        recent: vec![changes(0), changes(1)],
        ..Kept::default()
    };
    let fixture = build(Server::builder()).await;
    fixture.server.restore(kept).unwrap();
    assert_eq!(fixture.server.revision(), 2);
    assert_eq!(fixture.server.all(&kind::EDS.into()).len(), 1);

    let mut peer = Delta::open(&fixture).await;
    peer.ask(&[&name("*")]).await;
    let answer = peer.next().await;
    assert_eq!(answer.resources[0].name, stays);
    assert_eq!(answer.removed_resources, [gone]);
}
