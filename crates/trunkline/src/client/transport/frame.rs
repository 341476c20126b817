//! Messages of gRPC as bytes of a stream, and back.

use std::collections::VecDeque;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::StreamError;

/// The bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Returns a message with its prefix, uncompressed.
pub(super) fn with_prefix(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(0);
    // Requests are far from four gigabytes.
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.freeze()
}

/// Bytes of a stream that are not yet a message.
#[derive(Debug)]
pub(super) struct ReceiveBuffer {
    parts: VecDeque<Bytes>,
    len: usize,
    /// The longest message.
    limit: usize,
}

impl ReceiveBuffer {
    /// Makes an empty buffer for messages of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        let parts = VecDeque::new();
        Self {
            parts,
            len: 0,
            limit,
        }
    }

    /// Adds the next bytes of the stream.
    pub(super) fn push(&mut self, part: Bytes) {
        self.len += part.len();
        if !part.is_empty() {
            self.parts.push_back(part);
        }
    }

    /// Returns whether no part of a message is here.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the next message; `None` if not all of it is there.
    ///
    /// # Errors
    /// The message is compressed, or longer than the limit.
    pub(super) fn take_message(&mut self) -> Result<Option<Bytes>, StreamError> {
        if self.len < PREFIX {
            return Ok(None);
        }
        let [compressed, a, b, c, d] = self.prefix();
        let length = u32::from_be_bytes([a, b, c, d]);
        if compressed != 0 {
            return Err(StreamError::Compressed);
        }
        let len = length as usize;
        if len > self.limit {
            return Err(StreamError::TooLong {
                length: length.into(),
                limit: self.limit,
            });
        }
        if self.len - PREFIX < len {
            return Ok(None);
        }
        self.take(PREFIX);
        Ok(Some(self.take(len)))
    }

    /// Returns the prefix of the next message. The caller has checked that it is
    /// there.
    fn prefix(&self) -> [u8; PREFIX] {
        if let Some(prefix) = self.parts.front().and_then(|part| part.first_chunk()) {
            return *prefix;
        }
        let mut prefix = [0; PREFIX];
        let bytes = self.parts.iter().flatten();
        for (to, from) in prefix.iter_mut().zip(bytes) {
            *to = *from;
        }
        prefix
    }

    /// Takes the first `len` bytes, shared if they came in one piece. The caller
    /// has checked that they are there.
    fn take(&mut self, len: usize) -> Bytes {
        self.len -= len;
        if let Some(first) = self.parts.front_mut()
            && first.len() >= len
        {
            let bytes = first.split_to(len);
            if first.is_empty() {
                self.parts.pop_front();
            }
            return bytes;
        }

        let mut message = BytesMut::with_capacity(len);
        while message.len() < len {
            let Some(first) = self.parts.front_mut() else {
                break;
            };
            let count = first.len().min(len - message.len());
            message.put_slice(&first[..count]);
            first.advance(count);
            if first.is_empty() {
                self.parts.pop_front();
            }
        }
        message.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_however_they_are_cut() {
        let messages: [&[u8]; 3] = [b"first", b"", b"and a longer one"];
        let all: Vec<u8> = messages
            .iter()
            .flat_map(|m| with_prefix(m).to_vec())
            .collect();
        for cut in 1..all.len() {
            let mut received = ReceiveBuffer::new(100);
            let mut found = Vec::new();
            for part in all.chunks(cut) {
                received.push(Bytes::copy_from_slice(part));
                while let Some(message) = received.take_message().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, messages, "cut by {cut}");
            assert!(received.is_empty());
        }
    }

    #[test]
    fn a_message_in_one_piece_is_not_copied() {
        let whole = with_prefix(b"message");
        let mut received = ReceiveBuffer::new(100);
        received.push(whole.clone());
        let message = received.take_message().unwrap().unwrap();
        assert!(whole.as_ptr_range().contains(&message.as_ptr()));
    }

    #[test]
    fn a_message_that_is_compressed_or_too_long_is_an_error() {
        let mut received = ReceiveBuffer::new(100);
        received.push(Bytes::from_static(b"\x01\0\0\0\0"));
        assert!(matches!(
            received.take_message(),
            Err(StreamError::Compressed)
        ));
        let mut received = ReceiveBuffer::new(100);
        received.push(Bytes::from_static(b"\0\0\0\0\x65"));
        let long = received.take_message();
        assert!(matches!(
            long,
            Err(StreamError::TooLong { length: 101, .. })
        ));
    }
}
