//! Tries a binary: it is static, tells its version, validates files, and serves
//! what it is asked for.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture};

const RESOURCES: &str = "examples/envoy/resources";

/// The beginnings of the paths of dynamic linkers.
const LINKERS: [&[u8]; 2] = [b"/lib/ld-", b"/lib64/ld-"];

/// Checks that a binary names no dynamic linker.
pub(super) fn check_static(binary: &Path) -> Result<()> {
    let bytes = fs::read(binary)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", binary.display())))?;
    let names = |linker: &&[u8]| bytes.windows(linker.len()).any(|window| window == *linker);
    match LINKERS.iter().any(names) {
        true => Err(Failure::new(format!("{} is not static", binary.display()))),
        false => Ok(()),
    }
}

/// Runs a binary, by an emulator if there is one.
pub(super) fn run(workspace: &Workspace, binary: &Path, emulator: Option<PathBuf>) -> Result<()> {
    let program = |args: &[&str]| {
        let mut command = match &emulator {
            Some(emulator) => {
                let mut command = workspace.program(emulator);
                command.arg(binary);
                command
            }
            None => workspace.program(binary),
        };
        command.args(args);
        command
    };
    let expect = |output: String, text: &str| match output.contains(text) {
        true => Ok(()),
        false => Err(Failure::new(format!("{text:?} is not in {output:?}"))),
    };

    expect(
        capture(&mut program(&["--version"]))?,
        env!("CARGO_PKG_VERSION"),
    )?;
    expect(
        capture(&mut program(&["validate", RESOURCES]))?,
        "are valid",
    )?;
    let any = "127.0.0.1:0";
    let serve = [
        "serve", "--config", RESOURCES, "--listen", any, "--admin", any,
    ];
    let mut server = Server::start(program(&serve).args(["--log-format", "json"]))?;
    let admin = server.wait_until_ready()?;
    let get = ["get", "cds", "--admin", &admin];
    expect(capture(&mut program(&get))?, "backend")?;
    let how = emulator.map_or_else(String::new, |path| format!(" by {}", path.display()));
    println!(
        "{} was run{how}: version, validate, serve and get",
        binary.display()
    );
    Ok(())
}

/// A server that ends with its value.
struct Server(Child);

impl Server {
    fn start(command: &mut Command) -> Result<Self> {
        let child = command.stderr(Stdio::piped()).spawn();
        child
            .map(Self)
            .map_err(|error| Failure::new(format!("the server did not start: {error}")))
    }

    /// Reads the log until the server is ready, and returns its admin address.
    fn wait_until_ready(&mut self) -> Result<String> {
        let log = self.0.stderr.take().into_iter();
        let mut said = String::new();
        for line in log.flat_map(|log| BufReader::new(log).lines().map_while(std::io::Result::ok)) {
            let entry: Value = serde_json::from_str(&line).unwrap_or_default();
            if let ("ready", Some(admin)) = (
                entry["message"].as_str().unwrap_or_default(),
                entry["admin"].as_str(),
            ) {
                return Ok(admin.to_owned());
            }
            said.push_str(&line);
            said.push('\n');
        }
        Err(Failure::new(format!("the server ended:\n{said}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
