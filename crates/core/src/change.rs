//! One vocabulary of change for files, APIs, upstream streams and MCP.
//!
//! SotW, delta and files differ in encoding, not in meaning: all of them
//! become a [`Transaction`], a list of changes that takes effect as one.

use std::sync::Arc;

use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Resource, ResourceError, TypeUrl};

/// One change to the contents of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The variant has this body from now on.
    Upsert(TypeUrl, Arc<Resource>),
    /// Every variant of the name is removed.
    Remove(TypeUrl, Name),
    /// One variant of the name is removed.
    RemoveVariant(TypeUrl, Name, Option<Constraints>),
    /// The type has exactly these resources; all others are removed.
    ReplaceAll(TypeUrl, Vec<Arc<Resource>>),
    /// The resource is not available, and why (TP3).
    Fail(TypeUrl, Name, Arc<ResourceError>),
}

impl Change {
    /// Returns the type that the change is about.
    #[must_use]
    pub fn type_url(&self) -> &TypeUrl {
        match self {
            Self::Upsert(url, _)
            | Self::Remove(url, _)
            | Self::RemoveVariant(url, ..)
            | Self::ReplaceAll(url, _)
            | Self::Fail(url, ..) => url,
        }
    }
}

/// Changes that belong together: all of them take effect, or none. A reader
/// sees some of them only if they are more than one slice
/// ([`SLICE`](crate::database::SLICE)), and then in an order that is safe.
pub type Transaction = Vec<Change>;
