//! The contents of the attacked server: the victim's clusters, and enough
//! listeners that a wildcard is a burden.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::admin;
use crate::door::Door;
use crate::error::{Error, Result};
use crate::wire::{CLUSTER, LISTENER};

/// How many clusters the victim subscribes to. Each is changed in turn, so that
/// one that is late does not keep the others.
pub(crate) const CLUSTERS: usize = 16;

/// How many listeners there are, and about how many bytes each has: the set is
/// larger than one response.
const LISTENERS: usize = 400;
const LISTENER_BYTES: usize = 16 << 10;

/// The name of a cluster of the victim's.
pub(crate) fn cluster_name(index: usize) -> String {
    format!("victim-{index}")
}

/// Applies all contents.
pub(crate) async fn fill(admin: &Door) -> Result<()> {
    let clusters = (0..CLUSTERS).map(|index| cluster(index, 0));
    let listeners = (0..LISTENERS).map(|index| listener(index, 0));
    apply(admin, clusters.chain(listeners).collect()).await
}

/// Writes one of the victim's clusters with a revision.
pub(crate) async fn change_cluster(admin: &Door, index: usize, revision: u64) -> Result<()> {
    apply(admin, vec![cluster(index, revision)]).await
}

/// Writes some of the listeners anew, for those who subscribe to all.
pub(crate) async fn change_listeners(admin: &Door, count: usize, revision: u64) -> Result<()> {
    let listeners = (0..count.min(LISTENERS)).map(|index| listener(index, revision));
    apply(admin, listeners.collect()).await
}

async fn apply(admin: &Door, resources: Vec<Value>) -> Result<()> {
    let body = json!({ "resources": resources }).to_string();
    let path = "/api/v1/resources?summary=true";
    let answer = admin::post(admin, path, "application/json", Bytes::from(body)).await?;
    match answer.is_good() {
        true => Ok(()),
        false => Err(Error::Refused(format!(
            "{path}: {} {}",
            answer.status,
            answer.text()
        ))),
    }
}

fn cluster(index: usize, revision: u64) -> Value {
    json!({
        "@type": CLUSTER,
        "name": cluster_name(index),
        "alt_stat_name": revision.to_string(),
        "type": "STATIC",
        "connect_timeout": "1s",
    })
}

fn listener(index: usize, revision: u64) -> Value {
    let padding = "x".repeat(LISTENER_BYTES);
    json!({
        "@type": LISTENER,
        "name": format!("listener-{index}"),
        "stat_prefix": format!("r{revision}"),
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 20_000 + index}},
        "metadata": {"filter_metadata": {"padding": {"text": padding}}},
    })
}
