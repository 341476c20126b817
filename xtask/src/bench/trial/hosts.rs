//! Very many virtual hosts get into a server: how long that takes, and what
//! they cost there.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::Process;
use super::{Lab, Way, http};
use crate::failure::Result;
use crate::workspace::capture;

/// A server that takes longer is not coming.
const PATIENCE: Duration = Duration::from_secs(300);

/// A server, and where it is.
pub(super) struct Serving {
    pub(super) process: Process,
    pub(super) xds: SocketAddr,
    pub(super) admin: SocketAddr,
    /// How long it took to be ready.
    pub(super) took: Duration,
}

impl Serving {
    /// Starts `trunkline serve` on these files and waits until it is ready.
    pub(super) fn start(lab: &Lab<'_>, files: &[&Path]) -> Result<Self> {
        let (xds, admin) = (http::free()?, http::free()?);
        let mut serve = lab.trunkline("serve");
        serve.args(["--listen", &xds.to_string(), "--admin", &admin.to_string()]);
        serve.args(["--ready-patience", "5m", "--log-level", "error"]);
        for file in files {
            serve.arg("--config").arg(file);
        }
        if files.is_empty() {
            serve.arg("--allow-empty");
        }
        let log = lab.folder.join("serve.txt");
        let mut process = Process::start("trunkline serve", &mut serve, &log)?;
        let took = process.wait("it is not ready", PATIENCE, || {
            http::is_ready(admin, "/ready")
        })?;
        Ok(Self {
            process,
            xds,
            admin,
            took,
        })
    }

    /// A phase that took so long and ended now.
    pub(super) fn phase(&self, name: &str, took: Duration) -> Result<Value> {
        let (memory, peak) = self.process.memory()?;
        Ok(json!({
            "name": name,
            "seconds": took.as_secs_f64(),
            "server": {"memory": memory, "peak": peak},
        }))
    }
}

pub(super) fn measure(lab: &Lab<'_>, way: Way) -> Result<Value> {
    let count = if lab.quick { 2_000 } else { 1_000_000 };
    let form: &[&str] = match way {
        Way::Inside => &["--inside"],
        Way::Apart | Way::Apply => &[],
    };
    let file = lab.write_hosts(count, form)?;
    let (serving, took) = match way {
        Way::Inside | Way::Apart => {
            let serving = Serving::start(lab, &[&file])?;
            let took = serving.took;
            (serving, took)
        }
        Way::Apply => {
            let serving = Serving::start(lab, &[])?;
            let begun = Instant::now();
            let mut apply = lab.trunkline("apply");
            apply.arg("--file").arg(&file);
            capture(apply.args(["--admin", &serving.admin.to_string()]))?;
            (serving, begun.elapsed())
        }
    };
    let phase = serving.phase("load", took)?;
    // That it is ready says that all are there: the last one is.
    let last = format!("bench/svc-{:07}", count - 1);
    let mut get = lab.trunkline("get");
    get.args(["vhds", &last, "--admin", &serving.admin.to_string()]);
    capture(&mut get)?;
    Ok(json!([phase]))
}
