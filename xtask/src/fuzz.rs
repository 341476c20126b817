//! Fuzzing: the targets in `fuzz/src/bin`, each for some time.
//!
//! `fuzz` is a workspace of its own, whose `.cargo/config.toml` says how it is
//! built; so cargo runs there.

use std::fs;
use std::path::PathBuf;

use lexopt::{Arg, ValueExt as _};

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, run};

const TARGETS: &str = "fuzz/src/bin/";

/// One program that is fed with inputs.
struct Target {
    name: String,
    /// The first sentence of its file.
    about: String,
}

/// Runs the targets that are named, or all, until one fails.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    let (mut named, mut seconds, mut list) = (Vec::new(), 60_u64, false);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Value(name) => named.push(name.string()?),
            Arg::Long("seconds") => seconds = args.value()?.parse()?,
            Arg::Long("list") => list = true,
            other => return Err(other.unexpected().into()),
        }
    }
    let targets = targets(workspace)?;
    if list {
        for target in targets {
            println!("{:12} {}", target.name, target.about);
        }
        return Ok(());
    }
    if let Some(name) = named.iter().find(|name| !knows(&targets, name)) {
        return Err(Failure::new(format!("there is no target `{name}`"))
            .remedy("`cargo xtask fuzz --list` lists them"));
    }
    let chosen = |target: &&Target| named.is_empty() || named.contains(&target.name);
    targets
        .iter()
        .filter(chosen)
        .try_for_each(|target| fuzz(workspace, &target.name, seconds))
}

fn knows(targets: &[Target], name: &str) -> bool {
    targets.iter().any(|target| target.name == name)
}

/// Every target, by its file.
fn targets(workspace: &Workspace) -> Result<Vec<Target>> {
    let files = workspace.files()?;
    let names = files.iter().filter_map(|path| {
        let name = path.strip_prefix(TARGETS)?.strip_suffix(".rs")?;
        Some((path, name.to_owned()))
    });
    names
        .map(|(path, name)| {
            let about = first_sentence(&workspace.read(path)?);
            Ok(Target { name, about })
        })
        .collect()
}

/// What the comment at the top says up to its first full stop.
fn first_sentence(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//! "));
    let comment = lines.collect::<Vec<_>>().join(" ");
    let end = comment.find(". ").unwrap_or(comment.len());
    comment[..end].trim_end_matches('.').to_owned()
}

/// What was found before is where it begins, and is kept for the next time.
fn fuzz(workspace: &Workspace, target: &str, seconds: u64) -> Result<()> {
    let folder = workspace.root().join("fuzz");
    let inputs = made(folder.join("corpus").join(target))?;
    let failures = made(folder.join("artifacts").join(target))?;
    let mut cargo = workspace.cargo(&["run", "--quiet", "--release", "--bin", target, "--"]);
    // The flags in its configuration count only if none are in the environment.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR"] {
        cargo.env_remove(variable);
    }
    cargo
        .current_dir(&folder)
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        // The folder ends in a slash, or libFuzzer takes it for a prefix.
        .arg(format!("-artifact_prefix={}/", failures.display()))
        .arg(inputs);
    run(&mut cargo).map_err(|_| {
        Failure::new(format!("{target} failed; the input is named above")).remedy(format!(
            "in fuzz: `cargo run --release --bin {target} -- INPUT` repeats it, \
             with `-minimize_crash=1 -runs=10000` before INPUT it is made shorter; \
             then write it as a test beside the code"
        ))
    })
}

fn made(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_told_by_its_first_sentence() {
        let text = "//! One thing,\n//! said on. Another.\n#![no_main]\n//! no";
        assert_eq!(first_sentence(text), "One thing, said on");
        assert_eq!(first_sentence("//! One thing.\n\n//! no"), "One thing");
    }
}
