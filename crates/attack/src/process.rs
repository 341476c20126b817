//! Memory and CPU of the server, as the system tells them, and its peak while an
//! attack goes on.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

/// How often memory is looked at.
const SAMPLE: Duration = Duration::from_millis(50);

/// Ticks of a second in `/proc/PID/stat`: a constant of Linux towards programs.
const TICKS: f64 = 100.0;

/// A process that is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// The bytes that are resident now; 0 if it is gone.
    pub(crate) fn memory(self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0));
        status.ok().and_then(|text| resident(&text)).unwrap_or(0)
    }

    /// Seconds of CPU so far, of the program and of the system for it; 0 if it
    /// is gone.
    pub(crate) fn cpu(self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0));
        stat.ok().and_then(|text| cpu_seconds(&text)).unwrap_or(0.0)
    }

    /// Seconds that its threads were ready to run and had no core, of those that
    /// it has now; 0 if the system does not tell. Much of it says that the
    /// machine is busy, not that the program is slow.
    pub(crate) fn waited(self) -> f64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0));
        let files = threads.into_iter().flatten().flatten();
        let waits = files.filter_map(|thread| {
            let told = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            wait_seconds(&told)
        });
        waits.sum()
    }

    /// Whether it runs, and is not a corpse that waits for its parent.
    pub(crate) fn is_alive(self) -> bool {
        self.memory() > 0
    }
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

/// The name of a program may hold anything, so what counts begins after its last
/// bracket.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS)
}

/// The second number is nanoseconds in the line for a core.
fn wait_seconds(schedstat: &str) -> Option<f64> {
    let nanos: f64 = schedstat.split_whitespace().nth(1)?.parse().ok()?;
    Some(nanos / 1e9)
}

/// The most memory that a process had while this was held.
#[derive(Debug)]
pub(crate) struct Peak {
    most: Arc<AtomicU64>,
    sampler: JoinHandle<()>,
}

impl Peak {
    /// Begins to look.
    pub(crate) fn watch(process: Process) -> Self {
        let most = Arc::new(AtomicU64::new(process.memory()));
        let seen = Arc::clone(&most);
        let sampler = tokio::spawn(async move {
            loop {
                tokio::time::sleep(SAMPLE).await;
                seen.fetch_max(process.memory(), Ordering::Relaxed);
            }
        });
        Self { most, sampler }
    }

    /// The most bytes so far.
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.sampler.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_system_are_read() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20";
        assert_eq!(cpu_seconds(stat), Some(1.75));
        assert_eq!(wait_seconds("9 2500000000 7\n"), Some(2.5));
        assert_eq!(resident("Name:\tx\nVmRSS:\t 1024 kB\n"), Some(1 << 20));
    }
}
