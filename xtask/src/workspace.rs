//! Where the workspace is, and how commands run in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::{env, fs};

use crate::failure::{Failure, Result};

/// The tree that the commands work on.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
    cargo: OsString,
}

impl Workspace {
    /// The workspace that holds this crate, as cargo tells when it runs us.
    pub(crate) fn find() -> Result<Self> {
        let root = env::var_os("CARGO_MANIFEST_DIR")
            .and_then(|own| Path::new(&own).parent().map(Path::to_path_buf))
            .ok_or_else(|| {
                Failure::new("xtask does not know where the workspace is")
                    .remedy("start it as `cargo xtask`")
            })?;
        let target = env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |given| root.join(given));
        Ok(Self {
            root,
            target,
            cargo: env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where everything that is built or installed goes.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// A program that will run at the root of the workspace.
    pub(crate) fn program(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command.current_dir(&self.root);
        command
    }

    /// A cargo command, not yet run.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let mut command = self.program(&self.cargo);
        command.args(args);
        command
    }

    /// Builds the program and the tools that measure or attack it, and returns
    /// where they are. Always all of them: another choice of packages would
    /// have other features, and build everything below them again.
    pub(crate) fn build_tools(&self, profile: &str) -> Result<PathBuf> {
        let tools = ["trunkline-attack", "trunkline-bench", "trunkline-cli"];
        let packages = tools.iter().flat_map(|package| ["--package", package]);
        run(self.cargo(&["build", "--profile", profile]).args(packages))?;
        let folder = match profile {
            "dev" => "debug",
            other => other,
        };
        Ok(self.target().join(folder))
    }

    /// Every file of the tree that git knows or would add, sorted.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let mut git = self.program("git");
        git.args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listed = capture(&mut git)?;
        let mut files: Vec<String> = listed
            .split('\0')
            .filter(|path| !path.is_empty() && self.root.join(path).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The text of one file; a file that is not text reads as empty.
    pub(crate) fn read(&self, path: &str) -> Result<String> {
        let bytes = fs::read(self.root.join(path))
            .map_err(|error| Failure::new(format!("cannot read {path}: {error}")))?;
        Ok(String::from_utf8(bytes).unwrap_or_default())
    }
}

/// Runs a command with its output shown as it comes; any exit code but 0 is a
/// failure.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("`{}`: {status}", shown(command))))
}

/// Runs a command with its output shown as it comes.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    println!("$ {}", shown(command));
    command
        .status()
        .map_err(|error| not_started(command, &error))
}

/// Starts a command with its output shown as it comes.
pub(crate) fn start(command: &mut Command) -> Result<Child> {
    println!("$ {}", shown(command));
    command
        .spawn()
        .map_err(|error| not_started(command, &error))
}

/// Runs a command quietly and gives what it wrote.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .map_err(|error| not_started(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Failure::new(format!(
        "`{}`: {}\n{}",
        shown(command),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    )))
}

/// Runs a command whose progress is shown as it comes, and gives what it wrote
/// as its result, and whether it succeeded.
pub(crate) fn capture_shown(command: &mut Command) -> Result<(String, bool)> {
    println!("$ {}", shown(command));
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| not_started(command, &error))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((text, output.status.success()))
}

fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!("`{}` did not start: {error}", shown(command)))
}

/// The command as a person would type it: the program by its name alone.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy()
        .into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    const LONGEST: usize = 300;
    if let Some((cut, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(cut);
        line.push_str(" ...");
    }
    line
}
