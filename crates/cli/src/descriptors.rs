//! Descriptors of types that are not built in, from files.

use std::path::PathBuf;

use trunkline_proto::descriptor::{self, DescriptorFile};

use crate::failure::{Failure, Result};

/// Adds the types in files of descriptors to the known types. This must happen
/// before any use of a type.
///
/// # Errors
/// A file cannot be read, is not a set of descriptors, or contradicts a known
/// type.
pub(crate) fn load(paths: &[PathBuf]) -> Result<()> {
    let invalid_flag =
        |error: &dyn std::fmt::Display| Failure::usage(format!("--descriptors {error}"));
    let mut files = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let bytes =
            std::fs::read(path).map_err(|error| invalid_flag(&format_args!("{name}: {error}")))?;
        let bytes = bytes.into();
        files.push(DescriptorFile { name, bytes });
    }
    descriptor::extend(&files).map_err(|error| invalid_flag(&error))
}
