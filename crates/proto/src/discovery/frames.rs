//! Responses as lists of shared byte frames.
//!
//! A resource is encoded once, as the [`Field`](super::Field) that it is in
//! every stream's response; a response is the stream's own small head followed
//! by fields. Large bodies are spliced in by reference, small ones are copied
//! together, because a frame of its own costs a transport more than copying a
//! few hundred bytes.
//!
//! ```text
//! head: nonce, removed … ┐ one frame   ┌ shared body ┐ ┌ small fields, copied ┐ …
//! ```
//!
//! Protobuf lets the fields of a message come in any order and in pieces, so
//! the concatenation of all frames is one valid message, behind the five bytes
//! of the gRPC prefix.

use std::ops::Range;

use bytes::{BufMut, Bytes};
use prost::Message;

use super::delimited::{delimited_len, put_delimiter, put_text_field, text_field_len};
use super::message::{DeltaDiscoveryResponse, DiscoveryResponse};
use super::number::{control_plane, delta_response, response, sotw_response};

/// Bytes from which a piece travels as a frame of its own.
const SPLICE_BYTES: usize = 2048;

/// The bytes of gRPC's prefix of a message: whether it is compressed, and its
/// length.
const PREFIX: usize = 5;

/// A message as frames that share bytes, behind the gRPC prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// Most messages have one frame.
    first: Bytes,
    rest: Vec<Bytes>,
    len: usize,
}

impl Frames {
    /// Encodes a message into one frame, which shares nothing.
    #[must_use]
    pub fn of(message: &impl Message) -> Self {
        let nothing = std::iter::empty();
        assemble(message.encoded_len(), nothing, |buf| {
            message.encode_raw(buf);
        })
    }

    /// Returns the length of the message itself.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the message has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the frames, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Returns the message itself in one piece, copied.
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
    /// Lists the texts that are fields of the response, with their numbers.
    fn texts(&self) -> [(u32, &'a str); 3] {
        [
            (response::VERSION, self.version),
            (response::TYPE_URL, self.type_url),
            (response::NONCE, self.nonce),
        ]
    }

    /// Returns the number of bytes that [`put`](Self::put) writes. The field
    /// number of `control_plane` differs between SotW and delta.
    fn encoded_len(&self, control_plane_number: u32) -> usize {
        let texts = self.texts().into_iter();
        let text_lens = texts.map(|(number, text)| text_field_len(number, text));
        let texts_len: usize = text_lens.sum();
        let control_plane_len = match text_field_len(control_plane::IDENTIFIER, self.identifier) {
            // Without an identifier there is no `control_plane`.
            0 => 0,
            len => delimited_len(control_plane_number, len),
        };
        texts_len + control_plane_len
    }

    /// Writes the fields of the head that are not empty. The identifier is
    /// inside `control_plane`, whose field number differs between SotW and
    /// delta.
    fn put(&self, control_plane_number: u32, output: &mut Vec<u8>) {
        for (number, text) in self.texts() {
            put_text_field(output, number, text);
        }
        if !self.identifier.is_empty() {
            let len = text_field_len(control_plane::IDENTIFIER, self.identifier);
            put_delimiter(output, control_plane_number, len);
            put_text_field(output, control_plane::IDENTIFIER, self.identifier);
        }
    }
}

/// Returns whether a piece is copied, because a frame of its own would cost
/// more.
fn is_small(piece: &Bytes) -> bool {
    piece.len() < SPLICE_BYTES
}

/// Encodes a response: the gRPC prefix, the head, the rest, and the pieces, in
/// this order. All copied bytes go into one buffer of exact size, since every
/// response of every stream is encoded here.
fn encode_frames<'a>(
    head: Head<'_>,
    control_plane_number: u32,
    other_fields: Option<&impl Message>,
    pieces: impl Iterator<Item = &'a Bytes> + Clone,
) -> Frames {
    let rest_len = other_fields.map_or(0, Message::encoded_len);
    let own_len = head.encoded_len(control_plane_number) + rest_len;
    assemble(own_len, pieces, |buf| {
        head.put(control_plane_number, buf);
        if let Some(other_fields) = other_fields {
            other_fields.encode_raw(buf);
        }
    })
}

