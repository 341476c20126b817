//! Concurrent changes of a server while its disk fails: every history could have
//! happened one change after the other, a change that was refused never happened,
//! and what is there after the end is what the last change left.

mod checker;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::{ResourceMessage, Server, kind};

use super::faults::open_failing;
use super::*;
use checker::{Model, Operation, is_linearizable};

const NAMES: [&str; 2] = ["a", "b"];
const WRITERS: u64 = 4;
/// Changes of each writer.
const CHANGES: u64 = 6;
const HISTORIES: u64 = 20;

/// Two clusters, each with the number of the change that wrote it, and the
/// revision.
struct Clusters;

type Texts = [Option<u64>; 2];

/// An operation with its result.
#[derive(Clone, Debug)]
enum Done {
    /// Both clusters were written in one transaction, which made this revision.
    Wrote(u64, u64),
    /// The first cluster was written.
    WroteOne(u64, u64),
    /// The second cluster was removed; `None` if it was not there.
    Removed(Option<u64>),
    Read(Texts),
}

impl Model for Clusters {
    type State = (u64, Texts);
    type Done = Done;

    fn step((revision, texts): &Self::State, done: &Done) -> Option<Self::State> {
        let next = |made: u64, texts| (made == revision + 1).then_some((made, texts));
        match done {
            Done::Wrote(text, made) => next(*made, [Some(*text); 2]),
            Done::WroteOne(text, made) => next(*made, [Some(*text), texts[1]]),
            Done::Removed(Some(made)) => {
                let is_there = texts[1].is_some();
                next(*made, [texts[0], None]).filter(|_| is_there)
            }
            Done::Removed(None) => texts[1].is_none().then_some((*revision, *texts)),
            Done::Read(seen) => (seen == texts).then_some((*revision, *texts)),
        }
    }
}

fn cluster(name: &str, text: u64) -> ResourceMessage {
    ResourceMessage::of(&Cluster {
        name: name.to_owned(),
        alt_stat_name: text.to_string(),
        ..Cluster::default()
    })
}

fn read(server: &Server) -> Texts {
    server.read(|db| {
        let id = db.find_type(&kind::CDS.into());
        NAMES.map(|name| {
            let variants = db.variants(id?, &name.into());
            let body = variants.first()?.body.clone()?;
            let cluster = <Cluster as prost::Message>::decode(body).unwrap();
            Some(cluster.alt_stat_name.parse().unwrap())
        })
    })
}

/// Makes a change; `None` if it is refused.
fn change(server: &Server, text: u64, random: &mut fastrand::Rng) -> Option<Done> {
    let put = |all: Vec<ResourceMessage>| {
        let made = server.put("api", all).ok()?;
        Some(made.applied.revision.unwrap())
    };
    match random.u8(..4) {
        0 => Some(Done::Read(read(server))),
        1 => {
            let made = put(vec![cluster("a", text)])?;
            Some(Done::WroteOne(text, made))
        }
        2 => {
            let removed = server
                .remove("api", [(kind::CDS.into(), "b".into())])
                .ok()?;
            Some(Done::Removed(removed.applied.revision))
        }
        _ => {
            let made = put(NAMES.map(|name| cluster(name, text)).into())?;
            Some(Done::Wrote(text, made))
        }
    }
}

fn open(dir: &Path, left: &Arc<AtomicU64>) -> Server {
    let store = open_failing(dir, left);
    let kept = store.load().unwrap();
    let server = Server::builder().store(Arc::new(store)).build();
    server.restore(kept).unwrap();
    server
}

/// Lets writers change a server whose disk fails now and then. Returns the
/// history, and how many changes were refused.
fn run(seed: u64, dir: &Path) -> (Vec<Operation<Done>>, usize) {
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let server = open(dir, &left);
    let (clock, refused) = (AtomicU64::new(1), AtomicU64::new(0));
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let (history, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let note = |operation| history.lock().unwrap().push(operation);
    thread::scope(|scope| {
        let writer = |number: u64| {
            let mut random = fastrand::Rng::with_seed(seed * 100 + number);
            for nth in 0..CHANGES {
                let called = tick();
                match change(&server, number * 1000 + nth, &mut random) {
                    Some(done) => note(Operation {
                        done,
                        called,
                        returned: Some(tick()),
                    }),
                    // It must not be seen by anybody.
                    None => _ = refused.fetch_add(1, Ordering::Relaxed),
                }
            }
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| scope.spawn(move || writer(number)))
            .collect();
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(seed);
            while !is_over.load(Ordering::Relaxed) {
                left.store(random.u64(..20), Ordering::SeqCst);
                thread::yield_now();
                left.store(u64::MAX, Ordering::SeqCst);
                thread::yield_now();
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });

    // A change that the disk takes: those that were refused are gone for good.
    left.store(u64::MAX, Ordering::SeqCst);
    let called = tick();
    let last = server.put("api", [cluster("a", 9)]).unwrap();
    note(Operation {
        done: Done::WroteOne(9, last.applied.revision.unwrap()),
        called,
        returned: Some(tick()),
    });
    drop(server);
    let server = open(dir, &left);
    let called = tick();
    note(Operation {
        done: Done::Read(read(&server)),
        called,
        returned: Some(tick()),
    });
    let history = history.into_inner().unwrap();
    (history, refused.into_inner() as usize)
}

#[test]
fn concurrent_changes_are_linearizable_while_the_disk_fails() {
    let (mut refused, mut made) = (0, 0);
    for seed in 0..HISTORIES {
        let dir = tempfile::tempdir().unwrap();
        let (history, some) = run(seed, dir.path());
        assert!(
            is_linearizable::<Clusters>(&history),
            "seed {seed}: {history:#?}"
        );
        let store = EmbeddedStore::open(dir.path(), 100).unwrap();
        store.check_history().unwrap();
        refused += some;
        made += history.len();
    }
    // Both were tried.
    assert!(refused > 5 && made > 100, "{refused} refused, {made} made");
}
