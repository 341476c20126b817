//! Clients that ask for much and read little.

use std::time::Duration;

use crate::contents;
use crate::error::Result;
use crate::field::{Field, Findings};
use crate::peer::{Call, Peer};
use crate::wire::{self, DeltaRequest, LISTENER};

/// The smallest window that a connection begins with.
const NARROW: u32 = 65_535;

/// Subscribes to all listeners on many streams of one connection, with windows
/// of one byte, and reads byte by byte.
pub(super) async fn tiny_windows(field: Field) -> Findings {
    let streams = field.pick(400, 40);
    let mut findings = Findings::default();
    let peer = match Peer::with_windows(&field.xds, 1, NARROW).await {
        Ok(peer) => peer,
        Err(error) => {
            findings.add(Err(error));
            return findings;
        }
    };
    let mut calls = Vec::new();
    for index in 0..streams {
        if field.is_over() {
            break;
        }
        match subscribe(&peer, index).await {
            Ok(call) => calls.push(call),
            Err(error) => {
                findings.add(Err(error));
                break;
            }
        }
    }
    findings.taken = calls.len() as u64;
    let mut readers = tokio::task::JoinSet::new();
    for mut call in calls {
        readers.spawn(async move { while call.read().await.is_ok() {} });
    }
    churn(&field).await;
    findings
}

/// Subscribes to all listeners on 300 connections, and stops reading.
pub(super) async fn never_read(field: Field) -> Findings {
    let connections = field.pick(300, 30);
    let readers = field.crowd(connections, |index, field| async move {
        let peer = Peer::with_windows(&field.xds, NARROW, NARROW).await?;
        let _call = subscribe(&peer, index).await?;
        // The request has to leave before the connection stands still.
        tokio::time::sleep(Duration::from_millis(300)).await;
        peer.freeze();
        field.hold().await;
        Ok(1)
    });
    let (mut findings, ()) = tokio::join!(readers, churn(&field));
    findings.taken = findings.taken.max(connections as u64 - findings.refused);
    findings
}

/// Subscribes to every listener.
pub(super) async fn subscribe(peer: &Peer, index: usize) -> Result<Call> {
    let mut call = peer.call(wire::DELTA).await?;
    let all = vec!["*".to_owned()];
    let first = DeltaRequest::first(&format!("reader-{index}"), LISTENER, all);
    call.send(&first).await?;
    Ok(call)
}

/// Changes some listeners twice a second, so that there is always something to
/// push to those who read none of it.
async fn churn(field: &Field) {
    for revision in 1.. {
        field.pause(Duration::from_millis(500)).await;
        if field.is_over() {
            return;
        }
        let _ = contents::change_listeners(&field.admin, 10, revision).await;
    }
}
