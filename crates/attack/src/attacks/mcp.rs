//! Peers of the Mesh Configuration Protocol: sinks that ask a source for too
//! much, and sources that bring a control plane what nobody can take.

use std::time::Duration;

use bytes::Bytes;

use crate::door::Door;
use crate::error::{Error, Result};
use crate::field::Field;
use crate::peer::{Call, Peer};
use crate::wire::{self, CLUSTER, McpError, McpNode, McpRequest, McpResources};

/// A pause of an attacker that was turned away.
const AGAIN: Duration = Duration::from_millis(50);

/// The attackers that come from one address at once, and some more than a
/// listener takes from it.
const CROWD: usize = 40;

/// Connects more often than a source allows, and says nothing: on connections,
/// and on streams.
pub(super) async fn silent(field: Field) {
    let attackers = field.pick(400, 100);
    field
        .crowd(attackers, |index, field| async move {
            while !field.is_over() {
                match index % 2 {
                    0 => drop(field.xds.raw().await?),
                    _ => {
                        let peer = Peer::connect(&field.xds).await?;
                        let mut call = peer.call(wire::MCP_SOURCE).await?;
                        field.note_taken(1);
                        read_until_over(&mut call, &field).await?;
                    }
                }
                field.pause(AGAIN).await;
            }
            Ok(())
        })
        .await;
}

/// Asks for more collections than there can be, some with names of 16 KiB.
pub(super) async fn collections(field: Field) {
    let each = field.pick(20_000, 1_500);
    again_and_again(
        &field,
        field.pick(CROWD, 2),
        move |index, field| async move {
            let peer = Peer::connect(&field.xds).await?;
            let mut call = peer.call(wire::MCP_SOURCE).await?;
            let long = "c".repeat(16_000);
            for n in 0..each {
                let name = match n % 8 {
                    0 => format!("{long}/{index}/{n}"),
                    _ => format!("attack/{index}/v1/{n}"),
                };
                call.send(&McpRequest::first(&name)).await?;
                field.note_taken(1);
                if field.is_over() {
                    break;
                }
            }
            read_for(&mut call, Duration::from_secs(1)).await;
            Ok(())
        },
    )
    .await;
}

/// Says in each first request that it holds 100 000 resources; and has a node
/// of megabytes at times.
pub(super) async fn claims(field: Field) {
    let requests = field.pick(60, 6);
    let version = |n: usize| (format!("shop/held-{n}"), format!("v{n}"));
    let held = (0..100_000).map(version).collect();
    let mut message = McpRequest {
        versions: held,
        incremental: true,
        ..McpRequest::default()
    };
    let long: Vec<Bytes> = (0..requests)
        .map(|n| {
            message.collection = format!("attack/claims/v1/{n}");
            wire::frame(&message)
        })
        .take(4)
        .collect();
    let annotation = |n: usize| (format!("{n:x}"), String::new());
    let vain = wire::frame(&McpRequest {
        node: Some(McpNode {
            id: "vain".to_owned(),
            annotations: (0..300_000).map(annotation).collect(),
        }),
        ..McpRequest::first(CLUSTER)
    });
    again_and_again(&field, field.pick(CROWD, 3), move |index, field| {
        let (long, vain) = (long.clone(), vain.clone());
        async move {
            let peer = Peer::connect(&field.xds).await?;
            let mut call = peer.call(wire::MCP_SOURCE).await?;
            if index % 3 == 2 {
                call.send_bytes(vain).await?;
                call.read().await?;
                field.note_taken(1);
                return Ok(());
            }
            for n in 0..requests {
                // The name of the collection is the same in some; then the
                // conversation begins anew.
                call.send_bytes(long[n % long.len()].clone()).await?;
                if field.is_over() {
                    break;
                }
            }
            read_for(&mut call, Duration::from_secs(2)).await;
            // Before that, the source may not have read any.
            field.note_taken(requests);
            Ok(())
        }
    })
    .await;
}

/// Rejects every response with 64 KiB of text and for ever again, answers what
/// was never sent, and begins anew without end.
pub(super) async fn nacks(field: Field) {
    let requests = field.pick(100_000, 400);
    again_and_again(
        &field,
        field.pick(CROWD, 4),
        move |index, field| async move {
            let peer = Peer::connect(&field.xds).await?;
            let mut call = peer.call(wire::MCP_SOURCE).await?;
            call.send(&McpRequest::first(CLUSTER)).await?;
            let response: McpResources = call.next().await?;
            let words = "no ".repeat(20_000);
            for n in 0..requests {
                let nonce = match n % 4 {
                    0 => "never".to_owned(),
                    1 if index % 2 == 0 => String::new(),
                    _ => response.nonce.clone(),
                };
                let error = McpError {
                    code: 3,
                    message: words.clone(),
                };
                let nack = McpRequest {
                    nonce,
                    error: Some(error),
                    ..McpRequest::first(CLUSTER)
                };
                call.send(&nack).await?;
                field.note_taken(1);
                if field.is_over() {
                    break;
                }
            }
            Ok(())
        },
    )
    .await;
}

