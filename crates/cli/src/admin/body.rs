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
    /// Returns the variant that a resource is.
    pub(super) fn of(resource: &Resource) -> Self {
        Self {
            name: resource.name.clone(),
            constraints: resource.constraints.clone(),
        }
    }

    /// Returns the variant as its author wrote it. Conditions on its parts may
    /// have made several resources of it.
    pub(super) fn written(item: &Item) -> Self {
        Self {
            name: item.resource.name.clone(),
            constraints: item.written.clone(),
        }
    }

    /// Returns the route configuration in which a virtual host is written;
    /// `None` if it stands alone.
    pub(super) fn route_of(item: &Item) -> Option<Self> {
        let host = HostName::split(item.resource.name.as_str()).filter(|_| item.inside)?;
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
    /// Makes a mistake, or a warning, at the place of a resource.
    pub(super) fn at(document: &Document, item: &Item, message: impl ToString) -> Self {
        let place = document.place(item);
        Self {
            field: item.at.field().into(),
            ..Self::on_line(place.line as usize, place.column as usize, message)
        }
    }

    /// Makes a mistake on a line; line zero is no line.
    fn on_line(line: usize, column: usize, message: impl ToString) -> Self {
        Self {
            line: (line != 0).then_some(line),
            column: (line != 0).then_some(column),
            ..Self::new(message)
        }
    }
}

impl From<Finding> for Detail {
    fn from(finding: Finding) -> Self {
        let (line, column) = (finding.place.line as usize, finding.place.column as usize);
        Self {
            field: finding.field.into(),
            ..Self::on_line(line, column, finding.fault)
        }
    }
}

impl From<TextError> for Detail {
    fn from(error: TextError) -> Self {
        let Position { line, column, .. } = error.at;
        Self {
            field: error.path,
            ..Self::on_line(line, column, error.problem)
        }
    }
}
