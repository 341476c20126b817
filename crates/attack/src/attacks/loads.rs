//! Load reports (LRS) that cost more to keep than to send.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::error::Result;
use crate::field::Field;
use crate::peer::Peer;
use crate::wire::{self, ClusterStats, LoadRequest, Node};

/// The bound of a message of load reports.
const BOUND: usize = 4 << 20;

/// Sends one message after another that is made of empty `ClusterStats`, two
/// bytes each. Half of the attackers stay just below the bound of a message, so
/// that all of it is read; the others are beyond it.
pub(super) async fn empty(field: Field) {
    let below = empty_stats(field.pick(BOUND - 1000, 1 << 20));
    let beyond = empty_stats(4 * BOUND);
    field
        .crowd(4, |index, field| {
            let message = [&below, &beyond][index % 2].clone();
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

/// A message of about so many bytes: a node, and empty `ClusterStats`.
fn empty_stats(size: usize) -> Bytes {
    let node = wire::frame(&LoadRequest {
        node: Node::new("loads"),
        stats: Vec::new(),
    });
    let mut message = BytesMut::from(&node[5..]);
    message.extend(std::iter::repeat_n([0x12, 0x00], size / 2).flatten());
    [wire::head(0, message.len()), message.freeze()]
        .concat()
        .into()
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
