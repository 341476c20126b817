//! Responses as lists of shared byte frames.
//!
//! A resource is encoded once, as the [`Field`] of a response that it will be
//! in every stream; a response is the stream's own small head followed by
//! fields. Large bodies are spliced in by reference, small ones are copied
//! together, because a frame of its own costs a transport more than copying a
//! few hundred bytes.
//!
//! ```text
//! head: nonce, removed … ┐ one frame   ┌ shared body ┐ ┌ small fields, copied ┐ …
//! ```
//!
//! Protobuf lets the fields of a message come in any order and in pieces, so
//! the concatenation of all frames is one valid message. The five bytes that
//! gRPC puts before it are the transport's; [`Frames::len`] is what it needs.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len},
};

use super::message::{Any, DeltaDiscoveryResponse, DiscoveryResponse, Resource};

/// Bytes from which a piece travels as a frame of its own.
const SPLICE_BYTES: usize = 2048;

/// The number of `resources` in both responses.
const RESOURCES: u32 = 2;
/// The number of `Resource.resource`.
const RESOURCE_BODY: u32 = 2;
/// The number of `Any.value`.
const ANY_VALUE: u32 = 2;

/// One entry of `resources` (or a segment of them), key and length included:
/// encoded once, shared by every stream that gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Everything before the body.
    head: Bytes,
    /// The encoded resource itself: the bytes of `Any.value`, shared.
    body: Bytes,
}

impl Field {
    /// The entry of a delta response.
    #[must_use]
    pub fn delta(resource: &Resource) -> Self {
        let mut rest = resource.clone();
        let any = rest.resource.take();
        let (any_head, body) = any.as_ref().map(any_head).unwrap_or_default();
        let any_len = any_head.len() + body.len();
        let nested = any.is_some().then_some((RESOURCE_BODY, any_len));
        let own = rest.encoded_len();
        let total = own + nested.map_or(0, |(number, len)| delimited_len(number, len));

        let mut head = BytesMut::with_capacity(delimited_len(RESOURCES, total) - body.len());
        delimited(&mut head, RESOURCES, total);
        rest.encode_raw(&mut head);
        if let Some((number, len)) = nested {
            delimited(&mut head, number, len);
            head.put_slice(&any_head);
        }
        let head = head.freeze();
        Self { head, body }
    }

    /// The entry of a SotW response.
    #[must_use]
    pub fn sotw(any: &Any) -> Self {
        let (any_head, body) = any_head(any);
        let total = any_head.len() + body.len();
        let mut head = BytesMut::with_capacity(any_head.len() + 11);
        delimited(&mut head, RESOURCES, total);
        head.put_slice(&any_head);
        let head = head.freeze();
        Self { head, body }
    }

    /// The entry of a SotW response in the wrapper that carries a TTL (S58).
    #[must_use]
    pub fn sotw_wrapped(resource: &Resource) -> Self {
        Self::sotw(&Any {
            type_url: Resource::TYPE_URL.to_owned(),
            value: resource.encode_to_vec().into(),
        })
    }

    /// Many entries as one piece, for a set that many streams get whole.
    #[must_use]
    pub fn segment<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Self {
        let mut bytes = BytesMut::new();
        for field in fields {
            bytes.put_slice(&field.head);
            bytes.put_slice(&field.body);
        }
        Self {
            head: Bytes::new(),
            body: bytes.freeze(),
        }
    }

    /// What [`Self::to_bytes`] once gave.
    #[must_use]
    pub fn written(body: Bytes) -> Self {
        let head = Bytes::new();
        Self { head, body }
    }

    /// Bytes on the wire.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// True only for a segment of nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry in one piece, copied.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        [self.head.as_ref(), self.body.as_ref()].concat().into()
    }
}

