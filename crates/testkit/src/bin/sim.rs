//! Runs many worlds and says which seeds fail.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use testkit::variants;
use testkit::world::World;

const STEPS: usize = 400;
/// Of a world of variants.
const ROUNDS: usize = 8;
const STEPS_OF_ROUND: usize = 60;

fn main() -> ExitCode {
    let mut seeds = 200u64;
    let mut from = 0u64;
    let mut tell = false;
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        if flag == "--tell" {
            tell = true;
            continue;
        }
        let value = args.next().and_then(|v| v.parse().ok());
        match (flag.as_str(), value) {
            ("--seeds", Some(value)) => seeds = value,
            ("--from", Some(value)) => from = value,
            _ => {
                eprintln!("usage: sim [--seeds N] [--from SEED] [--tell]");
                return ExitCode::from(2);
            }
        }
    }
    let mut failed = 0;
    for seed in from..from + seeds {
        let Some(fault) = fault(seed) else {
            continue;
        };
        failed += 1;
        if tell {
            tell_story(seed);
        }
        println!("seed {seed}: {fault}");
        if failed >= 10 {
            println!("... and more");
            break;
        }
    }
    println!("seeds {from}..{}: {failed} failed", from + seeds);
    ExitCode::from(u8::from(failed > 0))
}

/// What does not hold in the worlds of a seed. One in four has one of variants.
fn fault(seed: u64) -> Option<String> {
    let world = catch_unwind(|| World::new(seed).run(STEPS).map(drop));
    let variants = || variants::World::new(seed).run(ROUNDS, STEPS_OF_ROUND);
    let outcome = match world {
        Ok(Ok(())) if seed.is_multiple_of(4) => catch_unwind(variants),
        outcome => outcome,
    };
    match outcome {
        Ok(outcome) => outcome.err(),
        Err(_) => Some("panicked".to_owned()),
    }
}

/// Runs a seed again and says what happens in it.
fn tell_story(seed: u64) {
    let mut world = World::new(seed).telling();
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run(STEPS)));
    let mut story: Vec<String> = world.story().map(str::to_owned).collect();
    if matches!(outcome, Ok(Ok(_))) {
        let mut world = variants::World::new(seed).telling();
        let run = AssertUnwindSafe(|| world.run(ROUNDS, STEPS_OF_ROUND));
        drop(catch_unwind(run));
        story = world.story().to_vec();
    }
    for line in story {
        println!("{line}");
    }
}
