//! How a sink reads and writes the messages of a stream.

use std::collections::BTreeSet;

use bytes::Bytes;
use trunkline_core::mcp::{RequestResources, Resources, ResourcesUpdate};
use trunkline_core::resource::TypeUrl;
use trunkline_proto::discovery::Frames;

use super::link::Wire;
use super::wire::{self, Unreadable};
use super::{delta_xds, xds};

/// The messages of one stream. Delta has no form for a full state: the answer
/// to a request that says nothing is held lists all there is, and is read as
/// one.
#[derive(Debug)]
pub(super) struct SinkCodec {
    wire: Wire,
    /// Over delta, the collections whose next responses list all there is.
    full_states: BTreeSet<TypeUrl>,
}

impl SinkCodec {
    /// Begins a stream whose messages have this form.
    pub(super) fn new(wire: Wire) -> Self {
        Self {
            wire,
            full_states: BTreeSet::new(),
        }
    }

    /// Writes a request in the form of the stream.
    pub(super) fn write_request(&mut self, request: RequestResources) -> Frames {
        match self.wire {
            Wire::Mcp => wire::write_request(request),
            Wire::Xds => xds::write_request(request),
            Wire::DeltaXds => self.write_delta(request),
        }
    }

    /// Writes a request over delta, and remembers whether its response is a
    /// full state: a source that was told that nothing is held goes on listing
    /// all there is until a response is ACKed.
    fn write_delta(&mut self, request: RequestResources) -> Frames {
        let (collection, is_first) = (request.collection.clone(), request.nonce.is_none());
        let is_ack = !is_first && request.error.is_none();
        let (message, holds_nothing) = delta_xds::write_request(request);
        if is_first && holds_nothing {
            self.full_states.insert(collection);
        } else if is_first || is_ack {
            self.full_states.remove(&collection);
        }
        message
    }

    /// Reads a response in the form of the stream.
    pub(super) fn read_resources(&self, message: Bytes) -> Result<Resources, Unreadable> {
        match self.wire {
            Wire::Mcp => wire::read_resources(message),
            Wire::Xds => xds::read_resources(message),
            Wire::DeltaXds => {
                let mut response = delta_xds::read_resources(message)?;
                if self.full_states.contains(&response.collection)
                    && let ResourcesUpdate::Incremental { resources, .. } = response.update
                {
                    response.update = ResourcesUpdate::FullState(resources);
                }
                Ok(response)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trunkline_core::message::InitialVersions;

    use super::*;
    use crate::mcp::{resource, wire::to_core};

    #[test]
    fn m7_an_answer_over_delta_is_a_full_state_until_something_is_held() {
        let mut codec = SinkCodec::new(Wire::DeltaXds);
        let request = |nonce: &str, versions: &[(&str, &str)]| RequestResources {
            node: None,
            collection: "A".into(),
            initial_versions: versions
                .iter()
                .map(|(name, version)| ((*name).into(), (*version).into()))
                .collect::<InitialVersions>(),
            nonce: Some(nonce.into()).filter(|_| !nonce.is_empty()),
            error: None,
            incremental: true,
        };
        let response = Resources {
            collection: "A".into(),
            version: "s".into(),
            nonce: "1".into(),
            update: ResourcesUpdate::Incremental {
                resources: vec![Arc::new(to_core(resource("ns/a", "t/T", "x")))],
                removed: Vec::new(),
            },
        };
        let message = delta_xds::write_resources(&response, "A").to_bytes();
        let is_full = |codec: &SinkCodec| {
            let read = codec.read_resources(message.clone()).unwrap();
            !read.update.is_incremental()
        };
        codec.write_request(request("", &[]));
        assert!(is_full(&codec));
        codec.write_request(request("1", &[]));
        assert!(!is_full(&codec));
        codec.write_request(request("", &[("ns/a", "1")]));
        assert!(!is_full(&codec));
    }
}
