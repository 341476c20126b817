//! A client as a child process: its log is a file, and it does not outlive its
//! value.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a client may take to stop when asked to.
const GRACE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

/// How much of a log a failure shows.
const TAIL: usize = 30;

/// A running client.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a client that writes to this log.
    pub(crate) fn spawn(command: &mut Command, log: PathBuf) -> Self {
        let open = File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, err) =
            open.unwrap_or_else(|error| panic!("cannot write {}: {error}", log.display()));
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {:?}: {error}", command.get_program()));
        Self { child, log }
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The end of the log, for a message.
    pub(crate) fn tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(TAIL);
        let shown = lines.get(from..).unwrap_or_default().join("\n");
        format!("the end of {}:\n{shown}", self.log.display())
    }

    /// Asks it to stop, and ends it when it does not.
    pub(crate) fn stop(&mut self) -> Option<ExitStatus> {
        if let Some(status) = self.ended() {
            return Some(status);
        }
        // Not yet waited for, so the number is still this child's.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            thread::sleep(PAUSE);
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}
