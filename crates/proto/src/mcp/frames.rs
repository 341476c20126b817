//! Responses of a source as lists of shared byte frames.

use bytes::{Bytes, BytesMut};
use prost::Message as _;

use super::message::Resources;
use crate::discovery::Frames;
use crate::discovery::delimited::put_delimiter;
use crate::discovery::frames::assemble;

/// The number of `Resources.resources`.
const RESOURCES: u32 = 3;

/// Encodes a response as frames that share the bytes of its large resources: a
/// sink that does not read costs a source little more than their number.
///
/// ```
/// use bytes::Bytes;
/// use trunkline_proto::discovery::{Inbound as _, Limits};
/// use trunkline_proto::mcp::{Resources, encode_resources};
///
/// let response = Resources {
///     nonce: "1".to_owned(),
///     resources: vec![Bytes::from(vec![0; 10_000]), Bytes::new()],
///     ..Resources::default()
/// };
/// let frames = encode_resources(&response);
/// assert!(frames.iter().any(|frame| frame.as_ptr() == response.resources[0].as_ptr()));
/// ```
#[must_use]
pub fn encode_resources(response: &Resources) -> Frames {
    let head = Resources {
        system_version_info: response.system_version_info.clone(),
        collection: response.collection.clone(),
        resources: Vec::new(),
        removed_resources: response.removed_resources.clone(),
        nonce: response.nonce.clone(),
        incremental: response.incremental,
    };

    // The key and the length of each resource, which come before its bytes.
    let mut buf = BytesMut::new();
    let delimiters = response.resources.iter().map(|body| {
        put_delimiter(&mut buf, RESOURCES, body.len());
        buf.split().freeze()
    });
    let delimiters: Vec<Bytes> = delimiters.collect();

    let pieces = delimiters.iter().zip(&response.resources);
    let pieces = pieces.flat_map(|(delimiter, body)| [delimiter, body]);
    assemble(head.encoded_len(), pieces, |buf| head.encode_raw(buf))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_the_message_whatever_its_resources_are() {
        let response = Resources {
            system_version_info: "s".to_owned(),
            collection: "A".to_owned(),
            resources: [0, 1, 3000, 20, 5000, 2048]
                .map(|len| vec![b'x'; len].into())
                .into(),
            removed_resources: vec!["ns/a".to_owned()],
            nonce: "7".to_owned(),
            incremental: true,
        };
        for message in [response, Resources::default()] {
            let bytes = encode_resources(&message).to_bytes();
            assert_eq!(Resources::decode(bytes).unwrap(), message);
        }
    }
}
