//! Clients that ask for much and read little.

use std::time::Duration;

use bytes::{BufMut as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::contents;
use crate::door::Protocol;
use crate::error::{Error, Result};
use crate::field::Field;
use crate::frames::{self, Frame};
use crate::peer::{Call, Peer};
use crate::wire::{self, LISTENER, Node, SotwRequest};

/// The smallest window that a connection begins with.
const NARROW: u32 = 65_535;

/// Subscribes to all listeners on many streams of one connection, with windows
/// of one byte, and reads byte by byte.
pub(super) async fn tiny_windows(field: Field) {
    let streams = u32::try_from(field.pick(400, 40)).unwrap_or_default();
    let reader = field.crowd(1, |_, field| read_bytes(field, streams));
    tokio::join!(reader, churn(&field));
}

/// Opens the streams of one connection, and reads one byte of each after the
/// other.
async fn read_bytes(field: Field, streams: u32) -> Result<()> {
    let mut socket = field.xds.enter(Protocol::Http2).await?;
    socket.write_all(&frames::preface(1)).await?;
    for index in 0..streams {
        let message = wire::frame(&everything(index as usize));
        let call = frames::call(2 * index + 1, wire::SOTW, &message);
        socket.write_all(&call).await?;
    }
    let mut received = BytesMut::new();
    loop {
        socket.read_buf(&mut received).await?;
        let mut answer = BytesMut::new();
        while let Some(frame) = frames::take(&mut received) {
            reply(&frame, &mut answer, &field)?;
        }
        socket.write_all(&answer).await?;
    }
}

/// Answers a frame, as narrowly as it can be done.
fn reply(frame: &Frame, answer: &mut BytesMut, field: &Field) -> Result<()> {
    let (bytes, stream) = (frame.payload.len(), frame.stream);
    match frame.kind {
        frames::DATA if bytes > 0 => {
            field.note_taken(bytes);
            let bytes = u32::try_from(bytes).unwrap_or(1);
            answer.put(frames::window_update(0, bytes));
            answer.put(frames::window_update(stream, bytes));
        }
        frames::SETTINGS | frames::PING if frame.flags & frames::ACK == 0 => {
            let payload: &[u8] = match frame.kind {
                frames::PING => &frame.payload,
                _ => &[],
            };
            answer.put(frames::frame(frame.kind, frames::ACK, 0, payload));
        }
        frames::GO_AWAY => return Err(Error::Ended("GOAWAY".into())),
        frames::RESET => return Err(Error::Ended(format!("RST_STREAM of {stream}"))),
        _ => {}
    }
    Ok(())
}

/// Subscribes to all listeners on 300 connections, and stops reading.
pub(super) async fn never_read(field: Field) {
    let connections = field.pick(300, 30);
    let readers = field.crowd(connections, |index, field| async move {
        let peer = Peer::with_windows(&field.xds, NARROW, NARROW).await?;
        let _call = subscribe(&peer, index).await?;
        // The request has to leave before the connection stands still.
        tokio::time::sleep(Duration::from_millis(300)).await;
        peer.freeze();
        field.note_taken(1);
        field.hold().await;
        Ok(())
    });
    tokio::join!(readers, churn(&field));
}

/// Subscribes to every listener, in state of the world: the response has all of
/// them.
pub(super) async fn subscribe(peer: &Peer, index: usize) -> Result<Call> {
    let mut call = peer.call(wire::SOTW).await?;
    call.send(&everything(index)).await?;
    Ok(call)
}

fn everything(index: usize) -> SotwRequest {
    SotwRequest {
        node: Node::new(format!("reader-{index}")),
        type_url: LISTENER.to_owned(),
        ..SotwRequest::default()
    }
}

/// Changes some listeners twice a second, so that there is always something to
/// push to those who read none of it.
async fn churn(field: &Field) {
    for revision in 1.. {
        field.pause(Duration::from_millis(500)).await;
        if field.is_over() {
            return;
        }
        let _ = contents::change_listeners(&field.others.admin, 10, revision).await;
    }
}
