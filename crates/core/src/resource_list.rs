//! The resources of a SotW response: a list for one stream, or a list that many
//! streams share.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::message::WireResource;

/// A list of resources, cheap to clone.
#[derive(Clone)]
pub enum ResourceList {
    /// A list for one stream.
    Own(Vec<WireResource>),
    /// A list made once for all streams that see the same.
    Shared(Arc<SharedList>),
}

/// A shared list, and its encoding once a stream has made it.
pub struct SharedList {
    resources: Vec<WireResource>,
    encoded_pieces: OnceLock<Vec<Bytes>>,
}

impl SharedList {
    /// Makes a list that is not encoded yet.
    pub(crate) fn new(resources: Vec<WireResource>) -> Self {
        Self {
            resources,
            encoded_pieces: OnceLock::new(),
        }
    }

    /// Returns the encoded pieces of a response with these resources. The first
    /// caller encodes them with `write`; the format is the transport's own.
    pub fn encode_once(&self, write: impl FnOnce(&[WireResource]) -> Vec<Bytes>) -> &[Bytes] {
        self.encoded_pieces.get_or_init(|| write(&self.resources))
    }
}

impl Deref for ResourceList {
    type Target = [WireResource];

    /// Returns the resources, whoever has the list.
    fn deref(&self) -> &[WireResource] {
        match self {
            Self::Own(resources) => resources,
            Self::Shared(shared) => &shared.resources,
        }
    }
}

impl From<Vec<WireResource>> for ResourceList {
    fn from(resources: Vec<WireResource>) -> Self {
        Self::Own(resources)
    }
}

impl FromIterator<WireResource> for ResourceList {
    fn from_iter<I: IntoIterator<Item = WireResource>>(resources: I) -> Self {
        Self::Own(resources.into_iter().collect())
    }
}

/// Adding to a shared list copies it first.
impl Extend<WireResource> for ResourceList {
    fn extend<I: IntoIterator<Item = WireResource>>(&mut self, more_resources: I) {
        let mut resources = self.to_vec();
        resources.extend(more_resources);
        *self = Self::Own(resources);
    }
}

impl PartialEq for ResourceList {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ResourceList {}

impl fmt::Debug for ResourceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for SharedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.resources).finish()
    }
}