/// Assembles a message: the gRPC prefix, the `own_len` bytes that `put` writes,
/// and the pieces.
pub(crate) fn assemble<'a>(
    own_len: usize,
    pieces: impl Iterator<Item = &'a Bytes> + Clone,
    put: impl FnOnce(&mut Vec<u8>),
) -> Frames {
    let small_pieces = pieces.clone().filter(|piece| is_small(piece));
    let copied_len = own_len + small_pieces.map(Bytes::len).sum::<usize>();
    let len = own_len + pieces.clone().map(Bytes::len).sum::<usize>();

    let mut buf = Vec::with_capacity(PREFIX + copied_len);
    put_prefix(&mut buf, len);
    put(&mut buf);
    let (first, later_frames) = splice(buf, pieces);
    Frames {
        first,
        rest: later_frames,
        len,
    }
}

/// Writes gRPC's prefix of a message that has `len` bytes and is not
/// compressed.
fn put_prefix(buf: &mut Vec<u8>, len: usize) {
    buf.put_u8(0);
    // A set larger than four gigabytes is beyond gRPC, and beyond any client.
    buf.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
}

/// Appends pieces to the beginning of a message. Small pieces are copied into
/// its buffer; a large piece becomes a frame between two parts of the buffer.
/// Returns the first frame and the others; most messages have only one.
fn splice<'a>(mut buf: Vec<u8>, pieces: impl Iterator<Item = &'a Bytes>) -> (Bytes, Vec<Bytes>) {
    // Each large piece, and the end of the part of the buffer before it.
    let mut large = Vec::new();
    for piece in pieces {
        match is_small(piece) {
            true => buf.extend_from_slice(piece),
            false => large.push((buf.len(), piece)),
        }
    }

    let copied = Bytes::from(buf);
    if large.is_empty() {
        return (copied, Vec::new());
    }
    let mut frames = Vec::with_capacity(2 * large.len() + 1);
    let mut start = 0;
    for (end, piece) in large {
        if start < end {
            frames.push(copied.slice(start..end));
        }
        frames.push(piece.clone());
        start = end;
    }
    if start < copied.len() {
        frames.push(copied.slice(start..));
    }
    (frames.remove(0), frames)
}

/// Encodes a SotW response as frames that share the bytes of `pieces`.
///
/// `rest` has the field that is neither in `head` nor in `pieces`, which is
/// `resource_errors`; most responses have none. Its other fields must be empty:
/// `rest` is encoded unchanged, so they would be in the response twice.
#[must_use]
pub fn encode_sotw<'a>(
    head: Head<'_>,
    rest: Option<&DiscoveryResponse>,
    pieces: impl IntoIterator<Item = &'a Bytes, IntoIter: Clone>,
) -> Frames {
    let control_plane_number = sotw_response::CONTROL_PLANE;
    encode_frames(head, control_plane_number, rest, pieces.into_iter())
}

/// Encodes a delta response as frames that share the bytes of `pieces`.
///
/// `rest` has the fields that are neither in `head` nor in `pieces`:
/// `removed_resources`, `removed_resource_names` and `resource_errors`; most
/// responses have none. Its other fields must be empty: `rest` is encoded
/// unchanged, so they would be in the response twice.
///
/// ```
/// use trunkline_proto::discovery::{
///     Any, Field, Frames, Head, Resource, encode_delta,
/// };
///
/// let body = Any { type_url: "t/x".into(), value: vec![0; 10_000].into() };
/// let resource = Resource { name: "a".into(), resource: Some(body), ..Resource::default() };
/// let shared = Field::delta(&resource);
/// let head = |nonce| Head { nonce, ..Head::default() };
/// let first = encode_delta(head("1"), None, shared.pieces());
/// let second = encode_delta(head("2"), None, shared.pieces());
/// // The responses differ, and the body is in memory once.
/// assert_ne!(first.to_bytes(), second.to_bytes());
/// let body_of = |frames: &Frames| frames.iter().last().map(|frame| frame.as_ptr());
/// assert_eq!(body_of(&first), body_of(&second));
/// ```
#[must_use]
pub fn encode_delta<'a>(
    head: Head<'_>,
    rest: Option<&DeltaDiscoveryResponse>,
    pieces: impl IntoIterator<Item = &'a Bytes, IntoIter: Clone>,
) -> Frames {
    let control_plane_number = delta_response::CONTROL_PLANE;
    encode_frames(head, control_plane_number, rest, pieces.into_iter())
}

/// Cuts a list of fields, given by their lengths, into runs of at most `max`
/// bytes (S44, S80), and returns the indices of each run. A field larger than
/// `max` gets a run of its own, since a field cannot be cut; the sender
/// recognises it by [`Field::len`](super::Field::len).
#[must_use]
pub fn batches(lens: impl IntoIterator<Item = usize>, max: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    // The bytes that the last run can still take.
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
