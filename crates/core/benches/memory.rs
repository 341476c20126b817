//! What things cost in memory and in work, counted, not timed.
//!
//! Bytes are those asked of the allocator. Prints a table and fails when a bar
//! is missed, so it can stand in a gate.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program for people, with input of its own"
)]

mod support;
#[path = "memory/variants.rs"]
mod variants;

use std::process::ExitCode;

use peak_alloc::PeakAlloc;
use support::{BODY, Peer, fill, filled, named, settle, since, touch, variant, wildcards};
use trunkline_core::database::{Database, Work};
use trunkline_core::kind::{CDS, EDS, LDS, RDS, VHDS};
use trunkline_core::message::Mode;
use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;
use trunkline_core::session::Config;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The table, row by row.
#[derive(Default)]
struct Report {
    missed: usize,
}

impl Report {
    fn head(title: &str) {
        println!("\n### {title}\n");
        println!("| what | figure | bar | |\n|---|--:|---|---|");
    }

    fn row(&mut self, what: &str, figure: &str, bar: &str, kept: bool) {
        let verdict = if kept { "kept" } else { "**missed**" };
        self.missed += usize::from(!kept);
        println!("| {what} | {figure} | {bar} | {verdict} |");
    }

    fn below(&mut self, what: &str, figure: f64, bar: f64) {
        let text = format!("{figure:.1}");
        self.row(what, &text, &format!("below {bar}"), figure < bar);
    }

    /// A figure without a bar.
    fn note(what: &str, figure: &str) {
        println!("| {what} | {figure} | | |");
    }
}

fn main() -> ExitCode {
    let mut report = Report::default();
    Report::head("Bytes of what was replaced, once for each type");
    let history = history(&mut report);
    Report::head("Bytes for each resource, its name included, its body and history not");
    for count in [1_000, 100_000, 115_000, 1_000_000] {
        resources(&mut report, count, history);
    }
    Report::head("Bytes for each virtual host of two domains, body and all");
    virtual_hosts(&mut report);
    Report::head("Bytes for each named subscription");
    subscriptions(&mut report, 100, 1_000, true);
    subscriptions(&mut report, 100, 900, true);
    subscriptions(&mut report, 1_000, 100, true);
    subscriptions(&mut report, 2, 1_000, true);
    subscriptions(&mut report, 100, 1_000, false);
    Report::head("Bytes of streams");
    wildcard_streams(&mut report);
    stream_in_parts();
    idle_stream();
    Report::head("Work of one change");
    named_work(&mut report);
    host_work(&mut report);
    wildcard_work(&mut report);
    variant_work(&mut report);
    Report::head("Variants for many clients in few categories");
    variants::run(&mut report);
    match report.missed {
        0 => ExitCode::SUCCESS,
        missed => {
            println!("\n{missed} bars missed");
            ExitCode::FAILURE
        }
    }
}

/// What `make` leaves allocated, and what it made.
fn cost<T>(make: impl FnOnce() -> T) -> (f64, T) {
    let before = ALLOCATOR.current_usage();
    let made = make();
    let after = ALLOCATOR.current_usage();
    (after as f64 - before as f64, made)
}

/// Bytes that the bodies of replaced resources take, once for each type.
fn history(report: &mut Report) -> f64 {
    const COUNT: usize = 2_000;
    let mut db = filled(CDS, COUNT);
    let (bytes, ()) = cost(|| fill(&mut db, CDS, COUNT, 1));
    let (more, ()) = cost(|| fill(&mut db, CDS, COUNT, 2));
    let what = "what is kept of replaced resources, in kB";
    report.below(what, bytes / 1e3, 600.0);
    report.below("the same, each replaced again", (bytes + more) / 1e3, 600.0);
    bytes
}

fn resources(report: &mut Report, count: usize, history: f64) {
    let each = |bytes: f64| bytes / count as f64 - BODY as f64;
    let (fresh, mut db) = cost(|| filled(CDS, count));
    report.below(&format!("{count} resources"), each(fresh), 300.0);
    let (more, ()) = cost(|| (1..=2).for_each(|edition| fill(&mut db, CDS, count, edition)));
    let replaced = fresh + more - history;
    let what = format!("{count} resources, each replaced twice");
    report.below(&what, each(replaced), 300.0);
    let (followed, _peers) = cost(|| {
        let mut peers = wildcards(&mut db, CDS, 1, 1);
        fill(&mut db, CDS, count, 3);
        settle(&mut db, &mut peers);
        peers
    });
    let what = format!("{count} resources, one view, each replaced while followed");
    report.below(&what, each(replaced + followed), 300.0);
}

