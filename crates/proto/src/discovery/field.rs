//! An entry of a response's `resources`, encoded once and shared by every stream
//! that gets it.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use super::delimited::{delimited_len, put_delimiter, put_text_field, text_field_len};
use super::message::{Any, Resource};
use super::number::{any, resource, response};

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
    /// Encodes a resource as an entry of a delta response. The entry shares the
    /// bytes of the body. A resource without a body is a heartbeat (S59).
    #[must_use]
    pub fn delta(resource: &Resource) -> Self {
        let mut without_body = resource.clone();
        let any = without_body.resource.take();

        let (any_head, body) = any.as_ref().map(encode_any).unwrap_or_default();

        let any_len = any_head.len() + body.len();
        let body_field_len = match any {
            Some(_) => delimited_len(resource::BODY, any_len),
            None => 0,
        };

        // Protobuf fields may be in any order. The body comes last, so that it
        // is one shared piece.
        let mut head = begin_entry(without_body.encoded_len() + body_field_len, body.len());
        without_body.encode_raw(&mut head);
        if any.is_some() {
            put_delimiter(&mut head, resource::BODY, any_len);
            head.put_slice(&any_head);
        }
        let head = head.freeze();
        Self { head, body }
    }

    /// Encodes a body as an entry of a SotW response; its bytes are shared.
    #[must_use]
    pub fn sotw(any: &Any) -> Self {
        let (any_head, body) = encode_any(any);
        let mut head = begin_entry(any_head.len() + body.len(), body.len());
        head.put_slice(&any_head);
        let head = head.freeze();
        Self { head, body }
    }

    /// Encodes a resource as an entry of a SotW response, in the wrapper that
    /// carries a TTL (S58). Its body is copied.
    #[must_use]
    pub fn sotw_wrapped(resource: &Resource) -> Self {
        Self::sotw(&Any {
            type_url: Resource::TYPE_URL.to_owned(),
            value: resource.encode_to_vec().into(),
        })
    }

    /// Joins entries into one piece, for a set that many streams get whole. The
    /// bodies are copied, but only once for all streams.
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

    /// Returns the pieces of the entry in a response, in order, as
    /// [`encode_delta`](super::encode_delta) and
    /// [`encode_sotw`](super::encode_sotw) take them.
    #[must_use]
    pub fn pieces(&self) -> [&Bytes; 2] {
        [&self.head, &self.body]
    }

    /// Returns the number of bytes on the wire.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Returns whether the entry has no bytes. Only a segment of no entries has
    /// none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the entry in one piece, copied.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        [self.head.as_ref(), self.body.as_ref()].concat().into()
    }
}

/// Begins the head of an entry of `resources` that has `entry_len` bytes, with
/// the key and the length of the entry. The buffer has room for all of its
/// bytes but the `body_len` that are shared.
fn begin_entry(entry_len: usize, body_len: usize) -> BytesMut {
    let field_len = delimited_len(response::RESOURCES, entry_len);
    let mut head = BytesMut::with_capacity(field_len - body_len);
    put_delimiter(&mut head, response::RESOURCES, entry_len);
    head
}

/// Encodes an `Any` in two parts: the bytes before its value, and the value,
/// which is shared. An empty field is left out, by the rules of proto3.
fn encode_any(any: &Any) -> (BytesMut, Bytes) {
    let Any { type_url, value } = any;
    let type_url_len = text_field_len(any::TYPE_URL, type_url);
    let delimiter_len = delimited_len(any::VALUE, value.len()) - value.len();
    let mut head = BytesMut::with_capacity(type_url_len + delimiter_len);
    put_text_field(&mut head, any::TYPE_URL, type_url);
    if !value.is_empty() {
        put_delimiter(&mut head, any::VALUE, value.len());
    }
    (head, value.clone())
}
