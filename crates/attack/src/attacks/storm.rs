//! Clients that come and go without rest.

use std::collections::HashMap;

use bytes::Bytes;

use crate::error::Result;
use crate::field::Field;
use crate::peer::Peer;
use crate::wire::{self, DeltaRequest, ENDPOINTS, Node};

/// Reconnects without end, each time with the versions of 10 000 names that the
/// client says it holds.
pub(super) async fn reconnect(field: Field) {
    let names = field.pick(10_000, 500);
    let attackers = field.pick(30, 4);
    let message = returning(names);
    field
        .crowd(attackers, |_, field| {
            let message = message.clone();
            async move {
                while !field.is_over() {
                    once(&field, message.clone()).await?;
                    field.note_taken(1);
                }
                Ok(())
            }
        })
        .await;
}

/// The first request of a client that held so many names.
fn returning(names: usize) -> Bytes {
    let version = |n: usize| (format!("held-{n}"), format!("v{n}"));
    let held: HashMap<_, _> = (0..names).map(version).collect();
    wire::frame(&DeltaRequest {
        node: Node::new("storm"),
        type_url: ENDPOINTS.into(),
        subscribe: held.keys().cloned().collect(),
        initial_versions: held,
        ..DeltaRequest::default()
    })
}

async fn once(field: &Field, message: Bytes) -> Result<()> {
    let peer = Peer::connect(&field.xds).await?;
    let mut call = peer.call(wire::DELTA).await?;
    call.send_bytes(message).await?;
    call.read().await.map(drop)
}

/// Makes small requests without end, each of which is a line of the log.
pub(super) async fn chatter(field: Field) {
    let attackers = field.pick(20, 8);
    field
        .crowd(attackers, |index, field| async move {
            while !field.is_over() {
                let peer = Peer::connect(&field.xds).await?;
                let mut call = peer.call(wire::DELTA).await?;
                for n in 0..200 {
                    let name = format!("chatter-{index}-{n}-{}", "x".repeat(200));
                    let request = DeltaRequest::first("chatter", ENDPOINTS, vec![name]);
                    call.send(&request).await?;
                    field.note_taken(1);
                }
                let answer = std::time::Duration::from_millis(500);
                let _ = tokio::time::timeout(answer, call.read()).await;
            }
            Ok(())
        })
        .await;
}
