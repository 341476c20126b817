//! The memory of the process, and whether it is near its limit.
//!
//! What clients can make the process keep at once takes shares of the limit.
//! Near it, new streams, large answers and names that do not exist are refused;
//! contents are never dropped for memory. A system that runs out of memory ends
//! a process without a word, and with it every stream.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How old a sample of the resident memory may be. A burst of streams is
/// admitted by the same one.
const SAMPLE_AGE: Duration = Duration::from_millis(50);

/// The memory of the process and its limit.
///
/// ```
/// let memory = trunkline::memory::Memory::new(Some(u64::MAX));
/// assert!(!memory.is_near_limit());
/// ```
#[derive(Debug)]
pub struct Memory {
    limit: Option<u64>,
    start: Instant,
    /// The resident bytes at the last sample.
    resident: AtomicU64,
    /// When the next sample is due, in nanoseconds since `start`.
    next_sample: AtomicU64,
}

impl Memory {
    /// Makes the memory of this process, with a limit in bytes. Without a limit
    /// it is never near it.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            start: Instant::now(),
            resident: AtomicU64::new(0),
            next_sample: AtomicU64::new(0),
        }
    }

    /// Returns the limit in bytes, if there is one.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns `bytes`, or the limit divided by `parts` if that is less.
    ///
    /// ```
    /// let memory = trunkline::memory::Memory::new(Some(800));
    /// assert_eq!(memory.share(1000, 8), 100);
    /// assert_eq!(memory.share(10, 8), 10);
    /// ```
    #[must_use]
    pub fn share(&self, bytes: usize, parts: usize) -> usize {
        let part = self.limit.map(|limit| limit / parts as u64);
        let part = part.and_then(|part| usize::try_from(part).ok());
        part.map_or(bytes, |part| part.min(bytes))
    }

    /// Returns whether more than nine tenths of the limit are resident; false
    /// without a limit.
    #[must_use]
    pub fn is_near_limit(&self) -> bool {
        let near = self.limit.map(|limit| limit / 10 * 9);
        near.is_some_and(|near| self.resident() > near)
    }

    /// Returns the resident bytes of the process, of at most 50 milliseconds
    /// ago; zero where the system does not tell.
    #[must_use]
    pub fn resident(&self) -> u64 {
        let now = self.start.elapsed();
        let due = self.next_sample.load(Ordering::Relaxed);
        if nanos(now) >= due {
            let next = nanos(now + SAMPLE_AGE);
            self.next_sample.store(next, Ordering::Relaxed);
            let resident = read_resident().unwrap_or_default();
            self.resident.store(resident, Ordering::Relaxed);
        }
        self.resident.load(Ordering::Relaxed)
    }
}

/// Returns a duration in nanoseconds.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads the resident bytes of this process; `None` where there is no `/proc`.
fn read_resident() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Returns the memory limit of the process's cgroup, of either version: the
/// lowest one on the way from its own group to the root. `None` if there is
/// none.
#[must_use]
pub fn cgroup_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of(Path::new("/sys/fs/cgroup"), &groups)
}

/// Returns the lowest limit of the groups that `/proc/self/cgroup` lists, with
/// the file system of cgroups mounted at `root`.
fn limit_of(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        let group = group.trim_start_matches('/');
        match controllers {
            "" => lowest(root, group, "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                lowest(&root.join("memory"), group, "memory.limit_in_bytes")
            }
            _ => None,
        }
    });
    limits.min()
}

/// Returns the lowest limit that a file has in a group and in all groups above
/// it. In a container the path of a group may be that of the host, which is not
/// mounted; then the root itself is the group.
fn lowest(root: &Path, group: &str, file: &str) -> Option<u64> {
    let own = root.join(group);
    let groups = own.ancestors().take_while(|dir| dir.starts_with(root));
    groups.filter_map(|dir| read_limit(&dir.join(file))).min()
}

/// Reads a limit. Version 2 writes `max` where there is none, and version 1 a
/// number beyond any memory.
fn read_limit(path: &PathBuf) -> Option<u64> {
    const NO_LIMIT: u64 = 1 << 60;
    let text = fs::read_to_string(path).ok()?;
    let limit: u64 = text.trim().parse().ok()?;
    Some(limit).filter(|limit| *limit < NO_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroups(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_lowest_limit_above_a_process_counts() {
        let root = cgroups(&[
            ("memory.max", "max\n"),
            ("pods/memory.max", "1000\n"),
            ("pods/a/memory.max", "2000\n"),
        ]);
        let limit = |groups| limit_of(root.path(), groups);
        assert_eq!(limit("0::/pods/a\n"), Some(1000));
        assert_eq!(limit("0::/\n"), None);
        // A container that is told the path of its host.
        assert_eq!(limit("0::/host/pods/a\n"), None);
    }

    #[test]
    fn a_container_has_the_limit_of_its_root() {
        let root = cgroups(&[("memory.max", "512\n")]);
        assert_eq!(limit_of(root.path(), "0::/kubepods/x\n"), Some(512));
        let root = cgroups(&[
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/a/memory.limit_in_bytes", "700\n"),
        ]);
        let groups = "3:cpu,cpuacct:/a\n2:memory:/a\n";
        assert_eq!(limit_of(root.path(), groups), Some(700));
        assert_eq!(limit_of(root.path(), "2:memory:/b\n"), None);
    }

    #[test]
    fn a_process_is_near_a_limit_that_it_is_beyond() {
        assert!(Memory::new(Some(1)).is_near_limit());
        assert!(!Memory::new(Some(u64::MAX)).is_near_limit());
        assert!(!Memory::new(None).is_near_limit());
        assert!(Memory::new(None).resident() > 1 << 20);
    }
}
