//! The findings of a server about a body, shown with their places in the files
//! that the body was made of.

use serde::Deserialize;

use crate::report::{Message, Report, Severity, Spot};

/// A mistake or a warning, with its place in the request's body.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Detail {
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    #[serde(default)]
    pub(crate) field: String,
    pub(crate) message: String,
    /// A second place in the body that it is about.
    pub(crate) related: Option<Related>,
}

/// A second place in a body, and what is there.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Related {
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    #[serde(default)]
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Detail {
    /// Writes the finding as a compiler does: place, field, message. The file
    /// is named only if the finding has a line or a field.
    pub(crate) fn in_file(self, file: &str) -> Message {
        let place = spot(file, self.line, self.column);
        let mut text = match &place {
            Some(Spot { line, column, .. }) => format!("{file}:{line}:{column}: "),
            // In a binary file.
            None if !self.field.is_empty() => format!("{file}: "),
            None => String::new(),
        };
        if !self.field.is_empty() {
            text.push_str(&format!("{}: ", self.field));
        }
        let related_place = self.related.and_then(|related_place| {
            let spot = spot(file, related_place.line, related_place.column)?;
            Some((spot, related_place.message))
        });
        Message {
            text: text + &self.message,
            at: place,
            related: related_place,
        }
    }
}

/// Makes the place of a line and a column in a file; `None` without them.
fn spot(file: &str, line: Option<usize>, column: Option<usize>) -> Option<Spot> {
    Some(Spot {
        file: file.to_owned(),
        line: line?,
        column: column?,
    })
}

/// Shows the findings of a server about a body.
pub(crate) struct DetailPrinter<'a> {
    pub(crate) report: &'a Report,
    /// Gives a finding its place in the files of the body.
    pub(crate) locate: &'a dyn Fn(Detail) -> Message,
}

impl DetailPrinter<'_> {
    /// Writes a finding, with the line that it is about.
    pub(crate) fn show(&self, severity: Severity, detail: Detail) -> String {
        self.report.show(severity, &(self.locate)(detail))
    }

    /// Writes a finding in one line.
    pub(crate) fn line(&self, detail: Detail) -> String {
        (self.locate)(detail).text
    }
}
