//! What the benchmarks ran on.

use std::fs;
use std::thread;

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
    fn versions_are_those_that_are_pinned() {
        let pins = "require (\n\ta.b/c v1.2.3\n\ta.b/c/d v9.0.0\n)\n";
        assert_eq!(pinned(pins, "a.b/c"), Some("v1.2.3"));
        assert_eq!(pinned(pins, "a.b"), None);
    }
}
