//! The messages of xDS and of the Mesh Configuration Protocol from any bytes: within limits, and the same
//! when they are written and read again.
#![no_main]

use std::fmt::Debug;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use prost::Message;
use trunkline_proto::discovery::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Inbound,
    Limits,
};
use trunkline_proto::mcp::{RequestResources, Resource, Resources};

/// Within reach of a short input.
const SMALL: Limits = Limits {
    message_bytes: 2048,
    entries: 16,
    name_bytes: 8,
    text_bytes: 16,
    error_bytes: 8,
    constraint_depth: 3,
    node_bytes: 128,
};

fuzz_target!(|data: &[u8]| {
    let raw = Bytes::copy_from_slice(data);
    check::<DiscoveryRequest>(&raw);
    check::<DiscoveryResponse>(&raw);
    check::<DeltaDiscoveryRequest>(&raw);
    check::<DeltaDiscoveryResponse>(&raw);
    check::<RequestResources>(&raw);
    check::<Resources>(&raw);
    check::<Resource>(&raw);
});

fn check<M: Inbound + Message + PartialEq + Debug>(raw: &Bytes) {
    for limits in [&Limits::DEFAULT, &SMALL] {
        let Ok(read) = M::decode_checked(raw.clone(), limits) else {
            continue;
        };
        for refusal in read.refused {
            assert!(refusal.len > limits.name_bytes);
        }
        // What was taken out could only make it shorter, so it must pass again.
        let again = Bytes::from(read.message.encode_to_vec());
        let again = M::decode_checked(again, &Limits::DEFAULT).expect("it was just written");
        assert_eq!((again.message, again.refused), (read.message, Vec::new()));
    }
}
