//! What can be wrong with files, in words that name the place and the remedy.

use std::fmt;
use std::io;
use std::sync::Arc;

use trunkline::wire::{AcceptError, Doubt};
use trunkline::{ApplyError, Name, TypeUrl};
use trunkline_core::kind::Kind;
use trunkline_core::params::{ConstraintError, Params};
use trunkline_proto::{descriptor, text};

/// Problems of one file that are kept, of each kind.
pub(crate) const MOST: usize = 100;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, by the path with which it was found.
    pub file: Arc<str>,
    /// The line, from one; zero where there are no lines.
    pub line: u32,
    /// The column in characters, from one.
    pub column: u32,
    /// What is meant, where there are no lines and it is not said beside.
    pub field: Option<Box<str>>,
}

/// One thing wrong at one place; prints as `file:line:column: field: what`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The field, such as `resources[2].name`; empty if it is about the file.
    pub field: Box<str>,
    /// What.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text is not right, or a field breaks a rule of Envoy.
    #[error(transparent)]
    Text(text::Problem),
    /// What is around a resource does not fit it.
    #[error(transparent)]
    Accept(AcceptError),
    /// A condition on a part is hardly meant as it is.
    #[error(transparent)]
    Doubt(Doubt),
    /// Two resources have one name.
    #[error("{} {name:?} is there already, at {first}; remove one or rename it", short(.type_url))]
    Duplicate {
        /// Its type.
        type_url: TypeUrl,
        /// Its name.
        name: Name,
        /// Where the other one is.
        first: Place,
    },
    /// A client could match two variants of one name (TP2).
    #[error(
        "{} would match two variants of {} {name:?}, this one and the one at {first}; \
         make their constraints exclude each other", client(.witness), short(.type_url)
    )]
    Overlap {
        /// Its type.
        type_url: TypeUrl,
        /// Its name.
        name: Name,
        /// Where the other one is.
        first: Place,
        /// Parameters that match both.
        witness: Params,
    },
    /// It cannot be decided whether two variants exclude each other.
    #[error("whether this variant of {name:?} and the one at {first} exclude each other: {source}")]
    Undecided {
        /// The name.
        name: Name,
        /// Where the other one is.
        first: Place,
        /// Why.
        source: ConstraintError,
    },
    /// A client could be given two virtual hosts for one domain, which it
    /// refuses.
    #[error(
        "virtual hosts {name:?}, this one, and {other:?}, at {first}, both have the domain \
         {domain:?}{}; take it out of one", who(.witness)
    )]
    Domain {
        /// The domain, in small letters.
        domain: Box<str>,
        /// The virtual host.
        name: Name,
        /// The other one.
        other: Name,
        /// Where the other one is.
        first: Place,
        /// Parameters of a client that would see both.
        witness: Params,
    },
    /// A virtual host has a domain twice.
    #[error("virtual host {name:?} has the domain {domain:?} twice; take one out")]
    DomainTwice {
        /// The domain, in small letters.
        domain: Box<str>,
        /// The virtual host.
        name: Name,
    },
    /// A reference leads nowhere.
    #[error("refers to {} {name:?}, which no file has; add it or correct the name", short(.type_url))]
    Dangling {
        /// The type that is referred to.
        type_url: TypeUrl,
        /// The name.
        name: Name,
    },
    /// Something that another file refers to would go.
    #[error(
        "no longer has {} {name:?}, to which {by} refers; take the reference away first",
        short(.type_url)
    )]
    StillNeeded {
        /// The type of what would go.
        type_url: TypeUrl,
        /// Its name.
        name: Name,
        /// Where it is referred to.
        by: Place,
    },
    /// A path that was named is not there.
    #[error("does not exist; create it, or name another path")]
    Missing,
    /// The system does not let it be read.
    #[error("cannot be read: {reason}; see to its permissions and its kind")]
    Unreadable {
        /// What kind of failure.
        kind: io::ErrorKind,
        /// The same in words.
        reason: String,
    },
    /// There are more files than can be meant.
    #[error("has more than {max} files; name a directory that holds resources only")]
    TooManyFiles {
        /// The limit.
        max: usize,
    },
    /// The system does not tell of changes, so they are seen late.
    #[error("is not watched: {reason}; changes are found by looking every now and then")]
    Unwatched {
        /// What the system says.
        reason: String,
    },
    /// The database does not take it.
    #[error(transparent)]
    Refused(ApplyError),
}

impl Place {
    /// A file as a whole.
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

impl Problem {
    /// Something wrong with a file as a whole.
    pub(crate) fn whole(file: &Arc<str>, fault: Fault) -> Self {
        Self {
            place: Place::whole(Arc::clone(file)),
            field: Box::default(),
            fault,
        }
    }
}

impl From<&io::Error> for Fault {
    fn from(error: &io::Error) -> Self {
        Self::Unreadable {
            kind: error.kind(),
            reason: error.to_string(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, &self.field) {
            (0, None) => f.write_str(&self.file),
            (0, Some(field)) => write!(f, "{}: {field}", self.file),
            (line, _) => write!(f, "{}:{line}:{}", self.file, self.column),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            field,
            fault,
        } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        write!(f, "{place}: {field}{colon}{fault}")
    }
}

/// A client with these parameters.
fn client(witness: &Params) -> String {
    match witness.is_empty() {
        true => "a client without parameters".to_owned(),
        false => format!("a client with {witness}"),
    }
}

/// Of whom this is true, if it is not of all.
fn who(witness: &Params) -> String {
    match witness.is_empty() {
        true => String::new(),
        false => format!(" for a client with {witness}"),
    }
}

/// What a person calls a type: `cluster`, or the name of its message.
fn short(type_url: &TypeUrl) -> &str {
    match Kind::of(type_url).short {
        "cds" => "cluster",
        "rds" => "route configuration",
        "lds" => "listener",
        "eds" => "endpoints",
        "sds" => "secret",
        "vhds" => "virtual host",
        _ => descriptor::full_name(type_url.as_str()),
    }
}
