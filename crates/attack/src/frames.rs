//! HTTP/2 frame by frame, for manners that no library has.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

pub(crate) const DATA: u8 = 0;
const HEADERS: u8 = 1;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// An ACK of settings or of a ping.
pub(crate) const ACK: u8 = 1;
/// All headers are in the frame.
const END_HEADERS: u8 = 4;
/// The setting of the window that each stream begins with.
const INITIAL_WINDOW: u16 = 4;

/// A frame that was received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Bytes,
}

/// The beginning of a connection whose streams have windows of this size.
pub(crate) fn preface(window: u32) -> Bytes {
    let mut setting = BytesMut::new();
    setting.put_u16(INITIAL_WINDOW);
    setting.put_u32(window);
    let mut bytes = BytesMut::from(&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..]);
    bytes.put(frame(SETTINGS, 0, 0, &setting));
    bytes.freeze()
}

/// A gRPC call with its first message.
pub(crate) fn call(stream: u32, path: &str, message: &[u8]) -> Bytes {
    // Headers by their number in HPACK's table, or as plain text.
    let mut headers = BytesMut::from(&[0x83, 0x86][..]);
    literal(&mut headers, &[0x04], path);
    literal(&mut headers, &[0x01], "trunkline");
    literal(&mut headers, &[0x0f, 0x10], "application/grpc");
    literal(&mut headers, b"\x00\x02te", "trailers");
    let mut bytes = BytesMut::from(&frame(HEADERS, END_HEADERS, stream, &headers)[..]);
    bytes.put(frame(DATA, 0, stream, message));
    bytes.freeze()
}

/// A header that is not put into the table; names and values here are short.
fn literal(headers: &mut BytesMut, name: &[u8], value: &str) {
    headers.put_slice(name);
    headers.put_u8(u8::try_from(value.len().min(126)).unwrap_or_default());
    headers.put_slice(&value.as_bytes()[..value.len().min(126)]);
}

/// Opens the window of a stream, or with stream 0 of the connection.
pub(crate) fn window_update(stream: u32, bytes: u32) -> Bytes {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// One frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Bytes {
    let length = u32::try_from(payload.len()).unwrap_or_default();
    let mut bytes = BytesMut::with_capacity(9 + payload.len());
    bytes.put_slice(&length.to_be_bytes()[1..]);
    bytes.put_u8(kind);
    bytes.put_u8(flags);
    bytes.put_u32(stream);
    bytes.put_slice(payload);
    bytes.freeze()
}

/// Takes the first whole frame off the bytes that were received so far.
pub(crate) fn take(received: &mut BytesMut) -> Option<Frame> {
    let head = received.get(..9)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    if received.len() < 9 + length {
        return None;
    }
    let mut head = received.split_to(9).freeze();
    head.advance(3);
    Some(Frame {
        kind: head.get_u8(),
        flags: head.get_u8(),
        stream: head.get_u32() & 0x7fff_ffff,
        payload: received.split_to(length).freeze(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_when_it_is_whole() {
        let whole = frame(PING, ACK, 0, b"12345678");
        let mut received = BytesMut::from(&whole[..16]);
        assert_eq!(take(&mut received), None);
        received.put_slice(&whole[16..]);
        let taken = take(&mut received).unwrap();
        assert_eq!((taken.kind, taken.flags, taken.stream), (PING, ACK, 0));
        assert_eq!(&taken.payload[..], b"12345678");
        assert!(received.is_empty());
    }
}
