//! Responses that are larger than gRPC accepts by default (S80).
//!
//! gRPC ends a stream over a message beyond its limit, reconnects, subscribes
//! again, and is sent the same, for ever; an operator rarely sees its log. A
//! response that can be split is split below the limit. One large resource or a
//! whole set cannot; it is sent all the same, since the limit may have been
//! raised, and reported.

use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_core::resource_list::ResourceList;

use super::report::{Oversized, Report};
use super::stream::Stream;

/// The default limit of gRPC. Envoy's own client accepts more.
const DEFAULT_LIMIT: usize = 4 << 20;

impl Stream {
    /// Reports a response if it is larger than gRPC accepts by default, and
    /// notes its size until it is acknowledged. To be called for clients other
    /// than Envoy.
    pub(super) fn report_if_oversized(
        &self,
        type_url: &TypeUrl,
        nonce: &Nonce,
        resources: &ResourceList,
        bytes: usize,
    ) {
        if bytes <= DEFAULT_LIMIT {
            return;
        }
        self.lock().revisions.note_oversized(type_url, nonce, bytes);
        let resource_list = resources.iter().map(|delivered| &delivered.resource);
        self.report(Report::Oversized(Oversized {
            type_url,
            bytes,
            limit: DEFAULT_LIMIT,
            resources: resources.len(),
            largest: resource_list.max_by_key(|resource| resource.wire_size()),
        }));
    }
}
