//! The two messages of the protocol, as the machines read and write them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::message::{ErrorDetail, InitialVersions};
use crate::name::Name;
use crate::resource::{Nonce, Resource, TypeUrl, Version};

/// Bytes of an entry of a map, beside its texts.
pub(super) const ENTRY: usize = 64;

/// The identity of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkNode {
    /// The name of the sink.
    pub id: String,
    /// What else is known of it. Canaries are chosen by them (M14).
    pub annotations: BTreeMap<String, String>,
}

impl SinkNode {
    /// Returns the number of bytes that the node takes: its texts, and
    /// [`ENTRY`] for each annotation.
    pub(super) fn weight(&self) -> usize {
        let annotations = self.annotations.iter();
        let bytes = annotations.map(|(key, value)| key.len() + value.len() + ENTRY);
        self.id.len() + bytes.sum::<usize>()
    }
}

/// The message of a sink: the first request for a collection, an ACK or a NACK.
#[derive(Clone, Debug)]
pub struct RequestResources {
    /// Who asks; `None` is as before.
    pub node: Option<SinkNode>,
    /// The collection that it asks for.
    pub collection: TypeUrl,
    /// The versions that the sink holds. They count in the first request for
    /// the collection only (M7).
    pub initial_versions: InitialVersions,
    /// The response that this acknowledges; `None` in a first request.
    pub nonce: Option<Nonce>,
    /// The request is a NACK if there is an error (M3).
    pub error: Option<ErrorDetail>,
    /// The next response may be incremental (M6).
    pub incremental: bool,
}

/// The message of a source: one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// The collection of all its resources.
    pub collection: TypeUrl,
    /// The version of the collection, for people only.
    pub version: Version,
    /// Names this response on its stream.
    pub nonce: Nonce,
    /// The state of the collection, or changes of it.
    pub update: ResourcesUpdate,
}

/// The two forms of an update. Only one of them has a list of removed names,
/// since such a list means nothing in the other (M6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourcesUpdate {
    /// All resources of the collection; a name that is not listed is gone (M8).
    FullState(Vec<Arc<Resource>>),
    /// What is different from what the sink holds.
    Incremental {
        /// New and changed resources.
        resources: Vec<Arc<Resource>>,
        /// Names that are gone.
        removed: Vec<Name>,
    },
}

impl ResourcesUpdate {
    /// Returns the resources that the update lists.
    #[must_use]
    pub fn resources(&self) -> &[Arc<Resource>] {
        match self {
            Self::FullState(resources) | Self::Incremental { resources, .. } => resources,
        }
    }

    /// Returns whether the update has changes only.
    #[must_use]
    pub fn is_incremental(&self) -> bool {
        matches!(self, Self::Incremental { .. })
    }
}
