//! What the rules need to know of a body, found once when it is accepted.
//!
//! Core reads facts, never bodies. They are computed where the messages are
//! known and kept beside the bytes.

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

/// The few facts of one body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What the body refers to, sorted, without repetition. A cluster of type
    /// EDS refers to its assignment, a listener to its routes, a route to its
    /// clusters.
    pub references: Box<[Reference]>,
    /// The domains of a virtual host.
    pub domains: Domains,
    /// Facts that few resources have. They are boxed so that the others, of
    /// which there may be a million, do not pay for them.
    pub rare: Option<Box<RareFacts>>,
}

/// What stands beside a body, and what rules need to know of few.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RareFacts {
    /// The base sets that a virtual host belongs to: who has one of them gets
    /// the virtual host without asking.
    pub base_sets: Box<[Box<str>]>,
    /// Route configurations inside a listener that leave virtual hosts to VHDS
    /// (S76).
    pub inline_vhds_routes: Box<[Name]>,
    /// The encoded metadata.
    pub metadata: Option<Bytes>,
    /// The client should not keep the resource.
    pub do_not_cache: bool,
    /// How a route configuration leaves virtual hosts to VHDS, if it does: when
    /// that changes, a client begins with none (S76).
    pub vhds_version: Option<Version>,
    /// Whether a route configuration finds hosts without regard to their port.
    pub ignores_port: bool,
}

impl RareFacts {
    /// For [`Facts::rare`]: none if there is nothing.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

impl Facts {
    /// Whether the body names this resource.
    #[must_use]
    pub fn refers_to(&self, reference: &Reference) -> bool {
        self.references.binary_search(reference).is_ok()
    }

    /// The base sets that a virtual host belongs to.
    #[must_use]
    pub fn base_sets(&self) -> &[Box<str>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.base_sets)
    }

    /// Route configurations inside a listener that leave virtual hosts to VHDS.
    #[must_use]
    pub fn inline_vhds_routes(&self) -> &[Name] {
        self.rare
            .as_ref()
            .map_or(&[], |rare| &rare.inline_vhds_routes)
    }

    /// How a route configuration leaves virtual hosts to VHDS, if it does.
    #[must_use]
    pub fn vhds_version(&self) -> Option<&Version> {
        self.rare.as_ref()?.vhds_version.as_ref()
    }

    /// Whether a route configuration finds hosts without regard to their port.
    #[must_use]
    pub fn ignores_port(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| rare.ignores_port)
    }

    /// Nothing is known.
    #[must_use]
    pub fn none() -> &'static Self {
        static NONE: std::sync::LazyLock<Facts> = std::sync::LazyLock::new(Facts::default);
        &NONE
    }
}
