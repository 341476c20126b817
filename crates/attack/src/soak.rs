//! Attacks at random against one server, several at once at times.

use std::time::{Duration, Instant};

use crate::attacks::Attack;
use crate::error::Result;
use crate::field::Scale;
use crate::ledger::Faults;
use crate::options::Options;
use crate::outcome::{broken, judge_victim, may_stay};
use crate::scene::Scene;
use crate::server::{CEILING, Setup};

/// How long nobody attacks at the beginning, and how long memory may take to
/// come back at the end.
const QUIET: Duration = Duration::from_secs(5);
const SETTLE: Duration = Duration::from_secs(30);

/// Bytes that a server keeps on purpose, and has not at its beginning: the last
/// events and load reports, 16 MiB each, and 8 MiB of bodies that were replaced.
const KEPT: u64 = 40 << 20;

/// Connections do not age: whatever ends the victim's stream is a fault.
const AGELESS: Setup = Setup::Flags(&["--max-connection-age", "0s"]);

/// The most attacks at once.
const AT_ONCE: usize = 3;

/// Attacks for so many minutes. Returns what does not hold at the end.
pub(crate) async fn run(
    options: &Options,
    attacks: &[&'static Attack],
    minutes: u64,
) -> Result<Vec<String>> {
    let plain: Vec<_> = attacks.iter().filter(|a| a.setup == Setup::Plain).collect();
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut scene = Scene::start(options, AGELESS).await?;
    let begun = Instant::now();
    tokio::time::sleep(QUIET).await;
    let before = scene.server.process.memory();
    crate::say(format!("begins with {} MiB", before >> 20));

    let mut most = 0;
    while begun.elapsed() < Duration::from_secs(60 * minutes) && scene.server.is_alive() {
        let count = random.usize(1..=AT_ONCE).min(plain.len());
        let chosen = random.choose_multiple(plain.iter(), count);
        let time = Duration::from_secs(random.u64(2..=options.seconds.max(3)));
        let all = chosen
            .iter()
            .map(|attack| scene.attack(attack, Scale::Full(time)));
        let earlier = scene.faults();
        let (phase, _) = scene.measure(at_once(all.collect())).await;
        most = phase.peak.max(most);
        let names: Vec<&str> = chosen.iter().map(|attack| attack.name).collect();
        let (cpu, waited) = (phase.cpu, phase.waited);
        crate::say(format!(
            "{:>5} s  {:>5} MiB, peak {:>5}, p99 {:>6} ms, \
             {cpu:>4.1} s of CPU, {waited:>4.1} s in line for it  {}  {}",
            begun.elapsed().as_secs(),
            scene.server.process.memory() >> 20,
            phase.peak >> 20,
            phase.in_server.unwrap_or_default().p99,
            names.join(" + "),
            words(&scene, earlier),
        ));
        tokio::time::sleep(Duration::from_secs(random.u64(0..=3))).await;
    }
    tokio::time::sleep(SETTLE).await;
    let after = scene.server.process.memory();
    crate::say(format!("ends with {} MiB", after >> 20));
    let mut failed = Vec::new();
    if after > may_stay(before) + KEPT {
        let (before, after) = (before >> 20, after >> 20);
        failed.push(format!("{after} MiB stay, of {before} at the beginning"));
    }
    if most > CEILING {
        failed.push(format!("peak {} MiB", most >> 20));
    }
    judge_victim(&mut scene, &mut failed).await;
    Ok(failed)
}

/// What went wrong since an earlier look, and why.
fn words(scene: &Scene, earlier: Faults) -> String {
    let mut faults = broken(scene.faults().since(earlier));
    faults.extend(scene.take_reason());
    faults.join("; ")
}

/// Runs futures at once, until all are done.
async fn at_once<T>(futures: Vec<impl Future<Output = T>>) {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).map(Some).collect();
    std::future::poll_fn(|cx| {
        for slot in &mut futures {
            if let Some(future) = slot
                && future.as_mut().poll(cx).is_ready()
            {
                *slot = None;
            }
        }
        match futures.iter().all(Option::is_none) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}
