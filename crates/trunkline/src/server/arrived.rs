//! The part of a request's body that arrived, until its messages are taken.

use bytes::{Buf, Bytes, BytesMut};

/// The bytes that gRPC puts before a message: one that says whether the message
/// is compressed, and four of its length.
pub(super) const PREFIX: usize = 5;

/// The bytes that arrived and belong to no message that was taken.
#[derive(Debug)]
pub(super) enum Arrived {
    /// A slice of one piece of the body, or nothing.
    Whole(Bytes),
    /// A copy of several pieces, none of which holds the whole of a message.
    Pieces(BytesMut),
}

impl Default for Arrived {
    fn default() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl Arrived {
    /// Returns the bytes that arrived and were not taken.
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Whole(whole) => whole,
            Self::Pieces(pieces) => pieces,
        }
    }

    /// Replaces a slice by a copy of it. A slice would keep the memory of the
    /// whole piece that arrived, for as long as the rest of a message is waited
    /// for.
    pub(super) fn copy(&mut self) {
        if let Self::Whole(whole) = self
            && !whole.is_empty()
        {
            *self = Self::Pieces(BytesMut::from(&whole[..]));
        }
    }

    /// Adds a piece of the body. It is copied only behind an incomplete
    /// message, into a buffer that doubles as it fills. `max_length` is the
    /// length of that message with its prefix, beyond which no room is made, or
    /// the largest number while the length is not known. Room is never made for
    /// what a client has only announced.
    pub(super) fn add(&mut self, piece: Bytes, max_length: usize) {
        let old_length = self.as_slice().len();
        if old_length == 0 {
            *self = Self::Whole(piece);
            return;
        }
        let length = old_length + piece.len();
        if let Self::Pieces(pieces) = self
            && pieces.capacity() >= length
        {
            pieces.extend_from_slice(&piece);
            return;
        }
        let capacity = (2 * old_length).min(max_length).max(length);
        let mut pieces = BytesMut::with_capacity(capacity);
        pieces.extend_from_slice(self.as_slice());
        pieces.extend_from_slice(&piece);
        *self = Self::Pieces(pieces);
    }

    /// Takes a message of `length` bytes off the front, without its prefix,
    /// which is removed too. The caller has checked that both have arrived.
    pub(super) fn take_message(&mut self, length: usize) -> Bytes {
        let mut bytes = match std::mem::take(self) {
            Self::Whole(whole) => whole,
            Self::Pieces(pieces) => pieces.freeze(),
        };
        bytes.advance(PREFIX);
        let message = bytes.split_to(length);
        // An empty slice could keep the memory of the message alive.
        if !bytes.is_empty() {
            *self = Self::Whole(bytes);
        }
        message
    }
}
