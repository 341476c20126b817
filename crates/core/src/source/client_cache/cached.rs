//! One resource that a client holds, or may hold.

use std::sync::Arc;

use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Resource, Version};

/// A variant is identified by its name and by the constraints on the clients
/// that it is for (S84).
pub(crate) type Variant = (Name, Option<Constraints>);

/// Returns the variant of a resource.
pub(crate) fn variant_of(resource: &Resource) -> Variant {
    (resource.name.clone(), resource.constraints.clone())
}

/// Returns whether two resources are the same variant, so that one replaces the
/// other.
pub(crate) fn same_variant(first: &Resource, second: &Resource) -> bool {
    first.name == second.name && first.constraints == second.constraints
}

/// How certain it is that a client holds a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The client ACKed the resource on this stream, or named its version.
    Accepted,
    /// The client has the resource from an earlier stream. Its body may not be
    /// known.
    Resumed,
    /// The client accepted the resource and may have dropped it: it NACKed a
    /// response that removes it (S17), or changed its parameters so that no
    /// subscription matches it any more (TP2).
    MaybeDropped,
    /// The client may have taken the resource: it NACKed a response that has it
    /// (S17), or subscribed again while its ACK was pending.
    MaybeTaken,
}

/// A resource in the client cache.
#[derive(Clone, Debug)]
pub(crate) struct CachedResource {
    pub(crate) resource: Arc<Resource>,
    pub(crate) certainty: Certainty,
}

impl CachedResource {
    /// Makes the record of a resource that the client ACKed, or named the
    /// version of.
    pub(crate) fn accepted(resource: &Arc<Resource>) -> Self {
        Self {
            resource: Arc::clone(resource),
            certainty: Certainty::Accepted,
        }
    }

    /// Makes the record of a resource that the client has from an earlier
    /// stream.
    pub(crate) fn resumed(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            certainty: Certainty::Resumed,
        }
    }

    /// Makes the record of a resource of a NACKed response, which the client
    /// may have taken.
    pub(crate) fn maybe_taken(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            certainty: Certainty::MaybeTaken,
        }
    }

    /// Makes the record of a resource from an earlier stream whose body is not
    /// known. Its version may be unknown, too ([`Version::unknown`]).
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

    /// Returns whether the client surely holds the resource.
    pub(crate) fn is_accepted(&self) -> bool {
        self.certainty == Certainty::Accepted
    }

    /// Returns whether the client accepted the resource at some time: it can be
    /// sent in place of one that the client NACKed.
    pub(crate) fn was_accepted(&self) -> bool {
        matches!(
            self.certainty,
            Certainty::Accepted | Certainty::MaybeDropped
        )
    }

    /// Returns whether the resource's body is not known, and so neither its
    /// references.
    pub(crate) fn has_unknown_body(&self) -> bool {
        self.resource.body.is_none()
    }

    /// Returns whether another record has the same variant and certainty.
    pub(crate) fn is_same_record(&self, other: &Self) -> bool {
        self.certainty == other.certainty && same_variant(&self.resource, &other.resource)
    }

    /// Returns whether the record is of this variant.
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
