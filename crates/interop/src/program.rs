//! The program `trunkline`, built from these sources, and its server.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

use crate::place;

/// Builds the program, once in a process, and returns where it is. Tests of
/// this crate cannot name it to cargo, because it is the program of another
/// crate; in the gate it was built before.
///
/// # Panics
///
/// When it cannot be built.
#[must_use]
pub fn trunkline() -> PathBuf {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--package", "trunkline-cli", "--bin", "trunkline"]);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        let status = cargo
            .status()
            .unwrap_or_else(|error| panic!("cannot start {cargo:?}: {error}"));
        assert!(status.success(), "{cargo:?} ended with {status}");
        place::target().join("debug/trunkline")
    });
    BUILT.clone()
}

/// `trunkline serve` as a process, on free ports; it is ended when it is
/// dropped.
#[derive(Debug)]
pub struct Served {
    child: Child,
    /// The address of xDS.
    pub listen: SocketAddr,
    /// The address of the admin API.
    pub admin: SocketAddr,
}

impl Served {
    /// Starts a server with these flags beside its addresses, and waits until
    /// it is ready.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub fn start(flags: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let mut program = Command::new(trunkline());
        program
            .args(["--log-format", "json", "serve"])
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(flags)
            .stderr(Stdio::piped());
        let mut child = program
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {program:?}: {error}"));
        let log = child
            .stderr
            .take()
            .into_iter()
            .flat_map(|log| BufReader::new(log).lines());
        let mut lines = log.map_while(Result::ok);
        let ready = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line).ok()?;
            (line["message"] == "ready").then_some(line)
        });
        // Nobody else reads what it logs.
        std::thread::spawn(move || lines.for_each(drop));

        let address =
            |key: &str| -> Option<SocketAddr> { ready.as_ref()?[key].as_str()?.parse().ok() };
        let (Some(listen), Some(admin)) = (address("listen"), address("admin")) else {
            panic!("{program:?} did not become ready");
        };
        Self {
            child,
            listen,
            admin,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
