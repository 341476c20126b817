//! The user's editor.

use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};

/// The editor of those who chose none.
const DEFAULT: &str = "vi";

/// Opens a file in the editor that `VISUAL` or `EDITOR` names, and waits until
/// the editor ends. The variable may have flags, such as `code --wait`.
///
/// # Errors
/// The editor does not start, or fails.
pub(super) fn run_editor(path: &Path) -> Result<()> {
    let editor_setting = ["VISUAL", "EDITOR"].into_iter().find_map(|variable| {
        let editor = std::env::var(variable).ok()?;
        (!editor.trim().is_empty()).then_some(editor)
    });
    let editor = editor_setting.unwrap_or_else(|| DEFAULT.to_owned());
    let exit = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("trunkline")
        .arg(path)
        .status();
    let reason = match exit {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Failure::wrong(format!(
        "the editor {editor:?} failed ({reason}), so nothing was changed; VISUAL or EDITOR names \
         another one"
    )))
}
