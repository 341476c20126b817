//! Load reports (LRS) that cost more to keep than to send.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::error::Result;
use crate::field::Field;
use crate::peer::Peer;
use crate::wire::{self, ClusterStats, LoadRequest, Node};

/// Sends one message after another that is made of empty `ClusterStats`, two
/// bytes each, just below the bound of 16 MiB.
pub(super) async fn empty(field: Field) {
    let size = field.pick(16_000_000, 1 << 20);
    let mut message = BytesMut::new();
    let node = wire::frame(&LoadRequest {
        node: Node::new("loads"),
        stats: Vec::new(),
    });
    message.extend_from_slice(&node[5..]);
    message.extend(std::iter::repeat_n([0x12, 0x00], size / 2).flatten());
    let message = [wire::head(0, message.len()), message.freeze()].concat();
    let message = Bytes::from(message);

    field
        .crowd(2, |_, field| {
            let message = message.clone();
            async move {
                // Whoever is turned away comes again.
                while !field.is_over() {
                    field.note(report_once(&field, message.clone()).await);
                }
                Ok(())
            }
        })
        .await;
}

/// Sends one message, and waits until the server has read it, or ended the
/// stream.
async fn report_once(field: &Field, message: Bytes) -> Result<()> {
    let peer = Peer::connect(&field.xds).await?;
    let mut call = peer.call(wire::LOADS).await?;
    call.send_bytes(message).await?;
    field.note_taken(1);
    match tokio::time::timeout(Duration::from_secs(2), call.read()).await {
        Ok(read) => read.map(drop),
        Err(_) => Ok(()),
    }
}

/// Reports on clusters whose names are made up, on many streams.
pub(super) async fn random(field: Field) {
    let (streams, names) = (field.pick(40, 4), field.pick(2_000, 200));
    field
        .crowd(streams, |index, field| async move {
            while !field.is_over() {
                let peer = Peer::connect(&field.xds).await?;
                let mut call = peer.call(wire::LOADS).await?;
                for _ in 0..20 {
                    let report = report(index, names);
                    call.send(&report).await?;
                    field.note_taken(1);
                }
            }
            Ok(())
        })
        .await;
}

fn report(index: usize, names: usize) -> LoadRequest {
    let stats = (0..names).map(|_| ClusterStats {
        cluster: format!("c-{:032x}", fastrand::u128(..)),
        dropped: 1,
    });
    LoadRequest {
        node: Node::new(format!("loads-{index}")),
        stats: stats.collect(),
    }
}
