//! The resources of a body, each with its place, and their mistakes.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use trunkline::wire::{self, Accepted, Doubt, Intake, Mistake, Parent};
use trunkline::{Change, Name, Resource, TypeUrl};
use trunkline_core::params::Constraints;
use trunkline_proto::Path;
use trunkline_proto::discovery::Any;
use trunkline_proto::pieces::{Piece, Pieces, Route};
use trunkline_proto::text::{self, Format, Position, Spot, TextError};

use super::error::Detail;

/// The maximum of reported mistakes in a body, and of warnings.
pub(super) const MOST: usize = 100;

/// The name of a body in mistakes, where a file would have its own.
const FILE: &str = "body";

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
    /// The route configuration in which it was written, with the constraints of
    /// that one's wrapper.
    pub(super) route: Option<VariantId>,
}

impl BodyResource {
    /// Returns the variant as its author wrote it. Conditions on its parts may
    /// have made several resources of it.
    pub(super) fn written_variant(&self) -> VariantId {
        VariantId {
            name: self.resource.name.clone(),
            constraints: self.written.clone(),
        }
    }
}

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

    /// Makes the change that removes the variant.
    pub(super) fn removal(self, type_url: TypeUrl) -> Change {
        Change::RemoveVariant(type_url, self.name, self.constraints)
    }
}

/// The place of a resource in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Text { at: Position, field: String },
    Binary(Spot),
}

impl Place {
    /// Makes a mistake, or a warning, at this place.
    pub(super) fn detail(&self, message: String) -> Detail {
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

/// A mistake in a text; it has no position if it concerns all of it.
impl From<TextError> for Detail {
    fn from(error: TextError) -> Self {
        let has_position = error.at != Position::default();
        Self {
            line: has_position.then_some(error.at.line),
            column: has_position.then_some(error.at.column),
            field: error.path,
            message: error.problem.to_string(),
        }
    }
}

/// The contents of a body: good resources, and the mistakes in others.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) resources: Vec<BodyResource>,
    pub(super) errors: Vec<Detail>,
    pub(super) warnings: Vec<Detail>,
    /// Names of which the body has the whole and no variant is left.
    pub(super) empty: Vec<(TypeUrl, Name)>,
    intake: Intake,
}

impl Body {
    /// Reads all resources of a body, also after a mistake.
    pub(super) fn read(bytes: Bytes, form: Form) -> Self {
        let mut body = Self::default();
        match form {
            Form::Binary => body.read_binary(bytes),
            Form::Text(format) => match std::str::from_utf8(&bytes) {
                Ok(text) => body.read_text(format, text),
                Err(_) => body.add_error(Detail::new(
                    "the body is not text; send YAML or JSON in UTF-8, or say that it is binary",
                )),
            },
        }
        body
    }

    /// Adds a mistake, unless there are [`MOST`].
    pub(super) fn add_error(&mut self, detail: Detail) {
        if self.errors.len() < MOST {
            self.errors.push(detail);
        }
    }

    /// Adds a warning, unless there are [`MOST`].
    fn add_warning(&mut self, detail: Detail) {
        if self.warnings.len() < MOST {
            self.warnings.push(detail);
        }
    }

    /// Reads a text: its own mistakes, then each resource.
    fn read_text(&mut self, format: Format, text: &str) {
        let document = text::read_as(format, FILE, text, &wire::text_options());
        let errors = document.errors.into_iter().map(Detail::from);
        self.errors.extend(errors);
        let warnings = document.warnings.into_iter().map(Detail::from);
        self.warnings.extend(warnings);
        for resource in &document.resources {
            self.read_text_resource(resource);
        }
    }

    /// Validates one resource of a text, and takes it in.
    fn read_text_resource(&mut self, read: &text::Resource) {
        for error in read.validate() {
            self.add_error(error.into());
        }
        let place = |inner: &Path| Place::Text {
            at: read.position(inner),
            field: read.path.join(inner).to_string(),
        };
        match self.intake.text(read) {
            Ok(accepted) => {
                for (inner, doubt) in &accepted.doubts {
                    self.add_warning(place(inner).detail(doubt.to_string()));
                }
                let host_place = |index: usize| place(&read.item("virtual_hosts", index));
                self.add(accepted, place(&Path::default()), host_place);
            }
            Err(error) => {
                let (inner, error) = error.place();
                self.add_error(place(&inner).detail(error.to_string()));
            }
        }
    }

