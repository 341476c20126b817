//! Attacks a server, and measures what a well-behaved client beside it notices.
//!
//! ```text
//!            attackers ──▶ ┌────────┐
//!   driver ──changes─────▶ │ server │ ──pushes──▶ victim
//!            every 100 ms  └────────┘
//! ```
//!
//! The server is a process of its own, on a core of its own. How long a change
//! takes in it, the server says itself (`trunkline_push_seconds`); how long it
//! takes until the victim has it is measured here.
#![forbid(unsafe_code)]

mod admin;
mod attacks;
mod contents;
mod door;
mod driver;
mod error;
mod field;
mod frames;
mod ledger;
mod metrics;
mod options;
mod outcome;
mod peer;
mod process;
mod quick;
mod scene;
mod server;
mod soak;
mod table;
mod tls;
mod victim;
mod wire;

use std::process::{Command, ExitCode};

use clap::Parser as _;

use attacks::Attack;
use error::{Error, Result};
use options::Options;

#[expect(clippy::print_stderr, reason = "a program says why it fails")]
fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("trunkline-attack: {error}");
            ExitCode::from(2)
        }
    }
}

/// Does what the command line says. Returns whether everything held.
fn run(options: &Options) -> Result<bool> {
    let attacks = attacks::chosen(&options.only);
    if attacks.is_empty() {
        let only = options.only.join(", ");
        return Err(Error::Usage(format!("no attack is {only}; see --list")));
    }
    if options.list {
        for attack in attacks {
            let (name, number, about) = (attack.name, attack.number, attack.about);
            print(format!("{number:>2}  {name:<20} {about}"));
        }
        return Ok(true);
    }
    pin(options)?;
    // Its threads are on the cores that this one is on.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(perform(options, &attacks))
}

async fn perform(options: &Options, attacks: &[&'static Attack]) -> Result<bool> {
    if options.quick {
        return judged(quick::run(options, attacks).await?);
    }
    if let Some(minutes) = options.soak {
        return judged(soak::run(options, attacks, minutes).await?);
    }
    let (mut outcomes, mut is_complete) = (Vec::new(), true);
    for attack in attacks {
        match outcome::run(options, attack).await {
            Ok(outcome) => {
                say(table::line(&outcome));
                outcomes.push(outcome);
            }
            Err(error) => {
                say(format!("{}: {error}", attack.name));
                is_complete = false;
            }
        }
    }
    let text = match (options.json, options.markdown) {
        (true, _) => serde_json::to_string_pretty(&outcomes).map_err(std::io::Error::other)?,
        (_, true) => table::markdown(&outcomes),
        _ => table::plain(&outcomes),
    };
    print(text.trim_end());
    Ok(is_complete && outcomes.iter().all(|outcome| outcome.failed.is_empty()))
}

/// Says what did not hold, and returns whether all did.
fn judged(failed: Vec<String>) -> Result<bool> {
    if !failed.is_empty() {
        say(format!("does not hold: {}", failed.join(", ")));
    }
    Ok(failed.is_empty())
}

/// Moves this process to its cores.
fn pin(options: &Options) -> Result<()> {
    let Some(cores) = &options.own_cores else {
        return Ok(());
    };
    let own = std::process::id().to_string();
    let moved = Command::new("taskset")
        .args(["-cp", cores, &own])
        .output()?;
    match moved.status.success() {
        true => Ok(()),
        false => Err(Error::Usage(format!("--own-cores {cores}: no such cores"))),
    }
}

/// Prints the result.
#[expect(clippy::print_stdout, reason = "the result of the program")]
fn print(text: impl AsRef<str>) {
    println!("{}", text.as_ref());
}

/// Says how far it is, beside the result.
#[expect(clippy::print_stderr, reason = "progress of a program that takes long")]
pub(crate) fn say(text: impl AsRef<str>) {
    eprintln!("{}", text.as_ref());
}