/// A million in a gigabyte, and room for the rest of a server.
fn virtual_hosts(report: &mut Report) {
    const STREAMS: usize = 100;
    const ASKED: usize = 100;
    for count in [1_000, 1_000_000] {
        let (bytes, mut db) = cost(|| support::hosts(count));
        report.below(
            &format!("{count} virtual hosts"),
            bytes / count as f64,
            900.0,
        );
        let names: Vec<_> = (0..ASKED).map(|n| support::host_name(n * 7)).collect();
        let (streams, peers) = cost(|| named(&mut db, VHDS, STREAMS, &names));
        let what = format!("a stream that asks for {ASKED} of {count}");
        report.below(&what, streams / STREAMS as f64, 18_000.0);
        let (left, ()) = cost(|| peers.into_iter().for_each(|peer| peer.close(&mut db)));
        let kept = (streams + left) / bytes;
        let what = format!("what {STREAMS} such streams leave behind");
        let text = format!("{:.2} %", 100.0 * kept);
        report.row(&what, &text, "below 5 %", kept < 0.05);
    }
}

fn host_work(report: &mut Report) {
    let [small, large] = [1_000, 1_000_000].map(|count| {
        let mut db = support::hosts(count);
        let number = count / 2;
        let mut peers = named(&mut db, VHDS, 10, &[support::host_name(number)]);
        let before = db.work();
        support::put(&mut db, &TypeUrl::from(VHDS), [support::host(number, 7)]);
        settle(&mut db, &mut peers);
        let work = since(&db, before);
        Report::note(
            &format!("one of {count} virtual hosts, 10 ask for it"),
            &show(work),
        );
        work
    });
    let same = if small == large { "the same" } else { "more" };
    report.row(
        "one of 1000 times the virtual hosts",
        same,
        "the same",
        small == large,
    );
}

fn subscriptions(report: &mut Report, streams: usize, names: usize, same: bool) {
    let total = if same { names } else { names * streams };
    let mut db = filled(EDS, total);
    let all: Vec<_> = (0..total).map(support::name).collect();
    let mut open = |from: usize, names: &[_]| {
        let (bytes, peers) = cost(|| match same {
            true => named(&mut db, EDS, streams, names),
            false => (0..streams)
                .flat_map(|i| named(&mut db, EDS, 1, &names[i * from..][..from]))
                .collect(),
        });
        (bytes, peers)
    };
    let (with, peers) = open(names, &all);
    // The same streams with one name each: what they cost by themselves.
    drop(peers);
    let mut db = filled(EDS, total);
    let (without, _peers) = cost(|| named(&mut db, EDS, streams, &all[..1]));
    let shared = if same { "the same" } else { "its own" };
    let what = format!("{streams} streams, each with {shared} {names} names");
    let each = (with - without) / (streams * (names - 1)) as f64;
    report.below(&what, each, 100.0);
}

fn wildcard_streams(report: &mut Report) {
    const STREAMS: usize = 1_000;
    let [small, large] = [1_000, 100_000].map(|count| {
        let mut db = filled(CDS, count);
        // The view is there for the first; the others share it.
        let _first = wildcards(&mut db, CDS, 1, 1);
        let (bytes, _peers) = cost(|| wildcards(&mut db, CDS, STREAMS, 1));
        let what = format!("one of {STREAMS} wildcard streams over {count} resources");
        Report::note(&what, &format!("{:.0}", bytes / STREAMS as f64));
        bytes
    });
    let ratio = large / small;
    let kept = (0.9..1.1).contains(&ratio);
    let what = "the same streams over 100 times the resources";
    report.row(what, &format!("{ratio:.3} ×"), "within 10 %", kept);
}

/// A stream that takes everything in responses of the default size. What is
/// left unsaid between them is remembered name by name.
fn stream_in_parts() {
    for count in [1_000, 100_000] {
        let mut db = filled(CDS, count);
        let _first = wildcards(&mut db, CDS, 1, 1);
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let mut peer = Peer::with(&mut db, Config::new(Mode::Delta));
        peer.ask(&mut db, CDS, []);
        settle(&mut db, std::slice::from_mut(&mut peer));
        let most = ALLOCATOR.peak_usage() - before;
        let what = format!("a wildcard stream at most, while it takes {count} resources");
        Report::note(&what, &most.to_string());
        let left = ALLOCATOR.current_usage() - before;
        Report::note(
            "the same stream afterwards, and the step that the next one shares",
            &left.to_string(),
        );
    }
}

