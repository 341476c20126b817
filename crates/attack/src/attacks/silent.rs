//! Peers that connect and say nothing, or next to nothing.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;

use crate::admin;
use crate::error::Error;
use crate::field::Field;
use crate::peer::{Call, Peer};
use crate::wire;

/// How long `/ready` may take however many connections there are.
const READY: Duration = Duration::from_secs(5);

/// Opens connections at both addresses, and says nothing.
pub(super) async fn connections(field: Field) {
    let mut sockets = Vec::new();
    for index in 0..field.pick(15_000, 300) {
        let door = match index % 2 {
            0 => &field.xds,
            _ => &field.admin,
        };
        match tokio::time::timeout(Duration::from_secs(2), door.raw()).await {
            Ok(Ok(socket)) => sockets.push(socket),
            Ok(Err(error)) => field.note_refused(&error),
            Err(_) => field.note_refused(&Error::Late(2)),
        }
        if field.is_over() {
            break;
        }
    }
    field.note_taken(sockets.len());
    expect_ready(&field).await;
    field.hold().await;
}

/// Opens streams, and makes no request on them.
pub(super) async fn streams(field: Field) {
    let peers = field.pick(100, 4);
    let held = silent_streams(&field, peers, field.pick(100, 20)).await;
    expect_ready(&field).await;
    field.hold().await;
    drop(held);
}

/// Opens more connections and streams than the server takes.
pub(super) async fn full(field: Field) {
    let held = silent_streams(&field, 4, 100).await;
    let mut sockets = Vec::new();
    for _ in 0..400 {
        if let Ok(Ok(socket)) = tokio::time::timeout(READY, field.xds.raw()).await {
            sockets.push(socket);
        }
    }
    expect_ready(&field).await;
    field.hold().await;
    drop((held, sockets));
}

/// Connects to a server behind TLS, and stops in the middle of the handshake, or
/// goes on a byte at a time.
pub(super) async fn half_handshakes(field: Field) {
    // A record of a ClientHello that says it has 512 bytes.
    const HELLO: [u8; 6] = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01];
    let attackers = field.pick(4_000, 60);
    let slow = field.crowd(attackers, |index, field| async move {
        let door = match index % 2 {
            0 => &field.xds,
            _ => &field.admin,
        };
        let mut socket = door.raw().await?;
        if index % 4 != 0 {
            socket.write_all(&HELLO).await?;
        }
        while !field.is_over() {
            if index % 4 == 3 {
                socket.write_all(&[0]).await?;
            }
            field.note_taken(1);
            field.pause(Duration::from_millis(500)).await;
        }
        Ok(())
    });
    let ready = async {
        field.pause(Duration::from_secs(1)).await;
        expect_ready(&field).await;
    };
    tokio::join!(slow, ready);
}

/// Opens so many connections, each with so many streams on which nothing is
/// said.
async fn silent_streams(field: &Field, peers: usize, streams: usize) -> Vec<(Peer, Vec<Call>)> {
    let mut held = Vec::new();
    for _ in 0..peers {
        let peer = match Peer::connect(&field.xds).await {
            Ok(peer) => peer,
            Err(error) => {
                field.note_refused(&error);
                continue;
            }
        };
        let mut calls = Vec::new();
        for _ in 0..streams {
            let call = tokio::time::timeout(Duration::from_secs(1), peer.call(wire::DELTA)).await;
            match call {
                Ok(Ok(call)) => calls.push(call),
                Ok(Err(error)) => field.note_refused(&error),
                Err(_) => break,
            }
        }
        field.note_taken(calls.len());
        held.push((peer, calls));
        if field.is_over() {
            break;
        }
    }
    held
}

/// Expects `/ready` in time.
async fn expect_ready(field: &Field) {
    let begun = Instant::now();
    let answer = admin::get(&field.others.admin, "/ready").await;
    let is_ready = answer.is_ok_and(|answer| answer.status == 200) && begun.elapsed() < READY;
    let seconds = begun.elapsed().as_secs_f32();
    field.expect(
        is_ready,
        format!("/ready: no answer, or after {seconds:.1} s"),
    );
}
