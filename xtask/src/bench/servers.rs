//! Runs the figures against servers: each run a report under `target/bench`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let programs = Programs::build(workspace, quick)?;
    if peers_only && programs.peer.is_none() {
        return Ok(());
    }
    let folder = folder(workspace, quick);
    make(&folder)?;
    let mut bad = 0;
    for figure in FIGURES {
        if !numbers.is_empty() && !numbers.contains(&figure.number) {
            continue;
        }
        for one in figure.runs {
            let is_peer = matches!(one.server, Server::Go(_));
            if (is_peer && programs.peer.is_none()) || (peers_only && !is_peer) {
                continue;
            }
            let mut command = programs.command(workspace, figure, one, quick)?;
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

/// What is run.
struct Programs {
    tool: PathBuf,
    trunkline: PathBuf,
    /// The program around go-control-plane; none where Go is missing.
    peer: Option<PathBuf>,
}

impl Programs {
    /// A quick look takes what tests have built already: its times mean nothing.
    fn build(workspace: &Workspace, quick: bool) -> Result<Self> {
        let (profile, folder) = match quick {
            true => ("dev", "debug"),
            false => ("release", "release"),
        };
        let packages = ["--package", "trunkline-bench", "--package", "trunkline-cli"];
        run(workspace
            .cargo(&["build", "--profile", profile])
            .args(packages))?;
        let built = workspace.target().join(folder);
        Ok(Self {
            tool: built.join("trunkline-bench"),
            trunkline: built.join("trunkline"),
            peer: build_peer(workspace)?,
        })
    }

    /// The tool on one core and the server on another, where there are two.
    fn command(
        &self,
        workspace: &Workspace,
        figure: &Figure,
        one: &Run,
        quick: bool,
    ) -> Result<Command> {
        let mut command = match apart(workspace) {
            false => workspace.program(&self.tool),
            true => {
                let mut command = workspace.program("taskset");
                command.args(["-c", "1"]).arg(&self.tool);
                command.args(["--threads", "1", "--server-cores", "0"]);
                command
            }
        };
        let flags = match quick {
            true => vec![figure.quick],
            false => vec![figure.flags, one.flags],
        };
        command.args(flags.iter().flat_map(|flags| flags.split_whitespace()));
        match (one.server, &self.peer) {
            (Server::Trunkline, _) | (Server::Go(_), None) => {}
            (Server::Files, _) => {
                let files = workspace.target().join("bench/files");
                // What an earlier run left is not part of this one.
                let _ = fs::remove_dir_all(&files);
                make(&files)?;
                let (program, files) = (self.trunkline.display(), files.display());
                let start = format!(
                    "{program} serve --config {files} --listen {{address}} \
                     --admin 127.0.0.1:0 --ready-patience 5m --log-level error"
                );
                command.args(["--driver", &format!("files={files}"), "--start", &start]);
            }
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
        Ok(command)
    }
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))
}

fn build_peer(workspace: &Workspace) -> Result<Option<PathBuf>> {
    if capture(workspace.program("go").arg("version")).is_err() {
        println!("Go is not installed: go-control-plane is left out");
        return Ok(None);
    }
    let program = workspace.target().join("bench/go-control-plane");
    let mut go = workspace.program("go");
    go.current_dir(workspace.root().join(PEER));
    go.args(["build", "-o"]).arg(&program).arg(".");
    if !status(&mut go)?.success() {
        // Its modules come over the network, which is not always there.
        println!("go-control-plane could not be built, see above: it is left out");
        return Ok(None);
    }
    Ok(Some(program))
}

fn apart(workspace: &Workspace) -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores > 1 && capture(workspace.program("taskset").arg("--version")).is_ok()
}
