//! The outcome of an attack, and the verdicts on it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::attacks::Attack;
use crate::error::Result;
use crate::field::{Field, Scale};
use crate::ledger::Faults;
use crate::options::Options;
use crate::process::Peak;
use crate::scene::{Latency, Phase, Scene};
use crate::server::{CEILING, Setup};

/// How long the victim is measured before the attack, and a pause before that
/// for what happens only once.
const QUIET: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_secs(1);

/// How long memory may take to come back.
const COME_BACK: Duration = Duration::from_secs(30);

/// Bytes beyond a fifth that memory may have grown: pages that an allocator
/// keeps, and tables that grow once.
const SLACK: u64 = 16 << 20;

/// The p99 that is good enough whatever it was before, in milliseconds.
const GOOD_P99: f64 = 20.0;

/// See the module's documentation. Memory in bytes.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) number: &'static str,
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// In the server, before the attack and during it.
    pub(crate) quiet: Option<Latency>,
    pub(crate) attacked: Option<Latency>,
    /// As the victim saw it.
    pub(crate) quiet_seen: Latency,
    pub(crate) attacked_seen: Latency,
    pub(crate) pushes: u64,
    pub(crate) before: u64,
    pub(crate) peak: u64,
    pub(crate) after: u64,
    /// Seconds of CPU during the attack.
    pub(crate) cpu: f64,
    pub(crate) taken: u64,
    pub(crate) refused: u64,
    pub(crate) reason: Option<String>,
    pub(crate) refusals: BTreeMap<String, u64>,
    /// What does not hold; empty if all does.
    pub(crate) failed: Vec<String>,
}

/// Runs one attack against a server of its own.
pub(crate) async fn run(options: &Options, attack: &'static Attack) -> Result<Outcome> {
    let mut scene = Scene::start(options, attack.setup).await?;
    tokio::time::sleep(WARM_UP).await;
    let (quiet, ()) = scene.measure(tokio::time::sleep(QUIET)).await;
    let before = scene.server.process.memory();

    let peak = Peak::watch(scene.server.process);
    let time = Duration::from_secs(options.seconds);
    let running = scene.attack(attack, Scale::Full(time));
    let (phase, field) = scene.measure(running).await;
    let after = come_back(&scene, before).await;
    let mut outcome = outcome(attack, quiet, phase, &field);
    if attack.setup == Setup::Source {
        // It has no histogram of its own.
        outcome.quiet = Some(outcome.quiet_seen);
        outcome.attacked = Some(outcome.attacked_seen);
    }
    (outcome.before, outcome.after) = (before, after);
    outcome.peak = peak.most();
    outcome.judge();
    judge_victim(&mut scene, &mut outcome.failed).await;
    let skipped = scene.faults().skipped;
    if skipped > 0 {
        outcome.fail(format!("{skipped} changes had to wait for 1.6 s or more"));
    }
    if attack.setup == Setup::FullPipe && !scene.server.ends_by_signal().await {
        outcome.failed.push("SIGTERM did not end it".into());
    }
    Ok(outcome)
}

fn outcome(attack: &Attack, quiet: Phase, phase: Phase, field: &Field) -> Outcome {
    let told = field.told();
    Outcome {
        number: attack.number,
        name: attack.name,
        about: attack.about,
        quiet: quiet.in_server,
        attacked: phase.in_server,
        quiet_seen: quiet.seen,
        attacked_seen: phase.seen,
        pushes: phase.pushes,
        before: 0,
        peak: phase.peak,
        after: 0,
        cpu: phase.cpu,
        taken: field.taken(),
        refused: field.refused(),
        reason: told.reason,
        refusals: phase.refusals,
        failed: told.faults,
    }
}

/// Waits until memory is within bounds again, or the time for that is over.
async fn come_back(scene: &Scene, before: u64) -> u64 {
    let begun = Instant::now();
    loop {
        let now = scene.server.process.memory();
        if now <= may_stay(before) || begun.elapsed() > COME_BACK {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The memory that a server may have after an attack.
pub(crate) fn may_stay(before: u64) -> u64 {
    before + before / 5 + SLACK
}

impl Outcome {
    /// Judges latency and memory.
    fn judge(&mut self) {
        let (quiet, attacked) = (self.quiet.unwrap_or_default(), self.attacked);
        let bound = GOOD_P99.max(3.0 * quiet.p99);
        match attacked {
            Some(latency) if latency.p99 <= bound => {}
            Some(latency) => self.fail(format!("p99 {} ms", latency.p99)),
            None => self.fail("the server does not say how late changes were"),
        }
        if self.peak > CEILING {
            self.fail(format!("peak {} MiB", self.peak >> 20));
        }
        if self.after > may_stay(self.before) {
            self.fail(format!("{} MiB stay", self.after >> 20));
        }
    }

    fn fail(&mut self, reason: impl Into<String>) {
        self.failed.push(reason.into());
    }
}

/// Judges whether the server lives and the victim got everything. Ends the
/// changes.
pub(crate) async fn judge_victim(scene: &mut Scene, failed: &mut Vec<String>) {
    if !scene.server.is_alive() {
        failed.push("the server died".into());
        return;
    }
    let lacking = scene.lacking().await;
    if lacking > 0 {
        failed.push(format!("the victim lacks {lacking} changes"));
    }
    failed.extend(broken(scene.faults()));
}

/// What went wrong, in words.
pub(crate) fn broken(faults: Faults) -> Vec<String> {
    let rows = [
        (faults.removed, "removals at the victim"),
        (faults.ended, "ends of the victim's stream"),
        (faults.reverted, "earlier versions at the victim"),
        (faults.refused, "changes refused"),
        (faults.unanswered, "changes without an answer"),
    ];
    let broken = rows.into_iter().filter(|(count, _)| *count > 0);
    broken
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
}
