//! Facts about a resource's body that the rules need, computed once when the
//! resource is accepted.
//!
//! This crate reads facts, never bodies. The crate that decodes the messages
//! computes them, and they are kept beside the encoded body.

use bytes::Bytes;

use crate::hosts::Domains;
use crate::name::Name;
use crate::resource::{TypeUrl, Version};

/// One resource named inside another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    /// The type of the resource that is named.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
}

/// The facts about one body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The resources that the body refers to, sorted, without repetition. A
    /// cluster of type EDS refers to its assignment, a listener to its routes,
    /// a route to its clusters.
    pub references: Box<[Reference]>,
    /// The domains of a virtual host.
    pub domains: Domains,
    /// Facts that few resources have. They are boxed so that the others, of
    /// which there may be a million, do not pay for them.
    pub rare: Option<Box<RareFacts>>,
}

/// Facts that few bodies have, and metadata that is sent beside a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RareFacts {
    /// The base sets that a virtual host belongs to: a client that has one of
    /// them gets the virtual host without requesting it.
    pub base_sets: Box<[Box<str>]>,
    /// Inline route configurations of a listener that use VHDS (S76).
    pub inline_vhds_routes: Box<[Name]>,
    /// The encoded metadata.
    pub metadata: Option<Bytes>,
    /// The client should not keep the resource.
    pub do_not_cache: bool,
    /// The version of a route configuration's `vhds` block, if it has one: when
    /// it changes, a client starts again without virtual hosts (S76).
    pub vhds_version: Option<Version>,
    /// Whether a route configuration ignores the port when it matches hosts.
    pub ignores_port: bool,
    /// Whether the body, or the metadata beside it, has something that must not
    /// be shown to people.
    pub holds_secrets: bool,
    /// Whether the body has a private key in it, or anything else that is
    /// mostly a resource of its own (SDS).
    pub holds_keys: bool,
}

impl RareFacts {
    /// Returns the facts as [`Facts::rare`] has them: `None` if no fact is set.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

impl Facts {
    /// Returns whether the body refers to this resource.
    #[must_use]
    pub fn refers_to(&self, reference: &Reference) -> bool {
        self.references.binary_search(reference).is_ok()
    }

    /// Returns the base sets that a virtual host belongs to.
    #[must_use]
    pub fn base_sets(&self) -> &[Box<str>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.base_sets)
    }

    /// Returns the inline route configurations of a listener that use VHDS.
    #[must_use]
    pub(crate) fn inline_vhds_routes(&self) -> &[Name] {
        self.rare
            .as_ref()
            .map_or(&[], |rare| &rare.inline_vhds_routes)
    }

    /// Returns the version of a route configuration's `vhds` block, if it has
    /// one.
    #[must_use]
    pub fn vhds_version(&self) -> Option<&Version> {
        self.rare.as_ref()?.vhds_version.as_ref()
    }

    /// Returns whether a route configuration ignores the port when it matches
    /// hosts.
    #[must_use]
    pub(crate) fn ignores_port(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| rare.ignores_port)
    }

    /// Returns whether there is something that must not be shown to people.
    #[must_use]
    pub fn holds_secrets(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| rare.holds_secrets)
    }

    /// Returns whether the body has a private key in it, or the like.
    #[must_use]
    pub fn holds_keys(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| rare.holds_keys)
    }

    /// Returns facts with nothing in them.
    #[must_use]
    pub(crate) fn none() -> &'static Self {
        static NONE: std::sync::LazyLock<Facts> = std::sync::LazyLock::new(Facts::default);
        &NONE
    }
}
