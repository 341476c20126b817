//! The resources of a document, with their places.

use std::sync::Arc;

use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};

use super::finding::{Fault, Finding};
use super::place::{At, Place};
use super::unit::ResourceKey;
use crate::wire::Accepted;

/// A resource and its place.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its type.
    pub type_url: TypeUrl,
    /// The resource.
    pub resource: Arc<Resource>,
    /// Its place.
    pub at: At,
    /// The constraints in its wrapper, or in that of the route configuration in
    /// which it is written. Without them, the document has the whole of its
    /// name: its conditions may have made several variants of it.
    pub wrapper_constraints: Option<Constraints>,
    /// Whether it is a virtual host that is written in a route configuration.
    pub is_inline_host: bool,
}

/// The contents of a document.
#[derive(Debug)]
pub struct Document {
    /// Its name: the path of a file; empty for a body.
    pub file: Arc<str>,
    /// Its resources: for each that is written its variants, then its virtual
    /// hosts.
    pub items: Vec<Item>,
    /// Whether one of them has constraints.
    pub constrained: bool,
    /// Resources of which no variant is left: their conditions hold for no
    /// client.
    pub(super) empty: Vec<ResourceKey>,
    /// Whether it says `allow_removal: true`: the [guard](super::Guard) lets it
    /// remove as much as it does.
    pub allow_removal: bool,
    /// Whether it is a text that ends in a newline.
    pub ends_line: bool,
    /// Whether it is a text that does not end in a newline, and did before: the
    /// [guard](super::Guard) holds its removals, because it seems to end early.
    pub is_cut: bool,
}

impl Document {
    /// Returns a document without resources.
    #[must_use]
    pub fn empty(file: &Arc<str>) -> Self {
        Self {
            file: Arc::clone(file),
            items: Vec::new(),
            constrained: false,
            empty: Vec::new(),
            allow_removal: false,
            ends_line: false,
            is_cut: false,
        }
    }

    /// Returns a document of resources that were accepted before. Their places
    /// are not known, and each counts as written by itself, without a wrapper.
    /// `ends_line` is [`Self::ends_line`] of the text that they are from.
    #[must_use]
    pub fn of_resources(
        file: &Arc<str>,
        resources: Vec<(TypeUrl, Arc<Resource>)>,
        ends_line: bool,
    ) -> Self {
        let mut document = Self {
            ends_line,
            ..Self::empty(file)
        };
        for (type_url, resource) in resources {
            document.push(Item {
                type_url,
                resource,
                at: At::default(),
                wrapper_constraints: None,
                is_inline_host: false,
            });
        }
        document
    }

    /// Adds a resource as its variants, and the virtual hosts that are written
    /// in it, whose type is `vhds`. `host_at` returns the place of each by its
    /// index. A resource of which no variant is left goes to `self.empty`.
    pub(super) fn add_accepted(
        &mut self,
        vhds: &TypeUrl,
        accepted: Accepted,
        at: &At,
        host_at: impl Fn(usize) -> At,
    ) {
        let wrapper_constraints = accepted.written;
        if accepted.variants.is_empty() {
            self.empty.push(ResourceKey {
                type_url: accepted.type_url.clone(),
                name: accepted.name,
                constraints: wrapper_constraints.clone(),
            });
        }

        for resource in accepted.variants {
            self.push(Item {
                type_url: accepted.type_url.clone(),
                resource: Arc::new(resource),
                at: at.clone(),
                wrapper_constraints: wrapper_constraints.clone(),
                is_inline_host: false,
            });
        }
        for host in accepted.hosts {
            self.push(Item {
                type_url: vhds.clone(),
                resource: Arc::new(host.resource),
                at: host_at(host.index),
                wrapper_constraints: wrapper_constraints.clone(),
                is_inline_host: true,
            });
        }
    }

    /// Adds one resource.
    pub(super) fn push(&mut self, item: Item) {
        self.constrained |= item.resource.constraints.is_some();
        self.items.push(item);
    }

    /// Adds all resources of another document, after its own. If either allows
    /// removals, so does the result. Its name, and how its text ends, stay as
    /// they are.
    pub fn append(&mut self, mut other: Self) {
        self.items.append(&mut other.items);
        self.empty.append(&mut other.empty);
        self.constrained |= other.constrained;
        self.allow_removal |= other.allow_removal;
    }

    /// Returns the place of one of its items, with the field where there are no
    /// lines.
    #[must_use]
    pub fn place(&self, item: &Item) -> Place {
        item.at.full_place(&self.file)
    }

    /// Returns the finding of a fault of one of its items, at the place of the
    /// item.
    #[must_use]
    pub fn finding(&self, item: &Item, fault: Fault) -> Finding {
        item.at.finding(&self.file, fault)
    }
}
