//! Runs many worlds and says which seeds fail.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use testkit::world::{Fault, World};
use testkit::{servers, snapshots, trees, variants};

const STEPS: usize = 400;
/// Of a world of variants.
const ROUNDS: usize = 8;
const STEPS_OF_ROUND: usize = 60;
/// How many failures are shown.
const SHOWN: usize = 10;
/// After how many seeds it says how far it is.
const PROGRESS: u64 = 20_000;

/// The options of a run.
struct Plan {
    from: u64,
    seeds: u64,
    tell: bool,
    /// One kind of world, if not all.
    only: Option<String>,
}

fn main() -> ExitCode {
    let Some(plan) = plan() else {
        eprintln!(
            "usage: sim [--seeds N] [--from SEED] [--only relays|variants|wild|trees|servers|snapshots] [--tell]"
        );
        return ExitCode::from(2);
    };
    let failed = run(&plan);
    println!(
        "seeds {}..{}: {failed} failed",
        plan.from,
        plan.from + plan.seeds
    );
    ExitCode::from(u8::from(failed > 0))
}

/// Runs the seeds on all cores, each world on one. Returns how many failed.
fn run(plan: &Plan) -> usize {
    let (next, failed) = (AtomicU64::new(0), AtomicUsize::new(0));
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let work = || {
        while failed.load(Ordering::Relaxed) < SHOWN {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= plan.seeds {
                return;
            }
            if nth > 0 && nth % PROGRESS == 0 {
                eprintln!("{nth} of {} seeds", plan.seeds);
            }
            failed.fetch_add(run_seed(plan, plan.from + nth), Ordering::Relaxed);
        }
        println!("... and more");
    };
    thread::scope(|scope| {
        (0..cores).for_each(|_| _ = scope.spawn(work));
    });
    failed.into_inner()
}

/// Runs the worlds of a seed. Returns how many failed.
fn run_seed(plan: &Plan, seed: u64) -> usize {
    let kinds = Kind::of(seed).into_iter();
    let kinds = kinds.filter(|kind| plan.only.as_ref().is_none_or(|only| only == kind.name()));
    let faults = kinds.filter_map(|kind| Some((kind, kind.fault(seed)?)));
    let faults: Vec<(Kind, Fault)> = faults.collect();
    for (kind, fault) in &faults {
        let mut lines = match plan.tell {
            true => kind.story(seed),
            false => Vec::new(),
        };
        lines.push(format!("seed {seed} ({}): {fault}", kind.name()));
        println!("{}", lines.join("\n"));
    }
    faults.len()
}

fn plan() -> Option<Plan> {
    let mut plan = Plan {
        from: 0,
        seeds: 200,
        tell: false,
        only: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--tell" => plan.tell = true,
            "--seeds" => plan.seeds = args.next()?.parse().ok()?,
            "--from" => plan.from = args.next()?.parse().ok()?,
            "--only" => plan.only = Some(args.next()?),
            _ => return None,
        }
    }
    Some(plan)
}

/// The kinds of worlds.
#[derive(Clone, Copy)]
enum Kind {
    Relays,
    Variants,
    /// Of variants, where clients NACK some.
    Wild,
    Trees,
    /// A client before several servers.
    Servers,
    /// A tree above a client.
    Snapshots,
}

impl Kind {
    /// The worlds of a seed. One in four has one of variants, and one in four
    /// one where clients NACK some of them.
    fn of(seed: u64) -> Vec<Self> {
        let mut kinds = vec![Self::Relays, Self::Trees, Self::Servers, Self::Snapshots];
        match seed % 4 {
            0 => kinds.push(Self::Variants),
            2 => kinds.push(Self::Wild),
            _ => {}
        }
        kinds
    }

    fn name(self) -> &'static str {
        match self {
            Self::Relays => "relays",
            Self::Variants => "variants",
            Self::Wild => "wild",
            Self::Trees => "trees",
            Self::Servers => "servers",
            Self::Snapshots => "snapshots",
        }
    }

    /// Runs the world; the error is an invariant that does not hold.
    fn fault(self, seed: u64) -> Option<Fault> {
        let run = || match self {
            Self::Relays => World::new(seed).run(STEPS).map(drop),
            Self::Variants => variants::World::new(seed).run(ROUNDS, STEPS_OF_ROUND),
            Self::Wild => variants::World::wild(seed).run(ROUNDS, STEPS_OF_ROUND),
            Self::Trees => trees::World::new(seed).run(STEPS),
            Self::Servers => servers::World::new(seed).run(STEPS),
            Self::Snapshots => snapshots::World::new(seed).run(STEPS),
        };
        match catch_unwind(run) {
            Ok(outcome) => outcome.err(),
            Err(_) => Some("panicked".to_owned()),
        }
    }

    /// Runs a seed again and says what happens in it.
    fn story(self, seed: u64) -> Vec<String> {
        match self {
            Self::Relays => {
                let mut world = World::new(seed).telling();
                drop(catch_unwind(AssertUnwindSafe(|| world.run(STEPS))));
                world.story().map(str::to_owned).collect()
            }
            Self::Variants | Self::Wild => {
                let world = match self {
                    Self::Wild => variants::World::wild(seed),
                    _ => variants::World::new(seed),
                };
                let mut world = world.telling();
                let run = AssertUnwindSafe(|| world.run(ROUNDS, STEPS_OF_ROUND));
                drop(catch_unwind(run));
                world.story().to_vec()
            }
            Self::Trees => {
                let mut world = trees::World::new(seed).telling();
                drop(catch_unwind(AssertUnwindSafe(|| world.run(STEPS))));
                world.story().to_vec()
            }
            Self::Servers => {
                let mut world = servers::World::new(seed).telling();
                drop(catch_unwind(AssertUnwindSafe(|| world.run(STEPS))));
                world.story().to_vec()
            }
            Self::Snapshots => {
                let mut world = snapshots::World::new(seed).telling();
                drop(catch_unwind(AssertUnwindSafe(|| world.run(STEPS))));
                world.story().to_vec()
            }
        }
    }
}
