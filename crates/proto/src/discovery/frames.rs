//! Responses as lists of shared byte frames.
//!
//! A resource is encoded once, as the [`Field`] that it is in every stream's
//! response; a response is the stream's own small head followed by fields.
//! Large bodies are spliced in by reference, small ones are copied together,
//! because a frame of its own costs a transport more than copying a few hundred
//! bytes.
//!
//! ```text
//! head: nonce, removed … ┐ one frame   ┌ shared body ┐ ┌ small fields, copied ┐ …
//! ```
//!
//! Protobuf lets the fields of a message come in any order and in pieces, so
//! the concatenation of all frames is one valid message, behind the five bytes
//! of the gRPC prefix.

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
/// The number of `ControlPlane.identifier`.
const IDENTIFIER: u32 = 1;
/// The gRPC prefix of a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

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

    /// Its pieces in a response, in order.
    #[must_use]
    pub fn pieces(&self) -> [&Bytes; 2] {
        [&self.head, &self.body]
    }

    /// Bytes on the wire.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// True only for an empty segment.
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

/// A message as frames that share bytes, behind the gRPC prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// Most messages have one frame.
    first: Bytes,
    rest: Vec<Bytes>,
    len: usize,
}

impl Frames {
    /// The length of the message itself.
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
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// The message itself in one piece, copied.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let frames: Vec<&[u8]> = self.iter().map(AsRef::as_ref).collect();
        Bytes::from(frames.concat()).slice(PREFIX..)
    }
}

impl IntoIterator for Frames {
    type Item = Bytes;
    type IntoIter = std::iter::Chain<std::iter::Once<Bytes>, std::vec::IntoIter<Bytes>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.rest)
    }
}

/// The texts of a response beside its resources.
#[derive(Debug, Clone, Copy, Default)]
pub struct Head<'a> {
    /// The type of the resources.
    pub type_url: &'a str,
    /// The nonce of the response.
    pub nonce: &'a str,
    /// The version of the whole set; in delta, of the contents, and for people
    /// only (S68).
    pub version: &'a str,
    /// The identifier of the server.
    pub identifier: &'a str,
}

impl<'a> Head<'a> {
    /// The texts that are fields of their own.
    fn texts(&self) -> [(u32, &'a str); 3] {
        [(1, self.version), (4, self.type_url), (5, self.nonce)]
    }

    fn len(&self, control_plane: u32) -> usize {
        let texts = self.texts().map(|(number, text)| text_len(number, text));
        let speaker = match text_len(IDENTIFIER, self.identifier) {
            0 => 0,
            len => delimited_len(control_plane, len),
        };
        texts.iter().sum::<usize>() + speaker
    }

    fn write(&self, control_plane: u32, buf: &mut BytesMut) {
        for (number, text) in self.texts() {
            put_text(buf, number, text);
        }
        if !self.identifier.is_empty() {
            delimited(buf, control_plane, text_len(IDENTIFIER, self.identifier));
            put_text(buf, IDENTIFIER, self.identifier);
        }
    }
}

fn text_len(number: u32, text: &str) -> usize {
    match text.len() {
        0 => 0,
        len => delimited_len(number, len),
    }
}

fn put_text(buf: &mut BytesMut, number: u32, text: &str) {
    if !text.is_empty() {
        delimited(buf, number, text.len());
        buf.put_slice(text.as_bytes());
    }
}

/// Whether a piece is copied behind the one before it.
fn is_small(piece: &Bytes) -> bool {
    piece.len() < SPLICE_BYTES
}

/// Writes a message. All copied bytes, the gRPC prefix included, go into one
/// buffer of just the right size: this is done for every stream.
fn encode<'a>(
    head: Head<'_>,
    control_plane: u32,
    rest: &impl Message,
    pieces: impl Iterator<Item = &'a Bytes> + Clone,
) -> Frames {
    let small = pieces.clone().filter(|piece| is_small(piece));
    let copied =
        head.len(control_plane) + rest.encoded_len() + small.map(Bytes::len).sum::<usize>();
    let spliced = pieces.clone().filter(|piece| !is_small(piece));
    let len = copied + spliced.map(Bytes::len).sum::<usize>();

    let mut tail = BytesMut::with_capacity(PREFIX + copied);
    // Not compressed, and the length. A set larger than four gigabytes is
    // beyond gRPC, and beyond any client.
    tail.put_u8(0);
    tail.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    head.write(control_plane, &mut tail);
    rest.encode_raw(&mut tail);
    let mut frames = Vec::new();
    for piece in pieces {
        if is_small(piece) {
            tail.put_slice(piece);
            continue;
        }
        if !tail.is_empty() {
            frames.push(tail.split().freeze());
        }
        frames.push(piece.clone());
    }
    if frames.is_empty() {
        let first = tail.freeze();
        return Frames {
            first,
            rest: frames,
            len,
        };
    }
    if !tail.is_empty() {
        frames.push(tail.freeze());
    }
    Frames {
        first: frames.remove(0),
        rest: frames,
        len,
    }
}

/// A SotW response: the texts of its head, the rest of its fields, and then the
/// shared pieces.
#[must_use]
pub fn encode_sotw<'a>(
    head: Head<'_>,
    rest: &DiscoveryResponse,
    pieces: impl IntoIterator<Item = &'a Bytes, IntoIter: Clone>,
) -> Frames {
    encode(head, 6, rest, pieces.into_iter())
}

/// A delta response: the texts of its head, the rest of its fields, and then
/// the shared pieces.
///
/// ```
/// use trunkline_proto::discovery::{DeltaDiscoveryResponse, Field, Head, Resource, encode_delta};
///
/// let shared = Field::delta(&Resource { name: "a".into(), ..Resource::default() });
/// let head = |nonce| Head { nonce, ..Head::default() };
/// let rest = DeltaDiscoveryResponse::default();
/// let first = encode_delta(head("1"), &rest, shared.pieces());
/// let second = encode_delta(head("2"), &rest, shared.pieces());
/// assert_eq!(first.len(), second.len());
/// ```
#[must_use]
pub fn encode_delta<'a>(
    head: Head<'_>,
    rest: &DeltaDiscoveryResponse,
    pieces: impl IntoIterator<Item = &'a Bytes, IntoIter: Clone>,
) -> Frames {
    encode(head, 7, rest, pieces.into_iter())
}

/// Cuts a list of fields into runs whose bytes stay under `max` (S44, S80). A
/// field that is larger than `max` alone gets a run of its own: it cannot be
/// cut, and the sender knows from [`Field::len`].
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
