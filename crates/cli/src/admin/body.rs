//! The resources of a body, and how its findings are shown.

use trunkline::checked::{Document, Finding, Item};
use trunkline::{Change, Name, Resource, TypeUrl};
use trunkline_core::hosts::HostName;
use trunkline_core::params::Constraints;
use trunkline_proto::text::{Position, TextError};

use super::error::Detail;

/// A variant of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct VariantId {
    pub(super) name: Name,
    /// `None` is for all clients.
    pub(super) constraints: Option<Constraints>,
}

impl VariantId {
    /// Returns the identity of the variant that a resource is: its name and its
    /// constraints.
    pub(super) fn of(resource: &Resource) -> Self {
        Self {
            name: resource.name.clone(),
            constraints: resource.constraints.clone(),
        }
    }

    /// Returns the identity of a variant as its author wrote it, with the
    /// constraints in its wrapper. Conditions on its parts may have made
    /// several resources of it, which have constraints of their own.
    pub(super) fn as_written(item: &Item) -> Self {
        Self {
            name: item.resource.name.clone(),
            constraints: item.written.clone(),
        }
    }

    /// Returns the route configuration in which a virtual host is written;
    /// `None` if it stands alone.
    pub(super) fn route_of(item: &Item) -> Option<Self> {
        if !item.inside {
            return None;
        }
        let host = HostName::split(item.resource.name.as_str())?;
        Some(Self {
            name: Name::new(host.route),
            constraints: item.written.clone(),
        })
    }

    /// Makes the change that removes the variant.
    pub(super) fn removal(self, type_url: TypeUrl) -> Change {
        Change::RemoveVariant(type_url, self.name, self.constraints)
    }
}

impl Detail {
    /// Makes a mistake, or a warning, at the place of a resource of the
    /// document.
    pub(super) fn at(document: &Document, item: &Item, message: impl ToString) -> Self {
        let place = document.place(item);
        Self {
            field: item.at.field().into(),
            ..Self::on_line(place.line as usize, place.column as usize, message)
        }
    }

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

impl From<Finding> for Detail {
    /// Makes the detail of a finding. Its place keeps the line and the column,
    /// but not the file: a body has none.
    fn from(finding: Finding) -> Self {
        let line = finding.place.line as usize;
        let column = finding.place.column as usize;
        Self {
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
