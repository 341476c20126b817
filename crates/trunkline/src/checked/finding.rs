//! Mistakes and warnings, in words that name the place and the remedy.

use std::fmt;
use std::io;
use std::sync::Arc;

use trunkline_core::database::ApplyError;
use trunkline_core::kind::Kind;
use trunkline_core::name::Name;
use trunkline_core::params::{ConstraintError, Params};
use trunkline_core::resource::TypeUrl;
use trunkline_proto::redact::REDACTED;
use trunkline_proto::{descriptor, text};

use super::place::Place;
use super::secrets::SecretFault;
use crate::wire::{AcceptError, Doubt};

/// Findings of one document that are kept, of each kind.
pub const MOST_FINDINGS: usize = 100;

/// A mistake or a warning at one place; prints as `file:line:column: field:
/// what`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Finding {
    /// Its place.
    pub place: Place,
    /// The field, such as `resources[2].name`; empty if it is about the file.
    pub field: Box<str>,
    /// The mistake.
    pub fault: Fault,
}

/// The kinds of mistakes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text has a mistake, or a field breaks a rule of Envoy.
    #[error(transparent)]
    Text(text::Problem),
    /// The wrapper of a resource does not fit it.
    #[error(transparent)]
    Accept(AcceptError),
    /// A condition on a part is hardly intended.
    #[error(transparent)]
    Doubt(Doubt),
    /// A secret has a fault, or a file that it names.
    #[error(transparent)]
    Secret(SecretFault),
    /// Two resources have one name.
    #[error("{} {name:?} is there already, at {first}; remove one or rename it", type_label(.type_url))]
    Duplicate {
        /// Its type.
        type_url: TypeUrl,
        /// Its name.
        name: Name,
        /// The place of the other one.
        first: Place,
    },
    /// The name belongs to another origin.
    #[error(
        "{} {name:?} belongs to origin {origin:?}, at {first}; change it there, or take it over",
        type_label(.type_url)
    )]
    Owned {
        /// Its type.
        type_url: TypeUrl,
        /// Its name.
        name: Name,
        /// The origin.
        origin: Arc<str>,
        /// The place of the owner's.
        first: Place,
    },
    /// A client could match two variants of one name (TP2).
    #[error(
        "{} would match two variants of {} {name:?}, this one [{}] and the one at {first} [{}]; \
         make their constraints exclude each other",
        describe_client(.witness), type_label(.type_url), .clients[0], .clients[1]
    )]
    Overlap {
        /// Its type.
        type_url: TypeUrl,
        /// Its name.
        name: Name,
        /// The place of the other one.
        first: Place,
        /// The clients of this variant, and of the other one.
        clients: Box<[String; 2]>,
        /// Parameters that match both.
        witness: Params,
    },
    /// It cannot be decided whether two variants exclude each other.
    #[error("whether this variant of {name:?} and the one at {first} exclude each other: {source}")]
    Undecided {
        /// The name.
        name: Name,
        /// The place of the other one.
        first: Place,
        /// The reason.
        source: ConstraintError,
    },
    /// A client could be sent two virtual hosts of one domain, which it
    /// refuses.
    #[error(
        "virtual hosts {name:?}, this one, and {other:?}, at {first}, both have the domain \
         {domain:?}{}; take it out of one", for_client(.witness)
    )]
    Domain {
        /// The domain, in lower case.
        domain: Box<str>,
        /// The virtual host.
        name: Name,
        /// The other one.
        other: Name,
        /// The place of the other one.
        first: Place,
        /// Parameters of a client that would see both.
        witness: Params,
    },
    /// A virtual host has a domain twice.
    #[error("virtual host {name:?} has the domain {domain:?} twice; take one out")]
    DomainTwice {
        /// The domain, in lower case.
        domain: Box<str>,
        /// The virtual host.
        name: Name,
    },
    /// A secret was not shown, and the text in its place is not the secret.
    #[error("holds {REDACTED:?}, which stands for a secret that was not shown; put the secret in")]
    Redacted,
    /// A value that some variant is for, and no variant of this name.
    #[error(transparent)]
    Unserved(Box<Unserved>),
    /// A reference to a resource that does not exist.
    #[error(
        "refers to {} {name:?}, which is not there; {}",
        type_label(.type_url), dangling_remedy(.near.as_ref())
    )]
    Dangling {
        /// The type that is referred to.
        type_url: TypeUrl,
        /// The name.
        name: Name,
        /// The nearest name that is there.
        near: Option<Name>,
        /// The field from within the resource; empty if it is not known. Of a
        /// variant that was made of a resource with conditions, its indexes are
        /// those of the variant.
        within: Box<str>,
    },
    /// A resource that another refers to would be removed.
    #[error(
        "no longer has {} {name:?}, to which {} {by_name:?}, at {by}, refers; take the reference \
         away first",
        type_label(.type_url), type_label(.by_type)
    )]
    StillNeeded {
        /// The type of the resource.
        type_url: TypeUrl,
        /// Its name.
        name: Name,
        /// The type of the resource that refers to it.
        by_type: TypeUrl,
        /// Its name.
        by_name: Name,
        /// Its place.
        by: Place,
    },
    /// A route configuration was written without its virtual hosts.
    #[error("{name:?} lists no virtual hosts: {}", kept_hosts(*.count))]
    KeptHosts {
        /// The route configuration.
        name: Name,
        /// The number of virtual hosts.
        count: usize,
    },
    /// A change removes most resources of a type, and is held.
    #[error(
        "would remove {removed} of {total} {} at once, and is held; if that is intended, apply it \
         with --yes, write `allow_removal: true` in it, or `trunkline confirm` {hash}",
        plural_label(.type_url)
    )]
    HeldRemoval {
        /// The type.
        type_url: TypeUrl,
        /// The number of resources that it removes.
        removed: usize,
        /// The number of resources that there are.
        total: usize,
        /// The hash of the change.
        hash: String,
    },
    /// A file is empty that had resources, or the last file of a path is gone:
    /// the change is held.
    #[error(
        "has no resources any more, and the change is held; if that is intended, write \
         `allow_removal: true` in it, or `trunkline confirm` {hash}"
    )]
    HeldEmpty {
        /// The hash of the change.
        hash: String,
    },
    /// A file ends in the middle of a line, and resources are gone: the change
    /// is held.
    #[error(
        "has fewer resources and ends in the middle of a line, which it did not before, so the \
         change is held; if that is intended, end it with a newline, or `trunkline confirm` {hash}"
    )]
    HeldCut {
        /// The hash of the change.
        hash: String,
    },
    /// What is served of files is not kept for the next start.
    #[error(
        "what is served of files is not kept for the next start, which will serve them as they \
         are: {reason}"
    )]
    ServedNotKept {
        /// Why.
        reason: String,
    },
    /// The configured paths have no resources at the start.
    #[error(
        "has no resources, so clients wait for the first contents; add some, or start with \
         --allow-empty"
    )]
    NoResources,
    /// The origin of a change had a lease, and has none any more.
    #[error(
        "origin {origin:?} has no lease any more: all of its resources stay until they are \
         removed; to have a lease again, apply with one"
    )]
    LeaseEnded {
        /// The origin.
        origin: Arc<str>,
    },
    /// There are more leases than can be intended.
    #[error("there are {max} leases, and no more are granted; end some, or share an origin")]
    TooManyLeases {
        /// The limit.
        max: usize,
    },
    /// A lease needs a clock.
    #[error("a lease can be had in a tokio runtime only; call it from within one")]
    NoRuntime,
    /// A configured path does not exist.
    #[error("does not exist; create it, or name another path")]
    Missing,
    /// The system does not let it be read.
    #[error("cannot be read: {reason}; see to its permissions and its kind")]
    Unreadable {
        /// The kind of error.
        kind: io::ErrorKind,
        /// The error in words.
        reason: String,
    },
    /// There are more files than can be intended.
    #[error("has more than {max} files; name a directory that holds resources only")]
    TooManyFiles {
        /// The limit.
        max: usize,
    },
    /// The system does not notify of changes, so they are seen late.
    #[error("is not watched: {reason}; changes are found by looking every now and then")]
    Unwatched {
        /// The error of the system.
        reason: String,
    },
    /// An Envoy that was asked rejects it.
    #[error("Envoy {version} says: {words}")]
    Envoy {
        /// The version of Envoy.
        version: Box<str>,
        /// Its words.
        words: Box<str>,
    },
    /// The database refuses it.
    #[error(transparent)]
    Refused(ApplyError),
}

