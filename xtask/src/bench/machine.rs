//! What the benchmarks ran on.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::trial;
use crate::failure::Result;
use crate::workspace::{Workspace, capture};

/// One line: cores, memory where it can be known, versions.
pub(super) fn describe(workspace: &Workspace) -> Result<String> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| gibibytes(&text));
    let memory = memory.map_or_else(String::new, |size| format!("{size} GiB of memory, "));
    let rustc = capture(workspace.program("rustc").arg("--version"))?;
    let kernel = capture(workspace.program("uname").arg("-sr")).ok();
    let go = capture(workspace.program("go").args(["env", "GOVERSION"])).ok();
    let envoy = trial::find_envoy(workspace)
        .and_then(|envoy| trial::envoy_version(workspace, &envoy))
        .map(|version| format!("Envoy {version}"));
    let others: String = [kernel, go, envoy]
        .into_iter()
        .flatten()
        .map(|one| format!(", {}", one.trim()))
        .collect();
    Ok(format!("{cores} cores, {memory}{}{others}", rustc.trim()))
}

/// Programs that want to run, for each core, from which others disturb.
const LOADED: f64 = 0.25;
/// How often the system is asked what runs, and how long it is left alone
/// between.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);
/// How long a machine that is busy is waited for, and how often it is looked at.
const SETTLED: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(500);

/// What to say of a machine that does other work now; none if it does not, or
/// does not tell.
pub(super) fn busy() -> Option<String> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut sum = 0;
    for _ in 0..LOOKS {
        sum += running(&fs::read_to_string("/proc/loadavg").ok()?)?;
        thread::sleep(PAUSE);
    }
    let load = f64::from(sum) / f64::from(LOOKS);
    (load > LOADED * cores as f64)
        .then(|| format!("the machine was busy with other work (load {load:.1} on {cores} cores)"))
}

/// Gives the machine time to end what an earlier run left to it, such as pages
/// of a large program that are given back.
pub(super) fn settle() {
    let begun = Instant::now();
    while busy().is_some() && begun.elapsed() < SETTLED {
        thread::sleep(LOOK);
    }
}

/// Programs that run beside the one that asks.
fn running(loadavg: &str) -> Option<u32> {
    let (running, _) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    Some(running.parse::<u32>().ok()?.saturating_sub(1))
}

/// Versions of go-control-plane and of its gRPC, as they are pinned.
pub(super) fn peer(workspace: &Workspace) -> Result<String> {
    let pins = workspace.read("bench/peers/go-control-plane/go.mod")?;
    let of = |module| pinned(&pins, module).unwrap_or("?");
    let (cache, grpc) = (
        of("github.com/envoyproxy/go-control-plane"),
        of("google.golang.org/grpc"),
    );
    Ok(format!("go-control-plane is {cache} with gRPC {grpc}"))
}

/// The version of a module in a text like `go.mod`.
fn pinned<'a>(pins: &'a str, module: &str) -> Option<&'a str> {
    let mut words = pins.lines().map(str::split_whitespace);
    words.find_map(|mut line| (line.next()? == module).then(|| line.next())?)
}

/// The total of a text like `/proc/meminfo`.
fn gibibytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((kibibytes + (1 << 19)) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_rounded() {
        assert_eq!(gibibytes("A: 1 kB\nMemTotal:  24600000 kB\n"), Some(23));
        assert_eq!(gibibytes("nothing"), None);
    }

    #[test]
    fn the_one_that_asks_is_no_load() {
        assert_eq!(running("3.10 2.00 1.00 3/512 4711\n"), Some(2));
        assert_eq!(running("3.10"), None);
    }

    #[test]
    fn versions_are_those_that_are_pinned() {
        let pins = "require (\n\ta.b/c v1.2.3\n\ta.b/c/d v9.0.0\n)\n";
        assert_eq!(pinned(pins, "a.b/c"), Some("v1.2.3"));
        assert_eq!(pinned(pins, "a.b"), None);
    }
}
