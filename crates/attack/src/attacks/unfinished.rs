//! Messages and bodies that are never complete.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;

use crate::door::{Door, Protocol};
use crate::error::Result;
use crate::field::Field;
use crate::peer::Peer;
use crate::wire;

/// Bytes that are sent over and over, so that the attackers need no memory.
const CHUNK: usize = 1 << 20;

/// Begins a message of 64 MiB on each of 40 streams, and leaves out its last
/// byte.
pub(super) async fn messages(field: Field) {
    let size = field.pick(63 << 20, 1 << 20);
    let attackers = field.pick(40, 8);
    let chunk = Bytes::from(vec![0x1a_u8; CHUNK]);
    let begun = field.crowd(attackers, |_, field| {
        let chunk = chunk.clone();
        async move {
            let peer = Peer::connect(&field.xds).await?;
            let mut call = peer.call(wire::DELTA).await?;
            call.send_bytes(wire::head(0, size)).await?;
            for sent in (0..size).step_by(CHUNK) {
                let rest = (size - 1 - sent).min(CHUNK);
                call.send_bytes(chunk.slice(..rest)).await?;
            }
            // The server may end the stream, and says so.
            field.note_taken(1);
            tokio::select! {
                read = call.read() => read.map(drop),
                () = field.hold() => Ok(()),
            }
        }
    });
    begun.await;
}

/// Begins a body of 60 MB on each of 40 connections to the admin address, and
/// leaves out its last byte.
pub(super) async fn bodies(field: Field) {
    let size = field.pick(60_000_000, 1_000_000);
    let attackers = field.pick(40, 8);
    let chunk = Bytes::from(vec![b'#'; CHUNK]);
    let begun = field.crowd(attackers, |index, field| {
        let chunk = chunk.clone();
        async move {
            let path = ["/api/v1/resources", "/api/v1/explain?type=cds&name=x"][index % 2];
            let mut socket = field.admin.enter(Protocol::Http1).await?;
            socket.write_all(head(path, size).as_bytes()).await?;
            for sent in (0..size).step_by(CHUNK) {
                let rest = (size - 1 - sent).min(CHUNK);
                socket.write_all(&chunk[..rest]).await?;
            }
            field.note_taken(1);
            field.hold().await;
            Ok(())
        }
    });
    begun.await;
}

/// Sends bodies to both addresses, a byte at a time.
pub(super) async fn slow_bodies(field: Field) {
    let attackers = field.pick(1_000, 20);
    let begun = field.crowd(attackers, |index, field| async move {
        match index % 2 {
            0 => drip(&field, &field.admin, "/api/v1/resources").await,
            _ => drip(&field, &field.xds, "/v3/discovery:clusters").await,
        }
    });
    begun.await;
}

async fn drip(field: &Field, door: &Door, path: &str) -> Result<()> {
    let mut socket = door.enter(Protocol::Http1).await?;
    socket.write_all(head(path, 1 << 20).as_bytes()).await?;
    while !field.is_over() {
        socket.write_all(b"#").await?;
        field.note_taken(1);
        field.pause(Duration::from_millis(100)).await;
    }
    Ok(())
}

fn head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
}
