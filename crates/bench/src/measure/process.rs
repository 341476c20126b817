//! What a process has used, as the system tells it.

use std::fs;

use serde::Serialize;

/// A process that is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

/// What a process has used of the machine, or used in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Seconds of CPU in the program itself.
    pub user: f64,
    /// Seconds of CPU in the system on its behalf.
    pub system: f64,
    /// Bytes of memory now.
    pub memory: u64,
    /// The most bytes of memory so far, or since the peak was last reset.
    pub peak: u64,
}

impl Usage {
    /// Returns the seconds of CPU.
    #[must_use]
    pub fn cpu(&self) -> f64 {
        self.user + self.system
    }

    /// Returns what was used since an earlier look; memory is as it is now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
            ..*self
        }
    }
}

/// Ticks of a second in `/proc/PID/stat`: a constant of Linux towards programs.
const TICKS: f64 = 100.0;

impl Process {
    pub(crate) fn new(pid: u32) -> Self {
        Self(pid)
    }

    /// Returns this process.
    pub(crate) fn own() -> Self {
        Self(std::process::id())
    }

    /// Returns what the process has used so far; `None` where the system does
    /// not tell, or if the process is gone.
    pub(crate) fn usage(self) -> Option<Usage> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).ok()?;
        let (user, system) = times(&stat)?;
        Some(Usage {
            user,
            system,
            memory: bytes(&status, "VmRSS:")?,
            peak: bytes(&status, "VmHWM:")?,
        })
    }

    /// Starts the peak of memory anew, where that is allowed.
    pub(crate) fn reset_peak(self) {
        // Without it, a peak is that of the whole life of the process.
        let _ = fs::write(format!("/proc/{}/clear_refs", self.0), "5");
    }
}

/// Reads the user and the system time, in seconds, from `/proc/PID/stat`. The
/// name of a program may hold anything, so what counts begins after its last
/// bracket.
fn times(stat: &str) -> Option<(f64, f64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || -> Option<f64> { Some(fields.next()?.parse::<f64>().ok()? / TICKS) };
    Some((next()?, next()?))
}

/// Reads the bytes that `/proc/PID/status` has under a key.
fn bytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_system_are_read() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20";
        assert_eq!(times(stat), Some((1.5, 0.25)));
        assert_eq!(times("12"), None);
        let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(1 << 20));
        assert_eq!(bytes(status, "VmHWM:"), Some(2 << 20));
    }

    #[test]
    fn a_while_is_a_difference() {
        let before = Usage {
            user: 1.0,
            system: 2.0,
            ..Usage::default()
        };
        let after = Usage {
            user: 1.5,
            system: 2.25,
            memory: 7,
            peak: 9,
        };
        let while_ = after.since(&before);
        assert_eq!((while_.cpu(), while_.memory), (0.75, 7));
    }
}
