//! The role of the server in the Mesh Configuration Protocol, as JSON.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use trunkline::mcp::{
    CollectionStatus, RolloutStatus, SinkStatus, SourceStatus, SourceStreamStatus,
};

use super::Shared;
use crate::mcp::{Role, Status};

/// `GET /api/v1/mcp`: shows the sinks of a source, or the collections of a
/// sink; `null` if the server is neither.
pub(super) async fn show(State(admin): State<Shared>) -> Response {
    let shown = match &admin.role {
        None => Value::Null,
        Some(role) => match role.status() {
            Status::Sink(status) => show_sink(&status),
            Status::Source(status) => show_source(role, &status),
        },
    };
    axum::Json(shown).into_response()
}

/// Shows the collections of a sink, each with its state and the errors of its
/// last update.
fn show_sink(status: &SinkStatus) -> Value {
    let collections = status.collections.iter().map(|(name, collection)| {
        let CollectionStatus {
            held,
            accepted,
            rejected,
            faults,
        } = collection;
        json!({
            "collection": name.as_str(),
            "status": match (faults.is_empty(), accepted) {
                (false, _) => "NACKED",
                (true, 0) => "AWAITED",
                (true, _) => "SYNCED",
            },
            "resources": held,
            "accepted": accepted,
            "rejected": rejected,
            "errors": faults,
        })
    });

    json!({
        "role": "sink",
        "source": status.source,
        "collections": collections.collect::<Vec<_>>(),
    })
}

/// Shows the collections of a source, its sinks and the roll-out.
fn show_source(role: &Role, status: &SourceStatus) -> Value {
    let collections = match role {
        Role::Source(source) => source.collections(),
        Role::Sink(_) => Default::default(),
    };
    let collections = collections.iter();
    let collections =
        collections.map(|(name, count)| json!({"collection": name.as_str(), "resources": count}));

    let sinks = status.streams.iter().map(show_stream);

    json!({
        "role": "source",
        "collections": collections.collect::<Vec<_>>(),
        "sinks": sinks.collect::<Vec<_>>(),
        "rollout": status.rollout.as_ref().map(show_rollout),
        "nacks": status.nacks,
        "stale": status.stale,
    })
}

/// Shows the stage of a roll-out, with what it waits for or was stopped by.
fn show_rollout(rollout: &RolloutStatus) -> Value {
    match rollout {
        RolloutStatus::Promoted => json!({"stage": "PROMOTED"}),
        RolloutStatus::OnCanaries { canaries } => {
            json!({"stage": "ON CANARIES", "canaries": canaries})
        }
        RolloutStatus::Soaking(remaining_time) => {
            json!({"stage": "SOAKING", "left_seconds": remaining_time.as_secs()})
        }
        RolloutStatus::Stopped { canary, reason } => {
            json!({"stage": "STOPPED", "canary": canary, "error": reason})
        }
    }
}

/// Shows a sink of a source, with the collections that are pending or rejected.
fn show_stream(stream: &SourceStreamStatus) -> Value {
    let SourceStreamStatus {
        peer,
        node,
        is_canary,
        is_current,
        pending,
        rejected,
    } = stream;

    let rejected = rejected.iter();
    let rejected =
        rejected.map(|(name, reason)| json!({"collection": name.as_str(), "error": reason}));
    let rejected: Vec<Value> = rejected.collect();
    json!({
        "node": node.id,
        "annotations": node.annotations,
        "address": peer,
        "canary": is_canary,
        "status": match (rejected.is_empty(), is_current) {
            (false, _) => "NACKED",
            (true, false) => "STALE",
            (true, true) => "SYNCED",
        },
        "pending": pending.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
        "rejected": rejected,
    })
}
