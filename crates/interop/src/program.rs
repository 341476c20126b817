//! The program `trunkline`, built from these sources.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

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
