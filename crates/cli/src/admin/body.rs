//! How findings about a body are shown.

use trunkline::checked::{Finding, Place};
use trunkline_proto::text::{Position, TextError};

use super::error::{Detail, Related};

impl Detail {
    /// Makes a mistake, or a warning, on a line; without a place if the line is
    /// zero.
    fn on_line(line: usize, column: usize, message: impl ToString) -> Self {
        Self {
            line: (line != 0).then_some(line),
            column: (line != 0).then_some(column),
            ..Self::new(message)
        }
    }
}

impl Related {
    /// Makes the second place of a finding, with a line and a column if the
    /// place has them.
    fn new(place: &Place, message: &str) -> Self {
        let has_line = place.line != 0;
        Self {
            line: has_line.then_some(place.line as usize),
            column: has_line.then_some(place.column as usize),
            field: place.field.as_deref().unwrap_or_default().to_owned(),
            message: message.to_owned(),
        }
    }
}

impl From<Finding> for Detail {
    /// Makes the detail of a finding. Its place keeps the line and the column,
    /// but not the file: a body has none.
    fn from(finding: Finding) -> Self {
        let line = finding.place.line as usize;
        let column = finding.place.column as usize;
        let related = finding.fault.related();

        // A place with a file's name is outside of this body.
        let related = related.filter(|(place, _)| place.file.is_empty());
        Self {
            related: related.map(|(place, message)| Related::new(place, message)),
            field: finding.field.into(),
            ..Self::on_line(line, column, finding.fault)
        }
    }
}

impl From<TextError> for Detail {
    /// Makes the detail of a mistake in a text, at the place of its path.
    fn from(error: TextError) -> Self {
        let Position { line, column, .. } = error.at;
        Self {
            field: error.path,
            ..Self::on_line(line, column, error.problem)
        }
    }
}
