//! A response of either protocol in one form: a SotW response is one that
//! removes nothing by name.

use std::sync::Arc;

use crate::message::{Mode, Response, WireResource};
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Nonce, ResourceError, TypeUrl, Version};

/// A response of either protocol.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) type_url: TypeUrl,
    pub(super) nonce: Nonce,
    /// The version of the whole set; in delta each resource has its own.
    pub(super) version: Option<Version>,
    pub(super) resources: Vec<WireResource>,
    pub(super) removed: Vec<Name>,
    pub(super) removed_variants: Vec<(Name, Option<Constraints>)>,
    pub(super) errors: Vec<(Name, Arc<ResourceError>)>,
}

impl Response {
    /// Returns the protocol of the response.
    #[must_use]
    pub(crate) fn mode(&self) -> Mode {
        match self {
            Self::Sotw(_) => Mode::Sotw,
            Self::Delta(_) => Mode::Delta,
        }
    }

    /// Brings the response into the common form. A SotW response has a version
    /// for the whole set and removes nothing by name.
    pub(super) fn into_incoming(self) -> Incoming {
        match self {
            Self::Sotw(response) => Incoming {
                type_url: response.type_url,
                nonce: response.nonce,
                version: Some(response.version),
                resources: response.resources.to_vec(),
                removed: Vec::new(),
                removed_variants: Vec::new(),
                errors: response.errors,
            },
            Self::Delta(response) => Incoming {
                type_url: response.type_url,
                nonce: response.nonce,
                version: None,
                resources: response.resources.to_vec(),
                removed: response.removed,
                removed_variants: response.removed_variants,
                errors: response.errors,
            },
        }
    }
}
