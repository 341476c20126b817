//! The resources of a body, each with its place, and what is wrong with them.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use trunkline::wire::{self, AcceptError, Accepted, Intake, Mistake, Parent};
use trunkline::{Resource, TypeUrl};
use trunkline_proto::Path;
use trunkline_proto::pieces::{Piece, Pieces};
use trunkline_proto::text::{self, Format, Position, Spot, TextError};

use super::error::Detail;

/// Mistakes that are told of a body, and warnings.
pub(super) const MOST: usize = 100;

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text(Format),
    /// A binary `DiscoveryResponse`.
    Binary,
}

/// A resource of a body.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) type_url: TypeUrl,
    pub(super) resource: Arc<Resource>,
    pub(super) place: Place,
    /// The route configuration that it was written in, by its place in the list.
    pub(super) route: Option<usize>,
}

/// Where a resource stands in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Text { at: Position, field: String },
    Binary(Spot),
}

impl Place {
    pub(super) fn wrong(&self, message: String) -> Detail {
        match self {
            Self::Text { at, field } => Detail {
                line: Some(at.line),
                column: Some(at.column),
                field: field.clone(),
                message,
            },
            Self::Binary(spot) => Detail {
                field: spot.path().to_string(),
                ..Detail::new(message)
            },
        }
    }
}

/// As another one is told of it.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text { at, .. } => write!(f, "{at}"),
            Self::Binary(spot) => write!(f, "{}", spot.path()),
        }
    }
}

/// What a body says.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) given: Vec<Given>,
    pub(super) errors: Vec<Detail>,
    pub(super) warnings: Vec<Detail>,
    intake: Intake,
}

impl Read {
    pub(super) fn new(body: Bytes, form: Form) -> Self {
        let mut read = Self::default();
        match form {
            Form::Binary => read.binary(body),
            Form::Text(format) => match std::str::from_utf8(&body) {
                Ok(text) => read.text(format, text),
                Err(_) => read.wrong(Detail::new(
                    "the body is not text; send YAML or JSON in UTF-8, or say that it is binary",
                )),
            },
        }
        read
    }

    pub(super) fn wrong(&mut self, detail: Detail) {
        if self.errors.len() < MOST {
            self.errors.push(detail);
        }
    }

    fn text(&mut self, format: Format, text: &str) {
        let document = text::read_as(format, "body", text, &wire::text_options());
        self.errors.extend(document.errors.into_iter().map(detail));
        let warnings = document.warnings.into_iter().map(detail);
        self.warnings.extend(warnings);
        for read in &document.resources {
            for error in read.validate() {
                self.wrong(detail(error));
            }
            let place = |inner: &Path| Place::Text {
                at: read.position(inner),
                field: read.path.join(inner).to_string(),
            };
            let host = |index: usize| place(&read.item("virtual_hosts", index));
            match self.intake.text(read) {
                Ok(accepted) => self.take(accepted, place(&Path::default()), host),
                Err(AcceptError::Host { index, source }) => {
                    self.wrong(host(index).wrong(source.to_string()));
                }
                Err(error) => self.wrong(place(&Path::default()).wrong(error.to_string())),
            }
        }
    }

    fn binary(&mut self, body: Bytes) {
        let mut pieces = Pieces::new(Cursor::new(body));
        let mut parent: Option<(Parent, usize)> = None;
        loop {
            match pieces.next() {
                Ok(Some((index, Piece::Whole(any)))) => {
                    let read = self.intake.whole("body", index, any);
                    if let Some((accepted, spot)) = self.ok(read) {
                        let host = |host| {
                            Place::Binary(Spot {
                                host: Some(host),
                                ..spot
                            })
                        };
                        self.take(accepted, Place::Binary(spot), host);
                    }
                }
                Ok(Some((index, Piece::Route(route)))) => {
                    let read = self.intake.route("body", index, *route);
                    parent = self.ok(read).map(|(accepted, parent)| {
                        let (route, spot) = (self.given.len(), parent.spot());
                        self.take(accepted, Place::Binary(spot), |_| Place::Binary(spot));
                        (parent, route)
                    });
                }
                Ok(Some((_, Piece::Host(host, body)))) => {
                    // Without it, it was said what is wrong.
                    let Some((parent, route)) = &parent else {
                        continue;
                    };
                    let read = self.intake.host_of("body", parent, host, body);
                    let route = *route;
                    if let Some((resource, spot)) = self.ok(read) {
                        self.host(resource, Place::Binary(spot), route);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    return self.wrong(Detail::new(format!(
                        "the body is not a binary DiscoveryResponse: {error}"
                    )));
                }
            }
        }
    }

    fn ok<T>(&mut self, read: Result<T, Vec<Mistake>>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(mistakes) => {
                for mistake in mistakes {
                    self.wrong(match mistake {
                        Mistake::Text(error) => detail(*error),
                        Mistake::Accept { spot, error } => {
                            Place::Binary(spot).wrong(error.to_string())
                        }
                    });
                }
                None
            }
        }
    }

    /// A resource, and the virtual hosts that were written in it.
    fn take(&mut self, accepted: Accepted, place: Place, host_at: impl Fn(usize) -> Place) {
        let route = self.given.len();
        self.given.push(Given {
            type_url: accepted.type_url,
            resource: Arc::new(accepted.resource),
            place,
            route: None,
        });
        for (index, host) in accepted.hosts.into_iter().enumerate() {
            self.host(host, host_at(index), route);
        }
    }

    fn host(&mut self, resource: Resource, place: Place, route: usize) {
        self.given.push(Given {
            type_url: self.intake.vhds(),
            resource: Arc::new(resource),
            place,
            route: Some(route),
        });
    }
}

pub(super) fn detail(error: TextError) -> Detail {
    let in_text = error.at != Position::default();
    Detail {
        line: in_text.then_some(error.at.line),
        column: in_text.then_some(error.at.column),
        field: error.path,
        message: error.problem.to_string(),
    }
}
