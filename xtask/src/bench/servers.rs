//! Runs the figures against servers: each run a report under `target/bench`.

use std::fs;
use std::path::{Path, PathBuf};

use super::figures::{FIGURES, Figure, Run, Server};
use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture, run, status};

const PEER: &str = "bench/peers/go-control-plane";

/// Where reports are.
pub(super) fn folder(workspace: &Workspace, quick: bool) -> PathBuf {
    let name = if quick { "quick" } else { "figures" };
    workspace.target().join("bench").join(name)
}

/// Runs figures: those with these numbers, or all. Of peers only, or of all
/// servers.
pub(super) fn measure(
    workspace: &Workspace,
    quick: bool,
    numbers: &[usize],
    peers_only: bool,
) -> Result<()> {
    let tool = build(workspace)?;
    let peer = build_peer(workspace)?;
    let folder = folder(workspace, quick);
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    let mut bad = 0;
    for figure in FIGURES {
        if !numbers.is_empty() && !numbers.contains(&figure.number) {
            continue;
        }
        for one in figure.runs {
            let is_peer = matches!(one.server, Server::Go(_));
            if (is_peer && peer.is_none()) || (peers_only && !is_peer) {
                continue;
            }
            let mut command = command(workspace, &tool, peer.as_deref(), figure, one, quick);
            command.arg("--report").arg(folder.join(figure.file(one)));
            bad += usize::from(!status(&mut command)?.success());
        }
    }
    match bad {
        0 => Ok(()),
        some => Err(Failure::new(format!(
            "{some} runs failed, or clients held wrong contents; see above"
        ))),
    }
}

fn build(workspace: &Workspace) -> Result<PathBuf> {
    run(&mut workspace.cargo(&["build", "--release", "--package", "trunkline-bench"]))?;
    Ok(workspace.target().join("release/trunkline-bench"))
}

/// The program around go-control-plane; none where Go is missing.
fn build_peer(workspace: &Workspace) -> Result<Option<PathBuf>> {
    if capture(workspace.program("go").arg("version")).is_err() {
        println!("Go is not installed: go-control-plane is left out");
        return Ok(None);
    }
    let program = workspace.target().join("bench/go-control-plane");
    let mut go = workspace.program("go");
    go.current_dir(workspace.root().join(PEER));
    run(go.args(["build", "-o"]).arg(&program).arg("."))?;
    Ok(Some(program))
}

/// The tool on one core and the server on another, where there are two.
fn command(
    workspace: &Workspace,
    tool: &Path,
    peer: Option<&Path>,
    figure: &Figure,
    one: &Run,
    quick: bool,
) -> std::process::Command {
    let mut command = match apart(workspace) {
        false => workspace.program(tool),
        true => {
            let mut command = workspace.program("taskset");
            command.args(["-c", "1"]).arg(tool);
            command.args(["--threads", "1", "--server-cores", "0"]);
            command
        }
    };
    let flags = match quick {
        true => vec![figure.quick],
        false => vec![figure.flags, one.flags],
    };
    command.args(flags.iter().flat_map(|flags| flags.split_whitespace()));
    match (one.server, peer) {
        (Server::Trunkline, _) | (Server::Go(_), None) => {}
        (Server::Floor, _) => {
            command.arg("--floor");
        }
        (Server::Go(cache), Some(peer)) => {
            let start = format!(
                "{} -cache {cache} -listen {{address}} -control {{control}}",
                peer.display()
            );
            command.args(["--start", &start]);
        }
    }
    command
}

fn apart(workspace: &Workspace) -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores > 1 && capture(workspace.program("taskset").arg("--version")).is_ok()
}
