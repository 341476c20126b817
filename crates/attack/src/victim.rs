//! The victim: a client of good manners, which subscribes to some clusters and
//! ACKs what it gets. To a source of collections it is a sink that asks over
//! delta.

use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use tokio::task::JoinHandle;

use crate::contents::{CLUSTERS, cluster_name};
use crate::door::Door;
use crate::error::Result;
use crate::ledger::Ledger;
use crate::peer::{Call, Peer};
use crate::wire::{self, CLUSTER, DeltaRequest, DeltaResponse};

/// How long the victim waits before it connects again.
const AGAIN: Duration = Duration::from_millis(200);

/// A victim that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Victim(JoinHandle<()>);

impl Victim {
    pub(crate) fn start(xds: Door, ledger: Arc<Ledger>) -> Self {
        Self(tokio::spawn(async move {
            loop {
                // A stream of the victim's never ends by itself.
                let _ = live(&xds, &ledger).await;
                ledger.blame(|faults| faults.ended += 1);
                tokio::time::sleep(AGAIN).await;
            }
        }))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One stream, until it ends.
async fn live(xds: &Door, ledger: &Ledger) -> Result<()> {
    let peer = Peer::connect(xds).await?;
    let mut call = peer.call(wire::DELTA).await?;
    let names = (0..CLUSTERS).map(cluster_name).collect();
    let first = DeltaRequest::first("victim", CLUSTER, names);
    call.send(&first).await?;
    loop {
        let response: DeltaResponse = call.next().await?;
        read(&response, ledger);
        acknowledge(&mut call, response).await?;
    }
}

fn read(response: &DeltaResponse, ledger: &Ledger) {
    let removed = response.removed.len() as u64;
    ledger.blame(|faults| faults.removed += removed);
    for body in response.resources.iter().filter_map(|r| r.body.as_ref()) {
        let Some(cluster) = read_cluster(body) else {
            continue;
        };
        let index = cluster.name.strip_prefix("victim-");
        let index = index.and_then(|digits| digits.parse().ok());
        if let (Some(index), Ok(revision)) = (index, cluster.alt_stat_name.parse())
            && index < CLUSTERS
        {
            ledger.see(index, revision);
        }
    }
}

/// Reads a cluster; that of a source of collections is within a resource of its
/// protocol.
fn read_cluster(body: &wire::Any) -> Option<wire::Cluster> {
    let mut raw = body.value.clone();
    if body.type_url == wire::MCP_RESOURCE {
        raw = wire::McpResource::decode(raw).ok()?.body?.value;
    }
    wire::Cluster::decode(raw).ok()
}

async fn acknowledge(call: &mut Call, response: DeltaResponse) -> Result<()> {
    let ack = DeltaRequest {
        type_url: response.type_url,
        nonce: response.nonce,
        ..DeltaRequest::default()
    };
    call.send(&ack).await
}
