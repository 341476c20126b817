//! Tells the program what it was built from, as far as that can be known.

use std::path::Path;
use std::process::Command;

fn main() {
    let set = |key: &str, value: Option<String>| {
        let value = value.unwrap_or_else(|| "unknown".to_owned());
        println!("cargo::rustc-env=TRUNKLINE_{key}={value}");
    };
    set("TARGET", std::env::var("TARGET").ok());
    set("PROFILE", std::env::var("PROFILE").ok());
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    set("RUSTC", said(Command::new(rustc).arg("--version")));
    set("COMMIT", commit());
    println!("cargo::rerun-if-env-changed=TRUNKLINE_BUILD_COMMIT");
}

/// What whoever packages it says, else what git says; a tree without git has
/// none.
fn commit() -> Option<String> {
    if let Ok(commit) = std::env::var("TRUNKLINE_BUILD_COMMIT") {
        return Some(commit);
    }
    // Where the commit of this moment is written: a new one is seen.
    let dir = said(Command::new("git").args(["rev-parse", "--absolute-git-dir"]))?;
    let log = Path::new(&dir).join("logs/HEAD");
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    said(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]))
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}
