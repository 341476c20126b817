//! Runs many worlds and says which seeds fail.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use testkit::world::World;

const STEPS: usize = 400;

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
        let outcome = std::panic::catch_unwind(|| World::new(seed).run(STEPS));
        let fault = match outcome {
            Ok(Ok(_)) => continue,
            Ok(Err(fault)) => fault,
            Err(_) => "panicked".to_owned(),
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

/// Runs a seed again and says what happens in it.
fn tell_story(seed: u64) {
    let mut world = World::new(seed).telling();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run(STEPS)));
    for line in world.story() {
        println!("{line}");
    }
    drop(outcome);
}
