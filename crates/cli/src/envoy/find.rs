//! Finds an Envoy.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// The Envoy that the tests of this project install.
const FOR_TESTS: &str = "target/venv/bin/envoy";

/// Finds the Envoy that is `named`, or else the first one in the `PATH`, or
/// else that of this project's tests; returns `None` if there is none.
///
/// # Errors
/// The named one is not a file.
pub(crate) fn find(named: Option<&Path>) -> Result<Option<PathBuf>> {
    if let Some(named) = named {
        return match named.is_file() {
            true => Ok(Some(named.to_owned())),
            false => Err(Failure::wrong(format!(
                "--envoy {}: there is no such file",
                named.display()
            ))),
        };
    }

    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|dir| dir.join("envoy"));
    let mut candidates = installed.chain([PathBuf::from(FOR_TESTS)]);
    Ok(candidates.find(|path| path.is_file()))
}
