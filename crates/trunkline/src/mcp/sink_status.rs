//! What can be seen of a sink: what it holds, and the alarms that it raised.

use std::collections::BTreeMap;

use trunkline_core::mcp::Verdict;
use trunkline_core::resource::TypeUrl;

/// A sink, and its collections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkStatus {
    /// The address of the source; `None` while there is none.
    pub source: Option<String>,
    /// By name.
    pub collections: BTreeMap<TypeUrl, CollectionStatus>,
}

/// One collection of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionStatus {
    /// The number of resources that are held.
    pub held: usize,
    /// Responses that were accepted.
    pub accepted: u64,
    /// Responses that were rejected (M11).
    pub rejected: u64,
    /// Why the newest response was rejected; empty if it was not.
    pub faults: Vec<String>,
}

impl SinkStatus {
    /// Returns the status of a sink that has no source yet.
    pub(super) fn of(collections: &[TypeUrl]) -> Self {
        let names = collections.iter().cloned();
        Self {
            source: None,
            collections: names
                .map(|name| (name, CollectionStatus::default()))
                .collect(),
        }
    }

    /// Notes a verdict on a response of a collection that now has
    /// `resource_count` resources. A collection that was not asked for is not
    /// noted.
    pub(super) fn note(&mut self, collection: &TypeUrl, resource_count: usize, verdict: &Verdict) {
        let Some(status) = self.collections.get_mut(collection) else {
            return;
        };
        status.held = resource_count;
        match verdict {
            Verdict::Accept => {
                status.accepted += 1;
                status.faults.clear();
            }
            Verdict::Reject(faults) => {
                status.rejected += 1;
                status.faults = faults.iter().map(ToString::to_string).collect();
            }
        }
    }
}
