//! Processes that a trial starts, and what the system says of them.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};

const PAUSE: Duration = Duration::from_millis(5);

/// A process that ends with this.
pub(super) struct Process {
    name: &'static str,
    child: Child,
    begun: Instant,
}

impl Process {
    /// Starts a command; what it says goes to a file.
    pub(super) fn start(name: &'static str, command: &mut Command, log: &Path) -> Result<Self> {
        let failed = |error| Failure::new(format!("{name} did not start: {error}"));
        let log = File::create(log).map_err(failed)?;
        let errors = log.try_clone().map_err(failed)?;
        let begun = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(failed)?;
        Ok(Self { name, child, begun })
    }

    /// Waits until it is as far as `is` says, and how long that took from its
    /// start.
    pub(super) fn wait(
        &mut self,
        what: &str,
        within: Duration,
        is: impl Fn() -> bool,
    ) -> Result<Duration> {
        while !is() {
            let ended = self.child.try_wait().ok().flatten();
            if let Some(status) = ended {
                let name = self.name;
                return Err(Failure::new(format!("{name} ended with {status}: {what}")));
            }
            if self.begun.elapsed() > within {
                let (name, seconds) = (self.name, within.as_secs());
                return Err(Failure::new(format!(
                    "{name} took longer than {seconds} s: {what}"
                )));
            }
            thread::sleep(PAUSE);
        }
        Ok(self.begun.elapsed())
    }

    /// Bytes of memory now, and the most so far.
    pub(super) fn memory(&self) -> Result<(u64, u64)> {
        let file = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&file).unwrap_or_default();
        let sizes = bytes(&status, "VmRSS:").zip(bytes(&status, "VmHWM:"));
        sizes.ok_or_else(|| {
            let name = self.name;
            Failure::new(format!("the system does not tell the memory of {name}"))
        })
    }
}

/// Ticks of a second in `/proc/PID/stat`: a constant of Linux towards programs.
const TICKS: f64 = 100.0;

impl Process {
    /// Seconds of CPU so far, its own and the system's for it.
    pub(super) fn cpu(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        ticks(&stat.unwrap_or_default())
            .map(|ticks| ticks / TICKS)
            .ok_or_else(|| {
                let name = self.name;
                Failure::new(format!("the system does not tell the CPU of {name}"))
            })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// User and system time. The name of a program may hold anything, so what
/// counts begins after its last bracket.
fn ticks(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some(next()? + next()?)
}

fn bytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_what_the_system_says() {
        let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(1 << 20));
        assert_eq!(bytes(status, "VmSwap:"), None);
    }

    #[test]
    fn cpu_is_user_and_system() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20";
        assert_eq!(ticks(stat), Some(175.0));
        assert_eq!(ticks("12"), None);
    }

    #[test]
    fn a_process_that_ends_is_not_waited_for() {
        let log = std::env::temp_dir().join(format!("xtask-{}.txt", std::process::id()));
        let mut sh = Command::new("sh");
        let mut process = Process::start("sh", sh.args(["-c", "exit 3"]), &log).unwrap();
        let long = Duration::from_secs(60);
        let failure = process.wait("to be there", long, || false).unwrap_err();
        let _ = fs::remove_file(log);
        assert!(failure.to_string().contains("exit status: 3"), "{failure}");
    }
}