/// Asks for everything, over each of the three protocols, and reads nothing.
pub(super) async fn unread(field: Field) {
    let attackers = field.pick(CROWD, 8);
    let asking = field.crowd(attackers, |index, field| async move {
        let peer = Peer::with_windows(&field.xds, 1, 65_535).await?;
        let path = [wire::MCP_SOURCE, wire::SOTW, wire::DELTA][index % 3];
        let mut call = peer.call(path).await?;
        for collection in ["envoy/cluster/v3/clusters", "envoy/listener/v3/listeners"] {
            match path {
                wire::MCP_SOURCE => call.send(&McpRequest::first(collection)).await?,
                wire::SOTW => {
                    call.send(&wire::SotwRequest {
                        type_url: collection.to_owned(),
                        ..wire::SotwRequest::default()
                    })
                    .await?;
                }
                _ => {
                    let all = vec!["*".to_owned()];
                    let first = wire::DeltaRequest::first("unread", collection, all);
                    call.send(&first).await?;
                }
            }
            field.note_taken(1);
        }
        field.hold().await;
        Ok(())
    });
    let changing = async {
        let mut revision = 1;
        while !field.is_over() {
            let changed = crate::contents::change_listeners(&field.others.admin, 50, revision);
            // One that is refused is seen in the driver's changes too.
            let _ = changed.await;
            revision += 1;
            field.pause(Duration::from_millis(500)).await;
        }
    };
    tokio::join!(asking, changing);
}

/// Begins requests of 8 MiB, and leaves out their last byte.
pub(super) async fn half(field: Field) {
    let size = field.pick(8 << 20, 1 << 20);
    let attackers = field.pick(CROWD, 8);
    let rest = Bytes::from(vec![0x1a_u8; size - 1]);
    field
        .crowd(attackers, |_, field| {
            let rest = rest.clone();
            async move {
                let peer = Peer::connect(&field.xds).await?;
                let mut call = peer.call(wire::MCP_SOURCE).await?;
                field.note_taken(1);
                call.send_bytes(wire::head(0, size)).await?;
                call.send_bytes(rest).await?;
                read_until_over(&mut call, &field).await
            }
        })
        .await;
}

/// Sources that bring a control plane responses made of nothing, of a million
/// removals, of garbage and of half a message, and that read nothing.
pub(super) async fn sources(field: Field) {
    let scale = field.pick(1, 64);
    let nothing = Bytes::from([0x1a, 0].repeat((30 << 20) / scale));
    let removals = |n: usize| format!("shop/gone-{n}");
    let names = wire::frame(&McpResources {
        collection: "envoy/cluster/v3/clusters".to_owned(),
        nonce: "1".to_owned(),
        incremental: true,
        removed: (0..1_000_000 / scale).map(removals).collect(),
        ..McpResources::default()
    });
    let garbage = vec![0xff_u8; 1 << 20];
    let whole = |body: &[u8]| Bytes::from([&wire::head(0, body.len())[..], body].concat());
    let half = whole(&nothing);
    let messages = [
        whole(&nothing),
        names,
        whole(&garbage),
        half.slice(..half.len() - 1),
    ];
    again_and_again(&field, field.pick(CROWD, 8), move |index, field| {
        let message = messages[index % messages.len()].clone();
        async move {
            let peer = Peer::with_windows(&field.mcp, 1, 65_535).await?;
            let mut call = peer.call(wire::MCP_SINK).await?;
            field.note_taken(1);
            call.send_bytes(message).await?;
            let read = async { while call.read().await.is_ok() {} };
            let _ = tokio::time::timeout(Duration::from_secs(1), read).await;
            Err(Error::Ended("a source has no more to say".to_owned()))
        }
    })
    .await;
}

/// Feeds a control plane that waits for a source: each collection is empty.
pub(crate) async fn feed(mcp: &Door, collections: usize) -> Result<()> {
    let peer = Peer::connect(mcp).await?;
    let mut call = peer.call(wire::MCP_SINK).await?;
    let mut taken = 0;
    while taken < collections {
        let said: McpRequest = call.next().await?;
        if !said.nonce.is_empty() {
            taken += 1;
            continue;
        }
        let empty = McpResources {
            collection: said.collection,
            nonce: "1".to_owned(),
            ..McpResources::default()
        };
        call.send(&empty).await?;
    }
    Ok(())
}

/// Lets so many attackers act over and over, also after they were turned away.
async fn again_and_again<F, M>(field: &Field, attackers: usize, attack: F)
where
    F: Fn(usize, Field) -> M + Clone + Send + Sync + 'static,
    M: Future<Output = Result<()>> + Send + 'static,
{
    field
        .crowd(attackers, |index, field| {
            let attack = attack.clone();
            async move {
                while !field.is_over() {
                    field.note(attack(index, field.clone()).await);
                    field.pause(AGAIN).await;
                }
                Ok(())
            }
        })
        .await;
}

/// Reads what comes for a while.
async fn read_for(call: &mut Call, time: Duration) {
    let read = async { while call.read().await.is_ok() {} };
    let _ = tokio::time::timeout(time, read).await;
}

/// Reads what comes until it is over; an error if the server ends the stream.
async fn read_until_over(call: &mut Call, field: &Field) -> Result<()> {
    let read = async {
        loop {
            call.read().await?;
        }
    };
    tokio::select! {
        ended = read => ended,
        () = field.hold() => Ok(()),
    }
}
