//! A program as a client that reports in lines: most are Python scripts, in the
//! environment where gRPC is installed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::place;
use crate::process::Process;

const PAUSE: Duration = Duration::from_millis(10);

/// A running script; it ends when dropped.
#[derive(Debug)]
pub struct Script {
    process: Process,
}

impl Script {
    /// Starts a script with arguments and variables of its environment. What
    /// it prints goes to a file.
    ///
    /// # Panics
    ///
    /// When Python is not installed.
    #[must_use]
    pub fn start(script: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let name = script.file_stem().unwrap_or_default().to_string_lossy();
        let mut command = Self::python(script);
        command.args(arguments).envs(variables.iter().copied());
        Self::run(&name, &mut command)
    }

    /// The command that runs a script, without arguments.
    ///
    /// # Panics
    ///
    /// When Python is not installed.
    #[must_use]
    pub fn python(script: &Path) -> Command {
        let mut command = Command::new(place::python());
        // No folder of compiled files beside the script.
        command.arg("-B").arg(script);
        command
    }

    /// Starts any program, whose log is found by this name.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn run(name: &str, command: &mut Command) -> Self {
        let folder = place::scratch(name);
        Self {
            process: Process::spawn(command, folder.join("log.txt")),
        }
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// Waits for a line that begins like this and gives its rest.
    ///
    /// # Panics
    ///
    /// When it does not come in time, or the script ends before.
    pub fn wait_for_line(&mut self, start: &str, within: Duration) -> String {
        let deadline = Instant::now() + within;
        loop {
            let ended = self.process.ended();
            let text = self.text();
            // A line is whole when it ends.
            let lines = text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'));
            let found = lines.filter_map(|line| line.strip_prefix(start)).next();
            if let Some(rest) = found {
                return rest.trim_end().to_owned();
            }
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "no line {start:?}, ended: {ended:?}; {}",
                self.process.tail()
            );
            thread::sleep(PAUSE);
        }
    }

    /// Waits until it ends by itself, and gives its exit code.
    ///
    /// # Panics
    ///
    /// When it does not end in time.
    pub fn finish(&mut self, within: Duration) -> Option<i32> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.process.ended() {
                return status.code();
            }
            assert!(
                Instant::now() < deadline,
                "still running after {within:?}; {}",
                self.process.tail()
            );
            thread::sleep(PAUSE);
        }
    }

    /// All that it printed.
    #[must_use]
    pub fn text(&self) -> String {
        fs::read_to_string(self.process.log()).unwrap_or_default()
    }
}
