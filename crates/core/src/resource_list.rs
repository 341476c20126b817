//! The resources of a state-of-the-world response: a stream's own, or a whole
//! set that many streams get.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::message::WireResource;

/// A list of resources; clones share it.
#[derive(Clone)]
pub enum ResourceList {
    /// Made for one stream.
    Own(Vec<WireResource>),
    /// Made once for all streams that see the same.
    Shared(Arc<SharedList>),
}

/// A whole set, and what it looks like on the wire once somebody has written
/// it.
pub struct SharedList {
    resources: Vec<WireResource>,
    encoded: OnceLock<Vec<Bytes>>,
}

impl SharedList {
    pub(crate) fn new(resources: Vec<WireResource>) -> Self {
        Self {
            resources,
            encoded: OnceLock::new(),
        }
    }

    /// The resources as pieces of a response, written by whoever needs them
    /// first. What a transport makes of them is its own matter.
    pub fn encode_once(&self, write: impl FnOnce(&[WireResource]) -> Vec<Bytes>) -> &[Bytes] {
        self.encoded.get_or_init(|| write(&self.resources))
    }
}

impl Deref for ResourceList {
    type Target = [WireResource];

    fn deref(&self) -> &[WireResource] {
        match self {
            Self::Own(resources) => resources,
            Self::Shared(whole) => &whole.resources,
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

/// What is added to a shared list makes it a list of one's own.
impl Extend<WireResource> for ResourceList {
    fn extend<I: IntoIterator<Item = WireResource>>(&mut self, more: I) {
        let mut own = self.to_vec();
        own.extend(more);
        *self = Self::Own(own);
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
