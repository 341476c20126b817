//! Questions that are cheap to ask: about clients, contents and services.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use super::readers::subscribe;
use crate::door::{Door, Protocol};
use crate::error::Result;
use crate::field::Field;
use crate::peer::Peer;
use crate::wire::{self, DeltaRequest, ENDPOINTS, ReflectionRequest, StatusRequest};

/// Asks CSDS for nodes that match regexes of which each is large when compiled,
/// and none is like another.
pub(super) async fn regexes(field: Field) {
    let attackers = field.pick(50, 4);
    field
        .crowd(attackers, |index, field| async move {
            for asked in 0.. {
                if field.is_over() {
                    break;
                }
                let regex = format!(r"x{index}y{asked}((\w{{1,60}}){{1,60}}\PN{{1,40}}){{1,9}}");
                field.note(ask_once(&field, &StatusRequest::by_regex(&regex)).await);
            }
            Ok(())
        })
        .await;
}

/// Asks on a stream of its own: the server ends one whose question it refuses.
async fn ask_once(field: &Field, question: &StatusRequest) -> Result<()> {
    let peer = Peer::connect(&field.xds).await?;
    let mut call = peer.call(wire::STATUS).await?;
    call.send(question).await?;
    field.note_taken(1);
    call.read().await.map(drop)
}

/// Asks CSDS about clients that hold much, and does not read the answer.
pub(super) async fn status_unread(field: Field) {
    let (clients, attackers) = (field.pick(20, 2), field.pick(60, 6));
    let holders = field.crowd(clients, |index, field| async move {
        let peer = Peer::connect(&field.xds).await?;
        let mut call = subscribe(&peer, index).await?;
        loop {
            call.read().await?;
        }
    });
    let askers = field.crowd(attackers, |_, field| async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let peer = Peer::with_windows(&field.xds, 65_535, 65_535).await?;
        let mut call = peer.call(wire::STATUS).await?;
        call.send(&StatusRequest::by_regex(".*")).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        peer.freeze();
        field.note_taken(1);
        field.hold().await;
        Ok(())
    });
    tokio::join!(holders, askers);
}

/// Asks CSDS about a client that subscribes to a million names.
pub(super) async fn status_names(field: Field) {
    let (requests, each) = (field.pick(20, 2), field.pick(50_000, 1_000));
    let holder = field.crowd(1, |_, field| async move {
        let peer = Peer::connect(&field.xds).await?;
        let mut call = peer.call(wire::DELTA).await?;
        for request in 0..requests {
            let names = (0..each).map(|n| format!("held-{request}-{n}")).collect();
            let request = DeltaRequest::first("holder", ENDPOINTS, names);
            call.send(&request).await?;
        }
        loop {
            call.read().await?;
        }
    });
    let askers = field.crowd(8, |_, field| async move {
        while !field.is_over() {
            field.note(ask_once(&field, &StatusRequest::by_regex("holder")).await);
        }
        Ok(())
    });
    tokio::join!(holder, askers);
}

/// Gets large pages of the admin address, and does not read them.
pub(super) async fn dump_unread(field: Field) {
    const PAGES: [&str; 3] = [
        "GET /config_dump HTTP/1.1\r\n",
        "GET /api/v1/resources HTTP/1.1\r\n",
        "GET /debug/clients HTTP/1.1\r\n",
    ];
    let admin = field.admin.clone();
    unread(field, admin, |index| {
        let page = PAGES[index % PAGES.len()];
        format!("{page}host: localhost\r\n\r\n")
    })
    .await;
}

/// Polls all listeners by REST, and does not read them.
pub(super) async fn rest_unread(field: Field) {
    let xds = field.xds.clone();
    unread(field, xds, |index| {
        let body = format!("{{\"node\":{{\"id\":\"rest-{index}\"}}}}");
        format!(
            "POST /v3/discovery:listeners HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    })
    .await;
}

/// Writes a request on each of many connections, twenty of them in a row, and
/// reads no answer.
async fn unread(field: Field, door: Door, request: impl Fn(usize) -> String) {
    let attackers = field.pick(100, 10);
    let unread = field.crowd(attackers, |index, field| {
        let (door, request) = (door.clone(), request(index).repeat(20));
        async move {
            let mut socket = door.enter(Protocol::Http1).await?;
            socket.write_all(request.as_bytes()).await?;
            field.note_taken(1);
            field.hold().await;
            Ok(())
        }
    });
    unread.await;
}

/// Asks CSDS about all clients again and again, and reads the answers.
pub(super) async fn status_flood(field: Field) {
    flood(field, wire::STATUS, |_| {
        wire::frame(&StatusRequest::default())
    })
    .await;
}

/// Asks for the descriptors of services again and again.
pub(super) async fn reflection_flood(field: Field) {
    const SYMBOLS: [&str; 2] = [
        "envoy.service.discovery.v3.AggregatedDiscoveryService",
        "envoy.service.status.v3.ClientStatusDiscoveryService",
    ];
    flood(field, wire::REFLECTION, |asked| {
        let symbol = SYMBOLS[asked % SYMBOLS.len()].to_owned();
        wire::frame(&ReflectionRequest { symbol })
    })
    .await;
}

async fn flood(
    field: Field,
    path: &'static str,
    question: impl Fn(usize) -> bytes::Bytes + Copy + Send + 'static,
) {
    let attackers = field.pick(50, 5);
    let asked = field.crowd(attackers, |_, field| async move {
        let peer = Peer::connect(&field.xds).await?;
        let mut call = peer.call(path).await?;
        let mut asked = 0;
        while !field.is_over() {
            call.send_bytes(question(asked)).await?;
            asked += 1;
            field.note_taken(1);
            read_some(&mut call).await?;
        }
        Ok(())
    });
    asked.await;
}

/// Reads one part of an answer; a question that is not answered in a second does
/// not keep the attacker.
async fn read_some(call: &mut crate::peer::Call) -> Result<()> {
    match tokio::time::timeout(Duration::from_secs(1), call.read()).await {
        Ok(read) => read.map(drop),
        Err(_) => Ok(()),
    }
}
