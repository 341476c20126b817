//! Places in documents.
//!
//! There may be a million of them, so that of a resource takes as little memory
//! as possible.

use std::fmt;
use std::sync::Arc;

use trunkline_proto::text;

use super::finding::{Fault, Finding};

/// A place in a document, as a finding shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The document: the path of a file; empty for a body, which has no name.
    pub file: Arc<str>,
    /// The line, from one; zero where there are no lines.
    pub line: u32,
    /// The column in characters, from one.
    pub column: u32,
    /// The field, where there are no lines and it is not given elsewhere.
    pub field: Option<Box<str>>,
}

impl Place {
    /// Returns the place of a document as a whole.
    #[must_use]
    pub fn whole(file: Arc<str>) -> Self {
        Self {
            file,
            line: 0,
            column: 0,
            field: None,
        }
    }
}

impl fmt::Display for Place {
    /// Writes `file:line:column`, or `file: field` for a document without
    /// lines. A file without a name is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        let has_file = !self.file.is_empty();
        if self.line > 0 {
            let colon = if has_file { ":" } else { "" };
            return write!(f, "{colon}{}:{}", self.line, self.column);
        }
        match &self.field {
            Some(field) if has_file => write!(f, ": {field}"),
            Some(field) => f.write_str(field),
            None => Ok(()),
        }
    }
}

/// The place of a resource in its document. The default is a place that is not
/// known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct At(Where);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Where {
    /// Not known any more.
    #[default]
    Unknown,
    /// In a text.
    Text(Box<InText>),
    /// In a binary document.
    Binary {
        /// The index of the resource in the document.
        index: u32,
        /// The index of a virtual host in the resource, or [`NO_HOST`].
        host: u32,
        /// Whether the resource is in a wrapper.
        wrapped: bool,
    },
}

/// The index of a virtual host for a place that is none.
const NO_HOST: u32 = u32::MAX;

/// The place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InText {
    line: u32,
    column: u32,
    field: Box<str>,
}

impl At {
    /// Makes a place with a line and a column, from one; both are zero where
    /// there are no lines. A number that does not fit becomes the maximum.
    pub(super) fn text(at: text::Position, field: String) -> Self {
        Self(Where::Text(Box::new(InText {
            line: saturate(at.line),
            column: saturate(at.column),
            field: field.into(),
        })))
    }

    /// Returns whether the place is known.
    pub(super) fn is_known(&self) -> bool {
        self.0 != Where::Unknown
    }

    /// Returns the place in its document, without the field. In a binary
    /// document it has neither line nor column.
    pub(super) fn place(&self, file: &Arc<str>) -> Place {
        let (line, column) = match &self.0 {
            Where::Text(position) => (position.line, position.column),
            Where::Binary { .. } | Where::Unknown => (0, 0),
        };
        Place {
            line,
            column,
            ..Place::whole(Arc::clone(file))
        }
    }

    /// Returns the place in its document, with the field where there are no
    /// lines.
    pub(super) fn full_place(&self, file: &Arc<str>) -> Place {
        let place = self.place(file);
        let field = (place.line == 0).then(|| self.field());
        Place { field, ..place }
    }

    /// Returns two numbers by which the places of a document are sorted.
    pub(super) fn order(&self) -> (u32, u32) {
        match &self.0 {
            Where::Text(position) => (position.line, position.column),
            // A resource comes before the virtual hosts in it: `NO_HOST`
            // becomes zero.
            Where::Binary { index, host, .. } => (*index, host.wrapping_add(1)),
            Where::Unknown => (0, 0),
        }
    }

    /// Returns the path of the resource in its document, such as `resources[2]`,
    /// or of the virtual host or field in it that the place is. Empty if the
    /// place is unknown, and for a resource that is the whole document.
    #[must_use]
    pub fn field(&self) -> Box<str> {
        match self.0 {
            Where::Unknown => Box::default(),
            Where::Text(ref position) => position.field.clone(),
            Where::Binary {
                index,
                host,
                wrapped,
            } => {
                let spot = text::Spot {
                    index: index as usize,
                    wrapped,
                    host: (host != NO_HOST).then_some(host as usize),
                };
                spot.path().to_string().into()
            }
        }
    }

    /// Makes the finding of a fault at this place.
    pub(super) fn finding(&self, file: &Arc<str>, fault: Fault) -> Finding {
        Finding {
            place: self.place(file),
            field: self.field(),
            fault,
        }
    }
}

impl From<text::Spot> for At {
    fn from(spot: text::Spot) -> Self {
        Self(Where::Binary {
            index: saturate(spot.index),
            host: spot.host.map_or(NO_HOST, saturate),
            wrapped: spot.wrapped,
        })
    }
}

/// Returns a number as `u32`, or the maximum if it does not fit.
pub(super) fn saturate(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_body_has_no_file() {
        let at = |file: &str, line, field: Option<&str>| Place {
            file: file.into(),
            line,
            column: 3,
            field: field.map(Into::into),
        };
        for (place, text) in [
            (at("a.yaml", 2, None), "a.yaml:2:3"),
            (at("a.pb", 0, Some("resources[1]")), "a.pb: resources[1]"),
            (at("a.pb", 0, None), "a.pb"),
            (at("", 2, None), "2:3"),
            (at("", 0, Some("resources[1]")), "resources[1]"),
        ] {
            assert_eq!(place.to_string(), text);
        }
    }
}
