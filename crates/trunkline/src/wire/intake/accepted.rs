//! What comes of a resource of a file.

use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_proto::Path;
use trunkline_proto::descriptor::types;
use trunkline_proto::text::Spot;

use crate::wire::compact::Doubt;

/// What a resource of a file becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its type, in the spelling that clients use.
    pub type_url: TypeUrl,
    /// What it is called.
    pub name: Name,
    /// The constraints that were written around it. Without them its author
    /// wrote all that there is of this name.
    pub written: Option<Constraints>,
    /// The clients that there is something for; all, if it does not say.
    pub clients: Option<Constraints>,
    /// The resource itself, or the variants that its conditions make of it;
    /// none if they hold for nobody.
    pub variants: Vec<Resource>,
    /// The virtual hosts that were written in it and are resources of their
    /// own: those of a route configuration that has `vhds`, in their order.
    pub hosts: Vec<Host>,
    /// What is hardly meant, and where.
    pub doubts: Vec<(Path, Doubt)>,
}

/// A virtual host that was written in a route configuration, or a variant of
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its number there.
    pub index: usize,
    /// What it became.
    pub resource: Resource,
}

/// What a virtual host of a binary file becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// Itself, or its variants.
    pub resources: Vec<Resource>,
    /// What is hardly meant, and where in it.
    pub doubts: Vec<(Path, Doubt)>,
    /// Where it is.
    pub spot: Spot,
}

impl Accepted {
    /// What has to change for a server to have it.
    pub fn changes(self) -> impl Iterator<Item = Change> {
        let vhds = TypeUrl::new(types::VIRTUAL_HOST);
        let hosts = self.hosts.into_iter();
        let hosts = hosts.map(move |host| Change::Upsert(vhds.clone(), Arc::new(host.resource)));
        let (variants, url) = (self.variants.into_iter(), self.type_url);
        let variants = variants.map(move |one| Change::Upsert(url.clone(), Arc::new(one)));
        variants.chain(hosts)
    }
}

/// The route configuration that virtual hosts are written in.
#[derive(Clone, Debug)]
pub struct Parent {
    pub(super) name: Name,
    /// For whom it is.
    pub(super) constraints: Option<Constraints>,
    pub(super) index: usize,
    pub(super) wrapped: bool,
}

impl Parent {
    /// Where it is.
    #[must_use]
    pub fn spot(&self) -> Spot {
        Spot {
            index: self.index,
            wrapped: self.wrapped,
            host: None,
        }
    }
}
