//! What the benchmarks ran on.

use std::fs;
use std::thread;

use crate::failure::Result;
use crate::workspace::{Workspace, capture};

/// One line: cores, memory where it can be known, compiler.
pub(super) fn describe(workspace: &Workspace) -> Result<String> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| gibibytes(&text));
    let memory = memory.map_or_else(String::new, |size| format!("{size} GiB of memory, "));
    let rustc = capture(workspace.program("rustc").arg("--version"))?;
    Ok(format!("{cores} cores, {memory}{}", rustc.trim()))
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
}
