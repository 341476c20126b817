//! How a resource of a tree is told from others.

use std::sync::Arc;

use crate::name::Name;
use crate::params::Params;
use crate::resource::TypeUrl;

/// The identity of a resource in a tree.
///
/// Keys are ordered by type and name first, so the children of a part are found
/// by these two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<S> {
    /// The type.
    pub type_url: TypeUrl,
    /// The name that is subscribed to.
    pub name: Name,
    /// The source of the resource. Two control planes may have the same name.
    pub source: S,
    /// The dynamic parameters that choose among variants (TP2).
    pub params: Params,
    /// The only host whose virtual host counts, and with it the clusters that
    /// it refers to (C52); all if it is `None`. Of routes only.
    pub host: Option<Arc<str>>,
}

impl<S> Key<S> {
    /// Makes the key of a name of a type at a source, without parameters, for
    /// all hosts.
    #[must_use]
    pub fn new(type_url: &str, name: Name, source: S) -> Self {
        Self {
            type_url: type_url.into(),
            name,
            source,
            params: Params::default(),
            host: None,
        }
    }
}
