//! Runs the figures against servers: each run a report under `target/bench`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::figures::{Figure, Run, Server, Watcher};
use super::machine;
use super::plan::{self, Choice, Step};
use super::samples::{Samples, make};
use super::trial::{self, Lab};
use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture, start};
use crate::{go, java};

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(20);

const PEER: &str = "bench/peers/go-control-plane";
const CLIENT: &str = "bench/peers/grpc-go";
const ARMERIA: &str = "bench/peers/armeria";

/// How grpc-go's client is told what to watch.
const CLIENT_FLAGS: &str =
    "-address {address} -prefix {prefix} -resources {resources} -routes {routes}";

/// Runs what is chosen, and says which runs failed: one that does costs the
/// others nothing.
pub(super) fn measure(workspace: &Workspace, choice: &Choice) -> Result<Vec<String>> {
    let programs = Programs::build(workspace, choice.quick)?;
    let samples = Samples::new(workspace, choice.quick);
    samples.make()?;
    let steps = plan::steps(choice, |run| programs.can(run));
    let seconds = steps
        .iter()
        .map(|step| step.seconds(&samples, choice.quick));
    let seconds: Vec<f64> = seconds.collect();
    let all: f64 = seconds.iter().sum();
    println!("{} runs, {}", steps.len(), plan::duration(all));
    let mut failed = Vec::new();
    let mut given_up: Vec<&Step> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        println!("{}", plan::progress(&steps, at, seconds[at..].iter().sum()));
        if given_up.iter().any(|other| step.repeats(other)) {
            println!("left out: it took too long before");
            continue;
        }
        if !choice.quick {
            machine::settle();
        }
        let begun = Instant::now();
        if step.repeat == 1 {
            samples.forget(step.figure, step.run);
        }
        if let Err(failure) = take(workspace, &programs, &samples, step, choice.quick) {
            println!("FAILED: {}: {failure}", step.name());
            failed.push(format!("{}: {failure}", step.name()));
            if begun.elapsed() > step.limit() {
                given_up.push(step);
            }
        }
    }
    Ok(failed)
}

/// One run and its report.
fn take(
    workspace: &Workspace,
    programs: &Programs,
    samples: &Samples,
    step: &Step,
    quick: bool,
) -> Result<()> {
    let file = samples.file(step.figure, step.run, step.repeat);
    let begun = Instant::now();
    if let Server::Trial(trial) = step.run.server {
        let report = trial.measure(&programs.lab(workspace, quick))?;
        samples.keep(&file, &report)?;
        let command = format!("cargo xtask bench --only {}", step.figure.number);
        return samples.note(workspace, &file, &command, begun.elapsed().as_secs_f64());
    }
    let mut command = programs.command(workspace, step.figure, step.run, quick)?;
    let typed = typed(workspace, &command);
    command.arg("--report").arg(&file);
    if let Err(failure) = finish(&mut command, step.limit()) {
        samples.set_aside(&file);
        return Err(failure);
    }
    samples.note(workspace, &file, &typed, begun.elapsed().as_secs_f64())
}

