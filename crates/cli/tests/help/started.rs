//! An example that runs.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::examples::Example;
use crate::site::Site;
use crate::support::until;

/// How long an example may take that ends by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// An example that runs in a shell, in a group of processes of its own.
pub(crate) struct Started {
    shell: Child,
    output: PathBuf,
}

impl Started {
    pub(crate) fn start(site: &Site, line: &str, admin: SocketAddr) -> Self {
        let dir = site.dir.path();
        let output = dir.join("output.txt");
        let file = std::fs::File::create(&output).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let shell = Command::new("sh")
            .args(["-c", line])
            .current_dir(dir)
            .env("PATH", format!("{}/bin:{path}", dir.display()))
            .env("HOME", dir)
            .env("TRUNKLINE_ADMIN", admin.to_string())
            .env_remove("VISUAL")
            .env_remove("EDITOR")
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap();
        Self { shell, output }
    }

    fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Waits for the end. A difference is no failure of `diff`.
    pub(crate) fn wait(&mut self, example: &Example) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.shell.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                return Err(format!("does not end; it says: {}", self.output()));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let result = (status.code(), example.command.as_str());
        let is_good = matches!(result, (Some(0), _) | (Some(1), "diff"));
        match is_good {
            true => Ok(()),
            false => Err(format!(
                "{status}: {}",
                self.output().replace('\n', "\n    ")
            )),
        }
    }

    /// Waits until a text is printed, and nothing that is a mistake, and stops
    /// it.
    pub(crate) fn stop_when_seen(
        &mut self,
        text: &str,
        mut change: impl FnMut(usize),
    ) -> Result<(), String> {
        let mut round = 0;
        let seen = until("output", || {
            round += 1;
            if let Some(status) = self.shell.try_wait().unwrap() {
                return Some(Err(format!("{status}: {}", self.output())));
            }
            match self.output().contains(text) {
                true => Some(Ok(())),
                false => {
                    change(round);
                    None
                }
            }
        });
        seen?;
        let output = self.output();
        match output.starts_with("error") {
            true => Err(output),
            false => Ok(()),
        }
    }
}

impl Drop for Started {
    /// Ends all processes of the example, and waits for the shell.
    fn drop(&mut self) {
        let group = Pid::from_child(&self.shell);
        let _ = kill_process_group(group, Signal::TERM);
        let ended = until("the end", || self.shell.try_wait().unwrap());
        let _ = ended;
    }
}