/// A value that some variant is for, and no variant of another name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no variant of {} {name:?} serves {key}={value} ({} {by_name:?}, at {by}, has a variant that \
     speaks of it): clients with it are told that it does not exist",
    type_label(.type_url), type_label(.by_type)
)]
pub struct Unserved {
    /// The type of the resource that does not serve it.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// The type of the resource that mentions the value.
    pub by_type: TypeUrl,
    /// Its name.
    pub by_name: Name,
    /// Its place.
    pub by: Place,
}

impl Finding {
    /// Returns a finding about a document as a whole.
    #[must_use]
    pub fn whole(file: &Arc<str>, fault: Fault) -> Self {
        Self {
            place: Place::whole(Arc::clone(file)),
            field: Box::default(),
            fault,
        }
    }
}

impl Fault {
    /// Returns the fault of a path that cannot be read; one that does not exist
    /// has a remedy of its own.
    #[must_use]
    pub fn of_path(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::from(error),
        }
    }

    /// Returns the second place that the fault is about, with a word for what
    /// is there. `None` means a fault of one place.
    #[must_use]
    pub fn related(&self) -> Option<(&Place, &'static str)> {
        match self {
            Self::Duplicate { first, .. }
            | Self::Owned { first, .. }
            | Self::Overlap { first, .. }
            | Self::Undecided { first, .. }
            | Self::Domain { first, .. } => Some((first, "the other one")),
            Self::StillNeeded { by, .. } => Some((by, "the one that refers to it")),
            Self::Unserved(unserved) => Some((&unserved.by, "the one that speaks of it")),
            _ => None,
        }
    }

    /// Returns the hash of a held change, which confirms the change. `None`
    /// means another fault.
    #[must_use]
    pub fn held_hash(&self) -> Option<&str> {
        match self {
            Self::HeldRemoval { hash, .. } | Self::HeldEmpty { hash } | Self::HeldCut { hash } => {
                Some(hash)
            }
            _ => None,
        }
    }

    /// Returns whether hooks refused the change: nothing is wrong with it, and
    /// it may be accepted when it is proposed again.
    #[must_use]
    pub fn is_veto(&self) -> bool {
        matches!(self, Self::Refused(ApplyError::Vetoed { .. }))
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

impl fmt::Display for Finding {
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

/// Describes a client with these parameters, at the start of a sentence.
fn describe_client(witness: &Params) -> String {
    if witness.is_empty() {
        "a client without parameters".to_owned()
    } else {
        format!("a client with {witness}")
    }
}

/// Writes for which client a sentence is true, at its end; empty if the witness
/// has no parameters, for then it is true for all.
fn for_client(witness: &Params) -> String {
    if witness.is_empty() {
        String::new()
    } else {
        format!(" for a client with {witness}")
    }
}

/// Returns the common name of a type, such as `cluster`, or for other types the
/// name of the message.
fn type_label(type_url: &TypeUrl) -> &str {
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

/// Returns the name of several of a type for people, such as `clusters`.
fn plural_label(type_url: &TypeUrl) -> String {
    match type_label(type_url) {
        label if label.ends_with('s') => label.to_owned(),
        label => format!("{label}s"),
    }
}

/// Writes what to do about a reference that dangles.
fn dangling_remedy(near: Option<&Name>) -> String {
    match near {
        Some(near) => format!("did you mean {near:?}?"),
        None => "add it or correct the name".to_owned(),
    }
}

/// Writes that virtual hosts stay, and what to do about it.
fn kept_hosts(count: usize) -> String {
    match count {
        1 => "the one that came with it stays; delete it by name".to_owned(),
        _ => format!("the {count} that came with it stay; delete them by name"),
    }
}
