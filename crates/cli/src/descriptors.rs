//! Descriptors of types that are not built in, from files.

use std::path::PathBuf;

use trunkline_proto::descriptor::{self, DescriptorFile};

use crate::failure::{Failure, Result};

/// Adds the types of files to those that are known. Nothing may have used a type
/// before.
///
/// # Errors
/// A file cannot be read, or is no set of descriptors, or contradicts what is
/// known.
pub(crate) fn load(paths: &[PathBuf]) -> Result<()> {
    let refuse = |error: &dyn std::fmt::Display| Failure::usage(format!("--descriptors {error}"));
    let mut files = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let bytes =
            std::fs::read(path).map_err(|error| refuse(&format_args!("{name}: {error}")))?;
        let bytes = bytes.into();
        files.push(DescriptorFile { name, bytes });
    }
    descriptor::extend(&files).map_err(|error| refuse(&error))
}
