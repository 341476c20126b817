//! Subscriptions without measure: names, globs, locators.

use std::time::Duration;

use crate::error::Result;
use crate::field::Field;
use crate::peer::{Call, Peer};
use crate::wire::{self, CLUSTER, DeltaRequest, ENDPOINTS, Locator, Node, SotwRequest};

/// Subscribes to a million names in requests of 50 000, leaves, and comes again.
pub(super) async fn million(field: Field) {
    let (requests, each) = (field.pick(20, 2), field.pick(50_000, 5_000));
    field
        .crowd(1, |_, field| async move {
            while !field.is_over() {
                let peer = Peer::connect(&field.xds).await?;
                let mut call = peer.call(wire::DELTA).await?;
                for request in 0..requests {
                    let names = (0..each).map(|n| format!("name-{request}-{n}"));
                    let request = DeltaRequest::first("million", ENDPOINTS, names.collect());
                    call.send(&request).await?;
                    field.note_taken(each);
                }
                // It leaves while the server still has work with it.
                read_for(&mut call, Duration::from_secs(2)).await;
            }
            Ok(())
        })
        .await;
}

/// Subscribes to a million names by the state of the world, of a type whose
/// responses are whole sets, leaves, and comes again.
pub(super) async fn sotw(field: Field) {
    let count = field.pick(1_000_000, 10_000);
    let name = |n: usize| format!("name-{n}");
    let message = wire::frame(&SotwRequest {
        node: Node::new("sotw"),
        names: (0..count).map(name).collect(),
        type_url: CLUSTER.into(),
    });
    field
        .crowd(1, |_, field| {
            let message = message.clone();
            async move {
                while !field.is_over() {
                    let peer = Peer::connect(&field.xds).await?;
                    let mut call = peer.call(wire::SOTW).await?;
                    call.send_bytes(message.clone()).await?;
                    field.note_taken(count);
                    read_for(&mut call, Duration::from_secs(2)).await;
                }
                Ok(())
            }
        })
        .await;
}

/// Subscribes to 248 000 names of 4 KiB.
pub(super) async fn long(field: Field) {
    let (requests, each) = (field.pick(248, 4), field.pick(1_000, 100));
    field
        .crowd(1, |_, field| async move {
            let peer = Peer::connect(&field.xds).await?;
            let mut call = peer.call(wire::DELTA).await?;
            let filler = "n".repeat(4_080);
            for request in 0..requests {
                let names = (0..each).map(|n| format!("{filler}-{request:05}-{n:05}"));
                let request = DeltaRequest::first("long", ENDPOINTS, names.collect());
                call.send(&request).await?;
                field.note_taken(each);
            }
            read_until_over(&mut call, &field).await
        })
        .await;
}

/// Subscribes to many names, and then has another node with each request.
pub(super) async fn node_changes(field: Field) {
    let names = field.pick(100_000, 2_000);
    field
        .crowd(2, |index, field| async move {
            let peer = Peer::connect(&field.xds).await?;
            let mut call = peer.call(wire::DELTA).await?;
            let name = |n: usize| format!("node-{index}-{n}");
            let names = (0..names).map(name).collect();
            call.send(&DeltaRequest::first("node", ENDPOINTS, names))
                .await?;
            let mut changes = 0_u32;
            while !field.is_over() {
                let request = DeltaRequest {
                    node: Some(Node {
                        id: "node".into(),
                        cluster: format!("cluster-{changes}"),
                    }),
                    type_url: ENDPOINTS.into(),
                    ..DeltaRequest::default()
                };
                call.send(&request).await?;
                changes += 1;
                field.note_taken(1);
                read_for(&mut call, Duration::from_millis(2)).await;
            }
            Ok(())
        })
        .await;
}

/// Subscribes to globs on several streams, without end.
pub(super) async fn globs(field: Field) {
    let each = field.pick(20_000, 1_000);
    many(field, each, |stream, n| {
        let kind = "envoy.config.endpoint.v3.ClusterLoadAssignment";
        DeltaName::Plain(format!("xdstp://attack/{kind}/s{stream}/g{n}/*"))
    })
    .await;
}

/// Subscribes to locators, each with parameters of its own, without end.
pub(super) async fn locators(field: Field) {
    let each = field.pick(20_000, 1_000);
    many(field, each, |stream, n| {
        let params = [(format!("key-{stream}"), format!("value-{n}"))];
        DeltaName::Locator(Locator {
            name: "listener-0".into(),
            params: params.into(),
        })
    })
    .await;
}

enum DeltaName {
    Plain(String),
    Locator(Locator),
}

/// Sends requests with so many names each on several streams until it is over.
async fn many(
    field: Field,
    each: usize,
    name: impl Fn(usize, usize) -> DeltaName + Copy + Send + 'static,
) {
    let streams = field.pick(10, 2);
    let requests = field.pick(usize::MAX, 3);
    field
        .crowd(streams, |stream, field| async move {
            let peer = Peer::connect(&field.xds).await?;
            let mut call = peer.call(wire::DELTA).await?;
            for request in 0..requests {
                if field.is_over() {
                    break;
                }
                let mut message = DeltaRequest::first("many", ENDPOINTS, Vec::new());
                for n in request * each..(request + 1) * each {
                    match name(stream, n) {
                        DeltaName::Plain(name) => message.subscribe.push(name),
                        DeltaName::Locator(locator) => message.locators.push(locator),
                    }
                }
                call.send(&message).await?;
                field.note_taken(each);
                read_for(&mut call, Duration::from_millis(50)).await;
            }
            Ok(())
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
