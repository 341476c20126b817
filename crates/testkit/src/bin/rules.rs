//! Writes `docs/rules.md`, or with `--check` says whether it is current. Fails
//! when a rule that should be shown by a test is not.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what this command prints is what it is for"
)]

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use testkit::rules::{families, faults, find, page};

const PAGE: &str = "docs/rules.md";

fn main() -> ExitCode {
    let check = env::args().skip(1).any(|arg| arg == "--check");
    match run(check) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(faults) => {
            eprintln!("{faults}");
            ExitCode::FAILURE
        }
    }
}

fn run(check: bool) -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let families = families()?;
    let evidence = find(&root).map_err(|error| error.to_string())?;
    let text = page(&families, &evidence);
    let path = root.join(PAGE);
    let current = fs::read_to_string(&path).unwrap_or_default() == text;
    if !check {
        fs::write(&path, text).map_err(|error| format!("{PAGE}: {error}"))?;
    }
    let mut faults = faults(&families, &evidence);
    if check && !current {
        faults.push(format!("{PAGE} is stale: `cargo xtask rules` writes it"));
    }
    match faults.is_empty() {
        true => Ok(format!("{} places show that rules hold", evidence.len())),
        false => Err(faults.join("\n")),
    }
}
