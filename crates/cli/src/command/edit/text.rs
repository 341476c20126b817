//! The text in the editor: comments on top, then the resources.

use std::path::Path;

use trunkline::checked::Finding;

use crate::client::Detail;
use crate::failure::{Failure, Result};
use crate::output::count_of;

/// How to go on, as comments.
const ADVICE: &str = "\
# Save the file and leave the editor to apply it. If it is empty or as it was, nothing changes.
# These lines at the top are not applied.
";

/// One mistake in a text.
#[derive(Debug)]
pub(super) struct Mistake {
    /// The line in the resources, from one, if it has one.
    line: Option<usize>,
    message: String,
}

impl Mistake {
    /// Makes a mistake without a line.
    pub(super) fn new(message: String) -> Self {
        Self {
            line: None,
            message,
        }
    }
}

impl From<Detail> for Mistake {
    /// Makes the mistake of a detail that the server sent, with the field in
    /// the message.
    fn from(detail: Detail) -> Self {
        // A mistake of the whole resource has no field.
        let message = match detail.field.as_str() {
            "" => detail.message,
            field => format!("{field}: {}", detail.message),
        };
        Self {
            line: detail.line,
            message,
        }
    }
}

impl From<&Finding> for Mistake {
    /// Makes the mistake of a finding of this program, as if the server had
    /// sent it.
    fn from(finding: &Finding) -> Self {
        let line = usize::try_from(finding.place.line).ok();
        Self::from(Detail {
            line: line.filter(|line| *line > 0),
            field: finding.field.to_string(),
            message: finding.fault.to_string(),
            ..Detail::default()
        })
    }
}

/// Returns a text with the description of the resource and the mistakes as
/// comments, before the body. Line numbers of mistakes count from the first
/// line of the result.
pub(super) fn add_head(description: &str, mistakes: &[Mistake], body: &str) -> String {
    let mut head = format!("# {description}\n{ADVICE}");
    if mistakes.is_empty() {
        return head + "#\n" + body;
    }
    let count = count_of(mistakes.len(), "mistake");
    head.push_str(&format!("#\n# {count}; nothing was changed:\n"));

    // Each mistake takes one line, and a line without text ends the head.
    let head_lines = head.lines().count() + mistakes.len() + 1;
    for mistake in mistakes {
        let place = match mistake.line {
            Some(line) => format!("line {}: ", line + head_lines),
            None => String::new(),
        };
        let message = mistake.message.replace(char::is_control, " ");
        head.push_str(&format!("# {place}{message}\n"));
    }
    head + "#\n" + body
}

/// Writes the file of the editor.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| file_failure(path, &error))
}

/// Reads the resources of the file of the editor: all but the comments at the
/// top.
pub(super) fn read_body(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|error| file_failure(path, &error))?;
    let lines = text.split_inclusive('\n');
    Ok(lines.skip_while(|line| line.starts_with('#')).collect())
}

/// Makes the failure of a file that cannot be read or written.
fn file_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::wrong(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_by_its_line_in_the_editor() {
        let mistake = Mistake {
            line: Some(2),
            message: "a: wrong\nagain".to_owned(),
        };
        let text = add_head(
            "cds/a",
            &[mistake, Mistake::new("more".into())],
            "one\ntwo\n",
        );
        let told = text.lines().position(|line| line == "two").unwrap() + 1;
        assert!(
            text.contains(&format!(
                "\n# line {told}: a: wrong again\n# more\n#\none\n"
            )),
            "{text}"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        write(file.path(), &text).unwrap();
        assert_eq!(read_body(file.path()).unwrap(), "one\ntwo\n");
    }
}
