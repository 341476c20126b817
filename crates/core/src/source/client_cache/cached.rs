//! One resource that a peer holds, or may hold.

use std::sync::Arc;

use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Resource, Version};

/// A resource is known by its name and by the clients that it is for (S84).
pub(crate) type Variant = (Name, Option<Constraints>);

/// The variant that a resource is.
pub(crate) fn variant_of(resource: &Resource) -> Variant {
    (resource.name.clone(), resource.constraints.clone())
}

/// Whether one resource takes the place of the other.
pub(crate) fn same_variant(a: &Resource, b: &Resource) -> bool {
    a.name == b.name && a.constraints == b.constraints
}

/// How much is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The peer accepted it on this stream, or named its version.
    Accepted,
    /// The peer has it from an earlier stream. Its body may not be known.
    Resumed,
    /// The peer accepted it and may have dropped it: it rejected a response that
    /// takes it away (S17), or nothing that it asks for is for it any more since
    /// it changed its parameters (TP2).
    MaybeDropped,
    /// The peer rejected it, or something beside it, and may have taken it all
    /// the same (S17); or asked anew while it was under way.
    MaybeTaken,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct CachedResource {
    pub(crate) resource: Arc<Resource>,
    pub(crate) certainty: Certainty,
}

impl CachedResource {
    pub(crate) fn accepted(resource: &Arc<Resource>) -> Self {
        Self {
            resource: Arc::clone(resource),
            certainty: Certainty::Accepted,
        }
    }

    pub(crate) fn resumed(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            certainty: Certainty::Resumed,
        }
    }

    /// What the peer may have taken, or not.
    pub(crate) fn maybe_taken(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            certainty: Certainty::MaybeTaken,
        }
    }

    /// Something of this name from an earlier stream: its version is known, if
    /// that, and its body is not.
    pub(crate) fn unknown_body(name: Name, version: Version) -> Self {
        Self::resumed(Arc::new(Resource {
            name,
            aliases: Box::default(),
            constraints: None,
            version,
            ttl: None,
            body: None,
            facts: None,
        }))
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.certainty == Certainty::Accepted
    }

    /// Whether the peer accepted it once: it is fit to stand for what it rejects.
    pub(crate) fn was_accepted(&self) -> bool {
        matches!(
            self.certainty,
            Certainty::Accepted | Certainty::MaybeDropped
        )
    }

    /// Whether its body is not known, nor what it refers to.
    pub(crate) fn has_unknown_body(&self) -> bool {
        self.resource.body.is_none()
    }

    /// Whether another record is of the same variant and in the same state.
    pub(crate) fn is_same_record(&self, other: &Self) -> bool {
        self.certainty == other.certainty && same_variant(&self.resource, &other.resource)
    }

    pub(crate) fn is_variant(&self, (name, constraints): &Variant) -> bool {
        self.resource.name == *name && self.resource.constraints == *constraints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<CachedResource>() <= 16);
    }
}