/// A command as one types it at the root of the workspace, without the places
/// of this machine.
fn typed(workspace: &Workspace, command: &Command) -> String {
    let (root, target) = (workspace.root(), workspace.target());
    let program = std::iter::once(command.get_program());
    let words = program.chain(command.get_args()).map(|word| {
        let word = word.to_string_lossy();
        let word = word.replace(&*target.to_string_lossy(), "target");
        let word = word.replace(&format!("{}/", root.display()), "");
        match word.contains(char::is_whitespace) {
            true => format!("'{word}'"),
            false => word,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Runs the tool to its end, or ends it when it takes too long.
fn finish(command: &mut Command, limit: Duration) -> Result<()> {
    let begun = Instant::now();
    let mut child = start(command)?;
    let failed = |error| Failure::new(format!("the tool is lost: {error}"));
    loop {
        match child.try_wait().map_err(failed)? {
            Some(ended) if ended.success() => return Ok(()),
            Some(ended) => {
                return Err(Failure::new(format!(
                    "the run failed, or clients held wrong contents ({ended}); see above"
                )));
            }
            None if begun.elapsed() > limit => {
                child.kill().and_then(|()| child.wait()).map_err(failed)?;
                let minutes = limit.as_secs() / 60;
                return Err(Failure::new(format!("it took more than {minutes} minutes")));
            }
            None => thread::sleep(LOOK),
        }
    }
}

/// What is run.
struct Programs {
    tool: PathBuf,
    trunkline: PathBuf,
    /// The tool for clients.
    client_tool: PathBuf,
    /// The program around go-control-plane; none where Go is missing.
    peer: Option<PathBuf>,
    /// The program around grpc-go's client; none where Go is missing.
    grpc_go: Option<PathBuf>,
    /// The program around Armeria's; none where Java or Maven is missing.
    armeria: Option<PathBuf>,
    /// None where it is not installed.
    envoy: Option<PathBuf>,
}

impl Programs {
    /// A quick look takes what tests have built already: its times mean nothing.
    fn build(workspace: &Workspace, quick: bool) -> Result<Self> {
        let built = workspace.build_tools(if quick { "dev" } else { "release" })?;
        Ok(Self {
            tool: built.join("trunkline-bench"),
            client_tool: built.join("trunkline-client-bench"),
            trunkline: built.join("trunkline"),
            grpc_go: go::build(workspace, CLIENT, ".", "bench/grpc-go-client")?,
            armeria: java::build(workspace, ARMERIA, "bench/armeria")?,
            peer: go::build(workspace, PEER, ".", "bench/go-control-plane")?,
            envoy: find_envoy(workspace),
        })
    }

    /// Whether this machine has what a run needs.
    fn can(&self, run: &Run) -> bool {
        match run.server {
            Server::Go(_) => self.peer.is_some(),
            Server::Client(Watcher::GrpcGo) => self.grpc_go.is_some(),
            Server::Client(Watcher::Armeria) => self.armeria.is_some(),
            Server::Trial(trial) => !trial.needs_envoy() || self.envoy.is_some(),
            _ => true,
        }
    }

    fn lab<'a>(&self, workspace: &'a Workspace, quick: bool) -> Lab<'a> {
        let (trunkline, envoy) = (self.trunkline.clone(), self.envoy.clone());
        Lab::new(workspace, trunkline, envoy, quick)
    }

    /// The tool on one core and the server on another, where there are two.
    fn command(
        &self,
        workspace: &Workspace,
        figure: &Figure,
        one: &Run,
        quick: bool,
    ) -> Result<Command> {
        if let Server::Client(watcher) = one.server {
            return Ok(self.client_command(workspace, figure, watcher, quick));
        }
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
            (Server::Trunkline | Server::Trial(_) | Server::Client(_), _)
            | (Server::Go(_), None) => {}
            (Server::Apply, _) => {
                let admin = trial::free()?;
                let program = self.trunkline.display();
                let start = format!(
                    "{program} serve --allow-empty --listen {{address}} --admin {admin} \
                     --log-level error"
                );
                let apply = format!("command={program} apply --file - --admin {admin}");
                command.args(["--driver", &apply, "--start", &start]);
            }
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

    /// The tool for clients on one core, with its server, and the client on
    /// another, where there are two.
    fn client_command(
        &self,
        workspace: &Workspace,
        figure: &Figure,
        watcher: Watcher,
        quick: bool,
    ) -> Command {
        let flags = if quick { figure.quick } else { figure.flags };
        let mut command = match apart(workspace) {
            false => workspace.program(&self.client_tool),
            true => {
                let mut command = workspace.program("taskset");
                command.args(["-c", "0"]).arg(&self.client_tool);
                command
            }
        };
        command.args(flags.split_whitespace());
        if apart(workspace) {
            command.args(["--client-cores", "1"]);
        }
        let client = match (watcher, &self.grpc_go, &self.armeria) {
            (Watcher::GrpcGo, Some(program), _) => format!("{} {CLIENT_FLAGS}", program.display()),
            (Watcher::Armeria, _, Some(folder)) => format!(
                "java -cp {} bench.Tree {{address}} {{prefix}} {{resources}}",
                java::class_path(folder)
            ),
            (Watcher::Delta, ..) => {
                command.args(["--mode", "delta"]);
                return command;
            }
            (Watcher::Sotw | Watcher::GrpcGo | Watcher::Armeria, ..) => return command,
        };
        command.args(["--client", &client]);
        command
    }
}

fn find_envoy(workspace: &Workspace) -> Option<PathBuf> {
    let found = trial::find_envoy(workspace);
    if found.is_none() {
        println!("Envoy is not installed (`cargo xtask setup` does it): it is left out");
    }
    found
}

fn apart(workspace: &Workspace) -> bool {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores > 1 && capture(workspace.program("taskset").arg("--version")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_no_places_of_a_machine() {
        let workspace = Workspace::find().unwrap();
        let mut command = workspace.program(workspace.target().join("release/tool"));
        let files = workspace.target().join("bench/files");
        command.args(["--driver", &format!("files={}", files.display())]);
        command.args(["--start", "serve --listen {address}"]);
        assert_eq!(
            typed(&workspace, &command),
            "target/release/tool --driver files=target/bench/files \
             --start 'serve --listen {address}'"
        );
    }
}
