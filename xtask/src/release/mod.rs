//! Builds the program as static binaries, and tries them.
//!
//! Zig links them for any machine with musl; it comes as a Python package, as
//! the clients of the tests do. What is built lies in `target/dist`.

mod trial;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use lexopt::Arg;

use crate::failure::{Failure, Result};
use crate::setup;
use crate::workspace::{Workspace, capture, run};

const TOOLS: &str = "xtask/release-requirements.txt";

/// A machine that a binary is built for.
struct Target {
    triple: &'static str,
    /// The emulators that run its programs elsewhere.
    emulators: &'static [&'static str],
}

const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-musl",
        emulators: &["qemu-x86_64-static", "qemu-x86_64"],
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        emulators: &["qemu-aarch64-static", "qemu-aarch64"],
    },
];

/// Builds and tries all targets, or those that are named.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    let mut targets = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Value(triple) => targets.push(find(&triple.to_string_lossy())?),
            other => return Err(other.unexpected().into()),
        }
    }
    if targets.is_empty() {
        targets.extend(TARGETS);
    }
    for target in &targets {
        check_installed(workspace, target)?;
    }
    let tools = setup::install_pinned(workspace, TOOLS, "release-tools")?;
    for target in targets {
        let binary = build(workspace, target, &tools)?;
        trial::check_static(&binary)?;
        match runner(target) {
            Some(runner) => trial::run(workspace, &binary, runner)?,
            None => println!(
                "{} was not run: no emulator is installed (on Debian: the package qemu-user-static)",
                binary.display()
            ),
        }
    }
    Ok(())
}

fn find(triple: &str) -> Result<&'static Target> {
    let found = TARGETS.iter().find(|target| target.triple == triple);
    found.ok_or_else(|| {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.triple).collect();
        Failure::new(format!("{triple} is not built"))
            .remedy(format!("name {}", known.join(" or ")))
    })
}

/// Checks that the standard library for a target is there.
fn check_installed(workspace: &Workspace, target: &Target) -> Result<()> {
    let triple = target.triple;
    let mut rustc = workspace.program("rustc");
    let folder = capture(rustc.args(["--print", "target-libdir", "--target", triple]))?;
    if Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "Rust's standard library for {triple} is not installed"
    ))
    .remedy(format!("rustup target add {triple}")))
}

/// Builds the program for a target, and returns where it is.
fn build(workspace: &Workspace, target: &Target, tools: &Path) -> Result<PathBuf> {
    let triple = target.triple;
    let mut cargo = workspace.cargo(&["zigbuild", "--release", "--locked"]);
    cargo.args(["--package", "trunkline-cli", "--target", triple]);
    let path = env::var_os("PATH").unwrap_or_default();
    let paths = [tools.join("bin")]
        .into_iter()
        .chain(env::split_paths(&path));
    let path = env::join_paths(paths)
        .map_err(|error| Failure::new(format!("no PATH for the tools: {error}")))?;
    run(cargo.env("PATH", path))?;

    let built = workspace.target().join(triple).join("release/trunkline");
    let folder = workspace.target().join("dist");
    let binary = folder.join(format!("trunkline-{}-{triple}", env!("CARGO_PKG_VERSION")));
    let copied = fs::create_dir_all(&folder).and_then(|()| fs::copy(&built, &binary));
    copied.map_err(|error| Failure::new(format!("cannot write {}: {error}", binary.display())))?;
    Ok(binary)
}

/// What runs a program of a target here: nothing, or an emulator. `None` if
/// there is no way.
fn runner(target: &Target) -> Option<Option<PathBuf>> {
    if target.triple.starts_with(env::consts::ARCH) {
        return Some(None);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let emulators = target.emulators.iter();
    let mut files = emulators.flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.find(|file| file.is_file()).map(Some)
}