/// The bytes of an `Any` before its value, and the value.
fn any_head(any: &Any) -> (BytesMut, Bytes) {
    let Any { type_url, value } = any;
    let mut head = BytesMut::with_capacity(type_url.len() + 16);
    if !type_url.is_empty() {
        prost::encoding::string::encode(1, type_url, &mut head);
    }
    if !value.is_empty() {
        delimited(&mut head, ANY_VALUE, value.len());
    }
    (head, value.clone())
}

fn delimited(buf: &mut BytesMut, number: u32, len: usize) {
    encode_key(number, WireType::LengthDelimited, buf);
    encode_varint(len as u64, buf);
}

fn delimited_len(number: u32, len: usize) -> usize {
    key_len(number) + encoded_len_varint(len as u64) + len
}

/// A message as frames that share bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames {
    frames: Vec<Bytes>,
    len: usize,
}

impl Frames {
    /// The length of the message.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the message has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The frames, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Bytes] {
        &self.frames
    }

    /// The frames, in order, given away.
    #[must_use]
    pub fn into_vec(self) -> Vec<Bytes> {
        self.frames
    }

    /// The message in one piece, copied.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.frames.concat().into()
    }
}

/// Collects pieces; small neighbours end up in one frame.
struct Builder {
    frames: Vec<Bytes>,
    tail: BytesMut,
    len: usize,
}

impl Builder {
    fn new(head: &impl Message) -> Self {
        let mut tail = BytesMut::with_capacity(head.encoded_len() + SPLICE_BYTES);
        head.encode_raw(&mut tail);
        let len = tail.len();
        let frames = Vec::new();
        Self { frames, tail, len }
    }

    fn push(&mut self, piece: &Bytes) {
        self.len += piece.len();
        if piece.len() < SPLICE_BYTES {
            self.tail.put_slice(piece);
            return;
        }
        self.flush();
        self.frames.push(piece.clone());
    }

    fn flush(&mut self) {
        if !self.tail.is_empty() {
            self.frames.push(self.tail.split().freeze());
        }
    }

    fn finish<'a>(mut self, fields: impl IntoIterator<Item = &'a Field>) -> Frames {
        for field in fields {
            self.push(&field.head);
            self.push(&field.body);
        }
        self.flush();
        let Self { frames, len, .. } = self;
        Frames { frames, len }
    }
}

/// A SotW response: what `head` says, and then the shared fields.
#[must_use]
pub fn encode_sotw<'a>(
    head: &DiscoveryResponse,
    fields: impl IntoIterator<Item = &'a Field>,
) -> Frames {
    Builder::new(head).finish(fields)
}

/// A delta response: what `head` says, and then the shared fields.
///
/// ```
/// use trunkline_proto::discovery::{DeltaDiscoveryResponse, Field, Resource, encode_delta};
///
/// let shared = Field::delta(&Resource { name: "a".into(), ..Resource::default() });
/// let head = |nonce: &str| DeltaDiscoveryResponse { nonce: nonce.into(), ..Default::default() };
/// let first = encode_delta(&head("1"), [&shared]);
/// let second = encode_delta(&head("2"), [&shared]);
/// assert_eq!(first.len(), second.len());
/// ```
#[must_use]
pub fn encode_delta<'a>(
    head: &DeltaDiscoveryResponse,
    fields: impl IntoIterator<Item = &'a Field>,
) -> Frames {
    Builder::new(head).finish(fields)
}

/// Cuts a list of fields into runs whose bytes stay under `max` (S44, S80). A
/// field that is larger than `max` alone gets a run of its own: it cannot be
/// cut, and whoever sends it knows from [`Field::len`].
#[must_use]
pub fn batches(lens: impl IntoIterator<Item = usize>, max: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut room = 0;
    for (index, len) in lens.into_iter().enumerate() {
        match runs.last_mut() {
            Some(run) if len <= room => {
                run.end = index + 1;
                room -= len;
            }
            _ => {
                runs.push(index..index + 1);
                room = max.saturating_sub(len);
            }
        }
    }
    runs
}
