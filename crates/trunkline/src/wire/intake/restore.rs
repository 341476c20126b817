//! From a kept resource to one that the engine can serve: its facts are read
//! from its body again.

use std::time::Duration;

use bytes::Bytes;
use trunkline_core::facts::RareFacts;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl, Version};
use trunkline_proto::{facts, quick};

use super::Intake;
use crate::wire::accept::AcceptError;

/// A resource as a store keeps it: without the facts of its body.
#[derive(Clone, Debug)]
pub struct KeptResource {
    /// Its name.
    pub name: Name,
    /// Other names that it answers to.
    pub aliases: Vec<Name>,
    /// The constraints of the variant.
    pub constraints: Option<Constraints>,
    /// Its version.
    pub version: Version,
    /// How long a client may use it without hearing of it again.
    pub ttl: Option<Duration>,
    /// Its body.
    pub body: Bytes,
    /// The metadata beside the body.
    pub metadata: Option<Bytes>,
    /// Whether a client should not keep it.
    pub do_not_cache: bool,
}

impl Intake {
    /// Makes a resource of the form in which a store kept it. Only checked
    /// resources are stored, so the resource is not checked again.
    ///
    /// # Errors
    /// The body is not of its type.
    pub fn restore(
        &mut self,
        type_url: &TypeUrl,
        stored: KeptResource,
    ) -> Result<Resource, AcceptError> {
        let facts = match quick::look(type_url.as_str(), &stored.body) {
            Some(facts) => facts,
            None => facts::of(type_url.as_str(), &stored.body)?,
        };
        let rare = RareFacts {
            metadata: stored.metadata,
            do_not_cache: stored.do_not_cache,
            ..RareFacts::default()
        };
        Ok(Resource {
            name: stored.name,
            aliases: stored.aliases.into(),
            constraints: stored.constraints,
            version: stored.version,
            ttl: stored.ttl,
            body: Some(stored.body),
            facts: self.shared.convert_facts(facts, Some(rare)),
        })
    }

    /// Returns a type in the spelling that clients use, as the one copy of it
    /// that this intake has.
    #[must_use]
    pub fn type_url(&mut self, text: &str) -> TypeUrl {
        self.shared.canonical_url(text)
    }
}
