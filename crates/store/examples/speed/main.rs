//! What it costs to keep contents: `cargo xtask store` runs this.
//!
//! In one run, in one directory: records that are appended to a file and synced
//! one by one, which is the floor; changes of one writer; changes of 64 writers;
//! the same of etcd, where it is installed; and a million virtual hosts, read by
//! a fresh process.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement ends where it fails"
)]

mod etcd;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::route::v3::VirtualHost;
use trunkline::{ResourceMessage, Server, Store as _};
use trunkline_store::EmbeddedStore;

use etcd::Etcd;

/// How long each figure is measured.
const TIME: Duration = Duration::from_secs(5);
/// The bytes of a record.
const RECORD: usize = 1024;
const WRITERS: usize = 64;
const HOSTS: usize = 1_000_000;

fn main() {
    let mut args = std::env::args().skip(1);
    match (args.next().as_deref(), args.next()) {
        (Some("load"), Some(dir)) => load(Path::new(&dir)),
        (Some("million"), Some(dir)) => million(&PathBuf::from(dir)),
        (Some("in"), Some(dir)) => measure(Path::new(&dir)),
        _ => measure(&std::env::temp_dir()),
    }
}

fn measure(parent: &Path) {
    let dir = tempfile::tempdir_in(parent).unwrap();
    println!("in {}", dir.path().display());
    let floor = serial_syncs(dir.path());
    let one = writers(&dir.path().join("one"), 1);
    let many = writers(&dir.path().join("many"), WRITERS);
    println!("one writer: {:.2} x the floor", one / floor);
    println!("{WRITERS} writers: {:.1} x one writer", many / one);
    beside_etcd(&dir.path().join("etcd"), one, many);
    million(&dir.path().join("million"));
}

/// Appends records to a file, each synced before the next.
fn serial_syncs(dir: &Path) -> f64 {
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).open(dir.join("floor"));
    let mut file = file.unwrap();
    report(
        "fdatasync, serial",
        &repeat(|_| {
            file.write_all(&[7; RECORD]).unwrap();
            file.sync_data().unwrap();
        }),
    )
}

/// Has writers change clusters of a server, and wait for each change.
fn writers(dir: &Path, count: usize) -> f64 {
    let server = open(dir);
    let times = concurrently(count, |writer| {
        repeat(|step| {
            let cluster = ResourceMessage::of(&Cluster {
                name: format!("w{writer}-{}", step % 100),
                alt_stat_name: format!("{step:0RECORD$}"),
                ..Cluster::default()
            });
            server.put("api", [cluster]).unwrap();
        })
    });
    report(&format!("{count} writers"), &times)
}

/// Has the same done by etcd, if there is one.
fn beside_etcd(dir: &Path, one: f64, many: f64) {
    let Some(etcd) = Etcd::start(dir) else {
        return println!("etcd is not installed, and not compared");
    };
    for (count, ours) in [(1, one), (WRITERS, many)] {
        let times = concurrently(count, |writer| {
            let mut connection = etcd.writer();
            repeat(|step| {
                // Four characters of base64 are three bytes.
                let key = format!("{:08}", writer * 100 + step % 100);
                let value = format!("{step:0length$}", length = RECORD * 4 / 3 / 4 * 4);
                connection.put(&key, &value).unwrap();
            })
        });
        let theirs = report(&format!("etcd, {count} writers"), &times);
        println!("{count} writers: {:.2} x etcd", ours / theirs);
    }
}

/// Runs so many writers at once, and returns the times of all their steps.
fn concurrently(count: usize, writer: impl Fn(usize) -> Vec<Duration> + Sync) -> Vec<Duration> {
    thread::scope(|scope| {
        let writer = &writer;
        let threads: Vec<_> = (0..count)
            .map(|number| scope.spawn(move || writer(number)))
            .collect();
        let times = threads.into_iter();
        times.flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn repeat(mut step: impl FnMut(usize)) -> Vec<Duration> {
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < TIME {
        let begin = Instant::now();
        step(times.len());
        times.push(begin.elapsed());
    }
    times
}

/// Prints the rate and the times, and returns the rate.
fn report(what: &str, times: &[Duration]) -> f64 {
    let mut times = times.to_vec();
    times.sort();
    let rate = times.len() as f64 / TIME.as_secs_f64();
    let at = |percent: usize| times[times.len() * percent / 100];
    println!(
        "{what}: {rate:.0}/s, p50 {:.1?}, p99 {:.1?}",
        at(50),
        at(99)
    );
    rate
}

fn open(dir: &Path) -> Server {
    let store = EmbeddedStore::open(dir, 1000).unwrap();
    let kept = store.load().unwrap();
    let server = Server::builder().store(Arc::new(store)).build();
    server.restore(kept).unwrap();
    server
}

/// Keeps a million virtual hosts, and has another process read them.
fn million(dir: &PathBuf) {
    let server = open(dir);
    let start = Instant::now();
    let hosts = (0..HOSTS).map(|n| {
        ResourceMessage::of(&VirtualHost {
            name: format!("routes/host-{n}"),
            domains: vec![
                format!("host-{n}.example.com"),
                format!("www.host-{n}.example.com"),
            ],
            ..VirtualHost::default()
        })
    });
    server.set("api", hosts).unwrap();
    println!("{HOSTS} virtual hosts kept in {:.1?}", start.elapsed());
    drop(server);
    let program = std::env::current_exe().unwrap();
    let status = Command::new(program).arg("load").arg(dir).status();
    assert!(status.unwrap().success());
}

/// Reads what is kept, and says how long it took and how much memory it takes.
fn load(dir: &Path) {
    let start = Instant::now();
    let server = open(dir);
    let took = start.elapsed();
    let memory = std::fs::read_to_string("/proc/self/status").unwrap();
    let memory = memory
        .lines()
        .filter(|it| it.starts_with("VmHWM") || it.starts_with("VmRSS"));
    let memory: Vec<String> = memory
        .map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    println!(
        "read and checked in {took:.1?} at revision {}, {}",
        server.revision(),
        memory.join(", ")
    );
}
