//! The user's editor.

use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};

/// The editor of those who chose none.
const DEFAULT: &str = "vi";

/// Opens a file in the editor that the environment names, and waits for its
/// end. The variable may have flags, such as `code --wait`.
///
/// # Errors
/// The editor does not start, or fails.
pub(super) fn open(path: &Path) -> Result<()> {
    let chosen = ["VISUAL", "EDITOR"].into_iter().find_map(|variable| {
        let editor = std::env::var(variable).ok()?;
        (!editor.trim().is_empty()).then_some(editor)
    });
    let editor = chosen.unwrap_or_else(|| DEFAULT.to_owned());
    let ended = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("trunkline")
        .arg(path)
        .status();
    let how = match ended {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Failure::wrong(format!(
        "the editor {editor:?} failed ({how}), so nothing was changed; VISUAL or EDITOR names \
         another one"
    )))
}
