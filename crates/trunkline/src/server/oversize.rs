//! Responses that are larger than what gRPC takes (S80).
//!
//! gRPC ends a stream over a message beyond its limit, comes back, asks for the
//! same, and is sent the same, for ever; what it logs of that, its operator
//! rarely sees. What can be split is split below the limit. What cannot, one
//! large resource or a whole set, is sent all the same, since the limit may
//! have been raised, and somebody is told.

use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_core::resource_list::ResourceList;

use super::report::{Oversized, Report};
use super::stream::Stream;

/// What gRPC takes by default. Envoy's own client takes more.
const TAKEN: usize = 4 << 20;

impl Stream {
    /// Says that a response is too large, if it is, for a client that is not
    /// Envoy.
    pub(super) fn tell_size(
        &self,
        (type_url, nonce): (&TypeUrl, &Nonce),
        resources: &ResourceList,
        bytes: usize,
    ) {
        if bytes <= TAKEN {
            return;
        }
        self.talk().marks.oversized(type_url, nonce, bytes);
        let largest = resources.iter().map(|delivered| &delivered.resource);
        self.report(Report::Oversized(Oversized {
            type_url,
            bytes,
            limit: TAKEN,
            resources: resources.len(),
            largest: largest.max_by_key(|resource| resource.wire_size()),
        }));
    }
}