/// An aggregated stream as Envoy opens it, after it has accepted everything.
fn idle_stream() {
    const STREAMS: usize = 100;
    let mut db = Database::new();
    for url in [CDS, EDS, LDS, RDS] {
        fill(&mut db, url, 10, 0);
    }
    let open = |db: &mut Database| {
        let mut peer = Peer::open(db, Params::default());
        peer.ask(db, CDS, []);
        peer.ask(db, EDS, [support::name(0)]);
        peer.ask(db, LDS, []);
        peer.ask(db, RDS, [support::name(0)]);
        settle(db, std::slice::from_mut(&mut peer));
        peer
    };
    let _first = open(&mut db);
    let (bytes, _peers) = cost(|| {
        let mut peers = Vec::with_capacity(STREAMS);
        peers.extend((0..STREAMS).map(|_| open(&mut db)));
        peers
    });
    let what = "one idle delta ADS stream with CDS, EDS, LDS and RDS";
    Report::note(what, &format!("{:.0}", bytes / STREAMS as f64));
}

fn show(work: Work) -> String {
    format!(
        "{} names, {} views, {} subscribers, {} evaluations",
        work.entries, work.views, work.subscribers, work.evaluations
    )
}

/// What one change costs until everybody has accepted it.
fn work_of_change(db: &mut Database, url: &str, number: usize, peers: &mut [Peer]) -> Work {
    let before = db.work();
    touch(db, url, number, 7);
    settle(db, peers);
    since(db, before)
}

fn named_work(report: &mut Report) {
    for subscribers in [1, 100] {
        let [small, large] = [1_000, 1_000_000].map(|count| {
            let mut db = filled(EDS, count);
            let number = count / 2;
            let mut peers = named(&mut db, EDS, subscribers, &[support::name(number)]);
            let work = work_of_change(&mut db, EDS, number, &mut peers);
            let what = format!("one of {count} resources, {subscribers} named subscribers");
            Report::note(&what, &show(work));
            work
        });
        let what = format!("{subscribers} named subscribers, 1000 times the resources");
        let same = if small == large { "the same" } else { "more" };
        report.row(&what, same, "the same", small == large);
    }
}

fn wildcard_work(report: &mut Report) {
    const STREAMS: usize = 100;
    for views in [1, 10] {
        let [small, large] = [1_000, 100_000].map(|count| {
            let mut db = filled(CDS, count);
            if views > 1 {
                let split = (0..views).map(|group| variant(count, 0, group));
                support::put(&mut db, &TypeUrl::from(CDS), split);
            }
            let mut peers = wildcards(&mut db, CDS, STREAMS, views);
            let work = work_of_change(&mut db, CDS, count / 2, &mut peers);
            let what = format!("one of {count} resources, {STREAMS} wildcards in {views} views");
            Report::note(&what, &show(work));
            work
        });
        let what = format!("{STREAMS} wildcards in {views} views, 100 times the resources");
        let same = if small == large { "the same" } else { "more" };
        report.row(&what, same, "the same", small == large);
        let bound = (views + STREAMS) as u64;
        let told = large.views + large.subscribers;
        let what = format!("views and streams told, {STREAMS} wildcards in {views} views");
        report.row(&what, &told.to_string(), &bound.to_string(), told == bound);
    }
}

fn variant_work(report: &mut Report) {
    const VARIANTS: usize = 100;
    let url = TypeUrl::from(CDS);
    let mut db = Database::new();
    support::put(&mut db, &url, (0..VARIANTS).map(|g| variant(0, 0, g)));
    let type_id = db.type_id(&url);
    let clients: Vec<_> = (0..10_000)
        .map(|n| {
            let group = ["group".into(), (n % 10).to_string()];
            let zone = ["zone".into(), n.to_string()];
            let pairs = [group, zone].map(|[key, value]: [String; 2]| (key, value));
            db.intern_params(Params::new(pairs).expect("within the limits"))
        })
        .collect();
    let mut choose = |clients: &[_]| {
        let before = db.work();
        for client in clients {
            db.choose_name(type_id, &support::name(0), *client);
        }
        since(&db, before).evaluations
    };
    let first = choose(&clients[..10]);
    let what = format!("constraints evaluated for 10 categories, {VARIANTS} variants");
    Report::note(&what, &first.to_string());
    let rest = choose(&clients);
    let what = "constraints evaluated for 10000 more clients of these categories";
    report.row(what, &rest.to_string(), "0", rest == 0);
}
