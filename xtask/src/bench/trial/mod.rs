//! What the tool cannot measure: the program `trunkline` with very many virtual
//! hosts, and a real Envoy in front of it.
//!
//! A trial is a function that starts what it needs, measures, and gives a
//! report of the same shape as the tool's. All that it starts ends with it.
//!
//! | file | concern |
//! |---|---|
//! | `hosts` | a million virtual hosts get into a server |
//! | `envoy` | a proxy in front of that server, on demand or with all of them |
//! | `config` | what that proxy is given |
//! | `process`, `http` | what both need |

mod config;
mod envoy;
mod hosts;
mod http;
mod process;

pub(super) use http::free;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::machine;
use super::samples::make;
use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture, run};

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    /// Virtual hosts get into a server, in one of three ways.
    Hosts(Way),
    /// Envoy with virtual hosts, on demand or all of them.
    Envoy(Routes),
}

/// How virtual hosts get into a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From a file, inside of their route configuration.
    Inside,
    /// From a file, each a resource of its own.
    Apart,
    /// By `apply`, each a resource of its own.
    Apply,
}

/// How Envoy gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Routes {
    OnDemand,
    Whole,
}

impl Trial {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hosts(Way::Inside) => "from a file, in their route configuration",
            Self::Hosts(Way::Apart) => "from a file, each on its own",
            Self::Hosts(Way::Apply) => "by `apply`",
            Self::Envoy(Routes::OnDemand) => "on demand, of 1 000 000",
            Self::Envoy(Routes::Whole) => "all 100 000, by RDS",
        }
    }

    pub(super) fn slug(self) -> &'static str {
        match self {
            Self::Hosts(Way::Inside) => "inside",
            Self::Hosts(Way::Apart) => "apart",
            Self::Hosts(Way::Apply) => "apply",
            Self::Envoy(Routes::OnDemand) => "demand",
            Self::Envoy(Routes::Whole) => "whole",
        }
    }

    /// Whether it shows what Trunkline does, and not what is without it.
    pub(super) fn is_ours(self) -> bool {
        self != Self::Envoy(Routes::Whole)
    }

    pub(super) fn needs_envoy(self) -> bool {
        matches!(self, Self::Envoy(_))
    }

    /// Measures, and gives the report.
    pub(super) fn measure(self, lab: &Lab<'_>) -> Result<Value> {
        lab.clear()?;
        let busy = machine::busy();
        let phases = match self {
            Self::Hosts(way) => hosts::measure(lab, way),
            Self::Envoy(routes) => envoy::measure(lab, routes),
        };
        // It is large.
        let _ = fs::remove_file(lab.hosts());
        let phases = phases.map_err(|failure| {
            failure.remedy("what it said is under target/bench/trial, until the next trial")
        })?;
        let _ = fs::remove_dir_all(&lab.folder);
        Ok(json!({
            "phases": phases,
            "warnings": busy.into_iter().collect::<Vec<_>>(),
        }))
    }
}

/// What a trial works with.
pub(super) struct Lab<'a> {
    workspace: &'a Workspace,
    trunkline: PathBuf,
    envoy: Option<PathBuf>,
    /// For its files, and gone after it unless it fails.
    folder: PathBuf,
    /// Small numbers, for a quick look.
    quick: bool,
}

impl<'a> Lab<'a> {
    pub(super) fn new(
        workspace: &'a Workspace,
        trunkline: PathBuf,
        envoy: Option<PathBuf>,
        quick: bool,
    ) -> Self {
        Self {
            workspace,
            trunkline,
            envoy,
            folder: workspace.target().join("bench/trial"),
            quick,
        }
    }

    fn clear(&self) -> Result<()> {
        let _ = fs::remove_dir_all(&self.folder);
        make(&self.folder)
    }

    /// The program with a command of its own.
    fn trunkline(&self, command: &str) -> Command {
        let mut program = self.workspace.program(&self.trunkline);
        program.arg(command);
        program
    }

    /// The file of virtual hosts.
    fn hosts(&self) -> PathBuf {
        self.folder.join("hosts.pb")
    }

    /// Writes so many virtual hosts to their file, in a form that the tool has.
    fn write_hosts(&self, count: usize, form: &[&str]) -> Result<PathBuf> {
        let file = self.hosts();
        let mut bench = self.trunkline("bench");
        bench.arg("--write").arg(&file);
        bench
            .args(["--virtual-hosts", &count.to_string()])
            .args(form);
        run(&mut bench)?;
        Ok(file)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.folder.join(name);
        let failed = |error| Failure::new(format!("cannot write {}: {error}", file.display()));
        fs::write(&file, text).map_err(failed)?;
        Ok(file)
    }
}

/// The Envoy that `cargo xtask setup` installs, or that a variable names, as
/// for interop tests; none where there is none.
pub(super) fn find_envoy(workspace: &Workspace) -> Option<PathBuf> {
    let named = std::env::var_os("TRUNKLINE_ENVOY").map(PathBuf::from);
    let installed = || {
        let pythons = fs::read_dir(workspace.target().join("venv/lib")).ok()?;
        let envoy = |python: fs::DirEntry| {
            let packages = python.path().join("site-packages");
            packages.join("envoy/_bin/envoy")
        };
        let mut all = pythons.flatten().map(envoy);
        all.find(|binary| binary.is_file())
    };
    named.or_else(installed)
}

/// Its version, as it tells it: the third word between slashes.
pub(super) fn envoy_version(workspace: &Workspace, envoy: &Path) -> Option<String> {
    let said = capture(workspace.program(envoy).arg("--version")).ok()?;
    version_in(&said).map(str::to_owned)
}

fn version_in(said: &str) -> Option<&str> {
    said.trim().rsplit(' ').next()?.split('/').nth(1)
}

/// A failure of the system, in words.
fn because(what: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::new(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envoys_version_is_found_in_what_it_says() {
        let said = "\nenvoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL\n";
        assert_eq!(version_in(said), Some("1.40.0"));
        assert_eq!(version_in("nothing"), None);
    }
}
