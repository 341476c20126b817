//! Finds an Envoy.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// The Envoy that the tests of this project install.
const FOR_TESTS: &str = "target/venv/bin/envoy";

/// Finds the Envoy at the path `given_path`; without one, the first Envoy in
/// `PATH`, or else that of this project's tests. Returns `None` if there is
/// none.
///
/// # Errors
/// The path does not lead to a file.
pub(crate) fn find_envoy(given_path: Option<&Path>) -> Result<Option<PathBuf>> {
    if let Some(given_path) = given_path {
        return match given_path.is_file() {
            true => Ok(Some(given_path.to_owned())),
            false => Err(Failure::wrong(format!(
                "--envoy {}: there is no such file",
                given_path.display()
            ))),
        };
    }

    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::split_paths(&path).map(|dir| dir.join("envoy"));
    let mut candidates = paths.chain([PathBuf::from(FOR_TESTS)]);
    Ok(candidates.find(|path| path.is_file()))
}
