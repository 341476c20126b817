//! The resources of a file without a mistake, with their places.
//!
//! There may be a million, so a place takes as little memory as possible.

use std::sync::Arc;

use trunkline::{Resource, TypeUrl};
use trunkline_proto::text;

use crate::problem::{Fault, Place, Problem};

/// A resource and its place.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) type_url: TypeUrl,
    pub(crate) resource: Arc<Resource>,
    pub(crate) at: At,
}

/// The place of a resource in its file.
#[derive(Debug)]
pub(crate) enum At {
    Text(Box<InText>),
    Binary {
        index: u32,
        /// The index of a virtual host in the resource, or [`NO_HOST`].
        host: u32,
        wrapped: bool,
    },
}

/// The index of a virtual host for a place that is none.
const NO_HOST: u32 = u32::MAX;

/// The place in a text.
#[derive(Debug)]
pub(crate) struct InText {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) field: Box<str>,
}

impl At {
    /// Makes a place in a text; a number that does not fit becomes the maximum.
    pub(crate) fn text(at: text::Position, field: String) -> Self {
        Self::Text(Box::new(InText {
            line: number(at.line),
            column: number(at.column),
            field: field.into(),
        }))
    }

    /// Returns the place in its file, without the field.
    fn place(&self, file: &Arc<str>) -> Place {
        let (line, column) = match self {
            Self::Text(at) => (at.line, at.column),
            Self::Binary { .. } => (0, 0),
        };
        Place {
            line,
            column,
            ..Place::whole(Arc::clone(file))
        }
    }

    /// Returns the field of the resource, such as `resources[2]`.
    fn field(&self) -> Box<str> {
        match *self {
            Self::Text(ref at) => at.field.clone(),
            Self::Binary {
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

    /// Reports a fault at this place.
    pub(crate) fn problem(&self, file: &Arc<str>, fault: Fault) -> Problem {
        Problem {
            place: self.place(file),
            field: self.field(),
            fault,
        }
    }
}

impl From<text::Spot> for At {
    fn from(spot: text::Spot) -> Self {
        Self::Binary {
            index: number(spot.index),
            host: spot.host.map_or(NO_HOST, number),
            wrapped: spot.wrapped,
        }
    }
}

/// The number, or the maximum if it does not fit.
pub(crate) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The contents of a file without a mistake.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) file: Arc<str>,
    pub(crate) items: Vec<Item>,
    /// Whether one of them has constraints.
    pub(crate) constrained: bool,
}

impl Parsed {
    /// The contents of a file of which nothing was read yet.
    pub(crate) fn empty(file: &Arc<str>) -> Self {
        Self {
            file: Arc::clone(file),
            items: Vec::new(),
            constrained: false,
        }
    }

    pub(crate) fn push(&mut self, item: Item) {
        self.constrained |= item.resource.constraints.is_some();
        self.items.push(item);
    }

    /// Returns the place of one of its items, with the field where there are no
    /// lines.
    pub(crate) fn place(&self, item: &Item) -> Place {
        let place = item.at.place(&self.file);
        let field = (place.line == 0).then(|| item.at.field());
        Place { field, ..place }
    }

    pub(crate) fn problem(&self, item: &Item, fault: Fault) -> Problem {
        item.at.problem(&self.file, fault)
    }
}
