//! Installs the real clients that interop tests run, and other tools.
//!
//! All come as Python packages, pinned in a file, into a virtual environment
//! under the target directory. A stamp beside them holds the pins that were
//! installed, so the second run costs nothing and a changed pin installs anew.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture, run as run_shown};

const PINS: &str = "crates/interop/requirements.txt";

/// Programs of the system that the guides use, and so the tests that play them.
const PROGRAMS: [&str; 2] = ["git", "curl"];

/// Makes sure that the clients are installed as pinned, and that the programs of
/// the guides are there.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for program in PROGRAMS {
        capture(workspace.program(program).arg("--version")).map_err(|failure| {
            failure.remedy("install git and curl, which the guides use (Debian: both packages)")
        })?;
    }
    install_pinned(workspace, PINS, "venv").map(drop)
}

/// Makes sure that packages are installed as a file pins them, in an
/// environment with this name. Returns its folder.
pub(crate) fn install_pinned(
    workspace: &Workspace,
    pins_file: &str,
    environment: &str,
) -> Result<PathBuf> {
    let pins = workspace.read(pins_file)?;
    let venv = workspace.target().join(environment);
    let stamp = venv.join("trunkline-pins.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pins) {
        println!("installed as pinned in {pins_file}");
        return Ok(venv);
    }
    create(workspace, &venv)?;
    install(workspace, pins_file, &venv)?;
    fs::write(&stamp, pins)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", stamp.display())))?;
    Ok(venv)
}

fn create(workspace: &Workspace, venv: &Path) -> Result<()> {
    capture(workspace.program("python3").arg("--version")).map_err(|failure| {
        failure.remedy("install Python 3.10 or newer, so that `python3` is on the PATH")
    })?;
    run_shown(
        workspace
            .program("python3")
            .args(["-m", "venv", "--clear"])
            .arg(venv),
    )
    .map_err(|failure| {
        failure.remedy(
            "install Python's venv and pip modules \
                 (on Debian: the packages python3-venv and python3-pip)",
        )
    })
}

fn install(workspace: &Workspace, pins_file: &str, venv: &Path) -> Result<()> {
    let mut pip = workspace.program(venv.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    pip.args(["--only-binary", ":all:", "--requirement", pins_file]);
    run_shown(&mut pip).map_err(|failure| {
        failure.remedy(
            "see pip's message above; the machine needs a Python package index, \
             and the packages exist for Linux on x86-64 and arm64",
        )
    })
}
