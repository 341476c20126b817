//! The resources of a state-of-the-world response: a stream's own, or a whole
//! set that many streams get.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::message::Delivered;

/// A list of resources; clones share it.
#[derive(Clone)]
pub enum Set {
    /// Made for one stream.
    Own(Vec<Delivered>),
    /// Made once for all streams that see the same.
    Shared(Arc<Whole>),
}

/// A whole set, and what it looks like on the wire once somebody has written
/// it.
pub struct Whole {
    resources: Vec<Delivered>,
    written: OnceLock<Vec<Bytes>>,
}

impl Whole {
    pub(crate) fn new(resources: Vec<Delivered>) -> Self {
        Self {
            resources,
            written: OnceLock::new(),
        }
    }

    /// The resources as pieces of a response, written by whoever needs them
    /// first. What a transport makes of them is its own matter.
    pub fn written(&self, write: impl FnOnce(&[Delivered]) -> Vec<Bytes>) -> &[Bytes] {
        self.written.get_or_init(|| write(&self.resources))
    }
}

impl Deref for Set {
    type Target = [Delivered];

    fn deref(&self) -> &[Delivered] {
        match self {
            Self::Own(resources) => resources,
            Self::Shared(whole) => &whole.resources,
        }
    }
}

impl From<Vec<Delivered>> for Set {
    fn from(resources: Vec<Delivered>) -> Self {
        Self::Own(resources)
    }
}

impl FromIterator<Delivered> for Set {
    fn from_iter<I: IntoIterator<Item = Delivered>>(resources: I) -> Self {
        Self::Own(resources.into_iter().collect())
    }
}

/// What is added to a shared list makes it a list of one's own.
impl Extend<Delivered> for Set {
    fn extend<I: IntoIterator<Item = Delivered>>(&mut self, more: I) {
        let mut own = self.to_vec();
        own.extend(more);
        *self = Self::Own(own);
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Set {}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.resources).finish()
    }
}
