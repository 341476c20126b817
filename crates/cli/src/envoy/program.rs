//! `envoy --mode validate`, within a time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use super::words::rejection_reason;
use crate::failure::{Failure, Result};

/// How long Envoy may take.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// An Envoy that judges bootstraps.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    /// Its version, such as `1.40.0`.
    pub(super) version: String,
    /// For the bootstrap, which may hold secrets, and the log.
    folder: TempDir,
}

/// What Envoy says of a bootstrap.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It takes all of it.
    Good,
    /// It rejects it, with these words.
    Bad(String),
}

impl Program {
    /// Runs an Envoy to get its version.
    ///
    /// # Errors
    /// The program cannot be run, or is not an Envoy.
    pub(super) async fn open(path: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("trunkline-validate-")
            .tempdir()
            .map_err(|error| Failure::wrong(format!("no folder for Envoy: {error}")))?;
        let mut program = Self {
            path: path.to_owned(),
            version: String::new(),
            folder,
        };
        let (_, text) = program.run(&["--version"]).await?;
        program.version = parse_version(&text).ok_or_else(|| {
            Failure::wrong(format!(
                "--envoy {}: does not tell a version of Envoy; is it an Envoy?",
                path.display()
            ))
        })?;
        Ok(program)
    }

    /// Has Envoy validate a bootstrap.
    ///
    /// # Errors
    /// Envoy cannot be run, or takes too long.
    pub(super) async fn judge(&self, bootstrap: &[u8]) -> Result<Verdict> {
        let path = self.folder.path().join("bootstrap.pb");
        std::fs::write(&path, bootstrap)
            .map_err(|error| Failure::wrong(format!("{}: {error}", path.display())))?;
        let path = path.display().to_string();
        let flags = ["--mode", "validate", "--log-level", "error"];
        let all_flags = [&flags[..], &["--concurrency", "1", "-c", &path]].concat();
        let (status, log) = self.run(&all_flags).await?;
        Ok(match status.success() {
            true => Verdict::Good,
            false => Verdict::Bad(rejection_reason(status, &log, &path)),
        })
    }

    /// Runs Envoy to its end. Returns its exit status, and its output.
    async fn run(&self, flags: &[&str]) -> Result<(ExitStatus, String)> {
        let start_failure = |error: std::io::Error| {
            Failure::wrong(format!("{} does not start: {error}", self.path.display()))
        };
        let log = self.folder.path().join("log.txt");
        let file = File::create(&log).map_err(start_failure)?;
        let mut child = Command::new(&self.path)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(start_failure)?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .map_err(start_failure)?;

        let Ok(exit) = timeout(TIME_LIMIT, child.wait()).await else {
            // An error means that the process has ended meanwhile.
            let _ = child.kill().await;
            return Err(Failure::wrong(format!(
                "Envoy did not end within {} s, and was stopped; validate fewer files at once",
                TIME_LIMIT.as_secs()
            )));
        };

        let text = std::fs::read(&log).map_err(start_failure)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((exit.map_err(start_failure)?, text))
    }
}

/// Returns the version in the output of `envoy --version`, such as
/// `envoy  version: 5f8c/1.40.0/Clean/RELEASE/BoringSSL`.
fn parse_version(text: &str) -> Option<String> {
    let (_, build) = text.split_once("version: ")?;
    let version = build.split('/').nth(1)?;
    Some(version.to_owned()).filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}
