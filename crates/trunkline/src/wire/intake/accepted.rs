//! The result of taking in a resource of a file.

use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_proto::Path;
use trunkline_proto::descriptor::types;
use trunkline_proto::text::Spot;

use crate::wire::compact::Doubt;

/// The resources that one resource of a file becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The type, in the spelling that clients use.
    pub type_url: TypeUrl,
    /// The name.
    pub name: Name,
    /// The constraints in its wrapper. Without them its author wrote all
    /// variants of this name.
    pub written: Option<Constraints>,
    /// The clients that get some variant; all, if it is `None`.
    pub clients: Option<Constraints>,
    /// The resource itself, or the variants that its conditions make of it;
    /// none if they hold for no client.
    pub variants: Vec<Resource>,
    /// The virtual hosts that were written in it and are resources of their
    /// own: those of a route configuration with `vhds`, in their order.
    pub hosts: Vec<Host>,
    /// Conditions that are hardly intended, with their places.
    pub doubts: Vec<(Path, Doubt)>,
}

/// A virtual host that was written in a route configuration, or a variant of
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its index in the route configuration.
    pub index: usize,
    /// The resource.
    pub resource: Resource,
}

/// The resources that a virtual host of a binary file becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// The resource itself, or its variants.
    pub resources: Vec<Resource>,
    /// Conditions that are hardly intended, with their places.
    pub doubts: Vec<(Path, Doubt)>,
    /// The place of the virtual host.
    pub spot: Spot,
}

impl Accepted {
    /// Returns the changes that bring the resource to a server: the resource or
    /// its variants, and then its virtual hosts.
    pub fn changes(self) -> impl Iterator<Item = Change> {
        let url = self.type_url;
        let variants = self.variants.into_iter();
        let variants = variants.map(move |variant| Change::Upsert(url.clone(), Arc::new(variant)));

        let vhds = TypeUrl::new(types::VIRTUAL_HOST);
        let hosts = self.hosts.into_iter();
        let hosts = hosts.map(move |host| Change::Upsert(vhds.clone(), Arc::new(host.resource)));
        variants.chain(hosts)
    }
}

/// The route configuration that virtual hosts are written in.
#[derive(Clone, Debug)]
pub struct Parent {
    pub(super) name: Name,
    /// The constraints in its wrapper.
    pub(super) written: Option<Constraints>,
    /// The clients of the route configuration.
    pub(super) constraints: Option<Constraints>,
    pub(super) index: usize,
    pub(super) wrapped: bool,
}

impl Parent {
    /// Returns the constraints in the wrapper of the route configuration.
    #[must_use]
    pub fn written(&self) -> Option<&Constraints> {
        self.written.as_ref()
    }

    /// Returns the place of the route configuration.
    #[must_use]
    pub fn spot(&self) -> Spot {
        Spot {
            index: self.index,
            wrapped: self.wrapped,
            host: None,
        }
    }
}