    /// Reads a binary body piece by piece, up to the first field that is
    /// malformed.
    fn read_binary(&mut self, bytes: Bytes) {
        let mut pieces = Pieces::new(Cursor::new(bytes));
        let mut parent: Option<(Parent, VariantId)> = None;
        loop {
            match pieces.next() {
                Ok(Some((index, Piece::Whole(any)))) => self.read_whole(index, any),
                Ok(Some((index, Piece::Route(route)))) => {
                    parent = self.read_route(index, *route);
                }
                Ok(Some((_, Piece::Host(index, body)))) => {
                    // Without a parent, its mistake was reported.
                    if let Some((parent, route)) = &parent {
                        self.read_host(parent, route, index, body);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    return self.add_error(Detail::new(format!(
                        "the body is not a binary DiscoveryResponse: {error}"
                    )));
                }
            }
        }
    }

    /// Takes in a resource of a binary body.
    fn read_whole(&mut self, index: usize, any: Any) {
        let read = self.intake.whole(FILE, index, any);
        if let Some((accepted, spot)) = self.ok_or_report(read) {
            self.add_doubts(spot, &accepted.doubts);
            let host_place = |host| {
                Place::Binary(Spot {
                    host: Some(host),
                    ..spot
                })
            };
            self.add(accepted, Place::Binary(spot), host_place);
        }
    }

    /// Takes in a route configuration of a binary body. Returns it for its
    /// virtual hosts, which come next; `None` if it has a mistake.
    fn read_route(&mut self, index: usize, route: Route) -> Option<(Parent, VariantId)> {
        let read = self.intake.route(FILE, index, route);
        let (accepted, parent) = self.ok_or_report(read)?;
        let spot = parent.spot();
        self.add_doubts(spot, &accepted.doubts);
        let id = author(&accepted);
        self.add(accepted, Place::Binary(spot), |_| Place::Binary(spot));
        Some((parent, id))
    }

    /// Takes in a virtual host of a route configuration of a binary body.
    fn read_host(&mut self, parent: &Parent, route: &VariantId, index: usize, body: Bytes) {
        let read = self.intake.host_of(FILE, parent, index, body);
        if let Some(hosted) = self.ok_or_report(read) {
            self.add_doubts(hosted.spot, &hosted.doubts);
            for resource in hosted.resources {
                self.add_host(resource, Place::Binary(hosted.spot), route.clone());
            }
        }
    }

    /// Returns the value of a piece that was taken in; adds the mistakes of one
    /// that was not, and returns `None`.
    fn ok_or_report<T>(&mut self, read: Result<T, Vec<Mistake>>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(mistakes) => {
                for mistake in mistakes {
                    self.add_error(match mistake {
                        Mistake::Text(error) => (*error).into(),
                        Mistake::Accept { spot, error } => {
                            Place::Binary(spot).detail(error.to_string())
                        }
                    });
                }
                None
            }
        }
    }

    /// Adds a resource, and the virtual hosts that were written in it.
    /// `host_place` returns the place of each by its index.
    fn add(&mut self, accepted: Accepted, place: Place, host_place: impl Fn(usize) -> Place) {
        let author = author(&accepted);
        if accepted.written.is_none() && accepted.variants.is_empty() {
            let name = accepted.name.clone();
            self.empty.push((accepted.type_url.clone(), name));
        }
        for resource in accepted.variants {
            self.resources.push(BodyResource {
                type_url: accepted.type_url.clone(),
                resource: Arc::new(resource),
                place: place.clone(),
                written: accepted.written.clone(),
                route: None,
            });
        }
        for host in accepted.hosts {
            self.add_host(host.resource, host_place(host.index), author.clone());
        }
    }

    /// Adds a virtual host that was written in a route configuration.
    fn add_host(&mut self, resource: Resource, place: Place, route: VariantId) {
        let type_url = self.intake.vhds();
        self.resources.push(BodyResource {
            type_url,
            resource: Arc::new(resource),
            place,
            written: route.constraints.clone(),
            route: Some(route),
        });
    }

    /// Adds a warning for each condition that is hardly intended.
    fn add_doubts(&mut self, spot: Spot, doubts: &[(Path, Doubt)]) {
        for (inner, doubt) in doubts {
            self.add_warning(Detail {
                field: spot.path().join(inner).to_string(),
                ..Detail::new(doubt)
            });
        }
    }
}

/// Returns a resource as the author of the virtual hosts that were written in
/// it.
fn author(accepted: &Accepted) -> VariantId {
    VariantId {
        name: accepted.name.clone(),
        constraints: accepted.written.clone(),
    }
}
