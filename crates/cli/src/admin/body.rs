//! The resources of a body, each with its place, and their mistakes.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use trunkline::wire::{self, Accepted, Doubt, Intake, Mistake, Parent};
use trunkline::{Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;
use trunkline_proto::Path;
use trunkline_proto::pieces::{Piece, Pieces};
use trunkline_proto::text::{self, Format, Position, Spot, TextError};

use super::error::Detail;

/// The maximum of reported mistakes in a body, and of warnings.
pub(super) const MOST: usize = 100;

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text(Format),
    /// A binary `DiscoveryResponse`.
    Binary,
}

/// A resource of a body.
#[derive(Debug)]
pub(super) struct BodyResource {
    pub(super) type_url: TypeUrl,
    pub(super) resource: Arc<Resource>,
    pub(super) place: Place,
    /// The constraints in its wrapper, or in that of its route configuration.
    /// Without them, the body has the whole of its name.
    pub(super) written: Option<Constraints>,
    /// The route configuration in which it was written.
    pub(super) route: Option<Author>,
}

/// A route configuration as it was written, with its constraints.
pub(super) type Author = (Name, Option<Constraints>);

/// The place of a resource in a body.
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

/// The place as another mistake mentions it.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text { at, .. } => write!(f, "{at}"),
            Self::Binary(spot) => write!(f, "{}", spot.path()),
        }
    }
}

/// The contents of a body.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) given: Vec<BodyResource>,
    pub(super) errors: Vec<Detail>,
    pub(super) warnings: Vec<Detail>,
    /// Names of which the body has the whole and no variant is left.
    pub(super) empty: Vec<(TypeUrl, Name)>,
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
                Ok(accepted) => {
                    for (inner, doubt) in &accepted.doubts {
                        self.doubtful(place(inner).wrong(doubt.to_string()));
                    }
                    self.take(accepted, place(&Path::default()), host);
                }
                Err(error) => {
                    let (inner, error) = error.place();
                    self.wrong(place(&inner).wrong(error.to_string()));
                }
            }
        }
    }

    fn binary(&mut self, body: Bytes) {
        let mut pieces = Pieces::new(Cursor::new(body));
        let mut parent: Option<(Parent, Author)> = None;
        loop {
            match pieces.next() {
                Ok(Some((index, Piece::Whole(any)))) => {
                    let read = self.intake.whole("body", index, any);
                    if let Some((accepted, spot)) = self.ok(read) {
                        self.doubts(spot, &accepted.doubts);
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
                        let spot = parent.spot();
                        self.doubts(spot, &accepted.doubts);
                        let author = self.author(&accepted);
                        self.take(accepted, Place::Binary(spot), |_| Place::Binary(spot));
                        (parent, author)
                    });
                }
                Ok(Some((_, Piece::Host(host, body)))) => {
                    // Without a parent, its mistake was reported.
                    let Some((parent, author)) = &parent else {
                        continue;
                    };
                    let author = author.clone();
                    let read = self.intake.host_of("body", parent, host, body);
                    if let Some(hosted) = self.ok(read) {
                        self.doubts(hosted.spot, &hosted.doubts);
                        for resource in hosted.resources {
                            self.host(resource, Place::Binary(hosted.spot), author.clone());
                        }
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

    /// Takes in a resource, and the virtual hosts that were written in it.
    fn take(&mut self, accepted: Accepted, place: Place, host_at: impl Fn(usize) -> Place) {
        let author = self.author(&accepted);
        if accepted.written.is_none() && accepted.variants.is_empty() {
            let name = accepted.name.clone();
            self.empty.push((accepted.type_url.clone(), name));
        }
        for resource in accepted.variants {
            self.given.push(BodyResource {
                type_url: accepted.type_url.clone(),
                resource: Arc::new(resource),
                place: place.clone(),
                written: accepted.written.clone(),
                route: None,
            });
        }
        for host in accepted.hosts {
            self.host(host.resource, host_at(host.index), author.clone());
        }
    }

    fn author(&self, accepted: &Accepted) -> Author {
        (accepted.name.clone(), accepted.written.clone())
    }

    fn host(&mut self, resource: Resource, place: Place, author: Author) {
        let type_url = self.intake.vhds();
        self.given.push(BodyResource {
            type_url,
            resource: Arc::new(resource),
            place,
            written: author.1.clone(),
            route: Some(author),
        });
    }

    fn doubts(&mut self, spot: Spot, doubts: &[(Path, Doubt)]) {
        for (inner, doubt) in doubts {
            self.doubtful(Detail {
                field: spot.path().join(inner).to_string(),
                ..Detail::new(doubt)
            });
        }
    }

    fn doubtful(&mut self, detail: Detail) {
        if self.warnings.len() < MOST {
            self.warnings.push(detail);
        }
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
