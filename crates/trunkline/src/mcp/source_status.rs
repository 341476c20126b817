//! What can be seen of a source: its sinks, and the alarms that they raised.

use std::time::Duration;

use trunkline_core::Moment;
use trunkline_core::mcp::{SinkNode, Stage};
use trunkline_core::resource::TypeUrl;

use super::source::State;

/// A source, its streams and counters.
#[derive(Clone, Debug, Default)]
pub struct SourceStatus {
    /// NACKs so far, on all streams (M11).
    pub nacks: u64,
    /// Requests that were ignored because of their nonce (M4).
    pub stale: u64,
    /// How far the newest contents are; `None` without canaries.
    pub rollout: Option<RolloutStatus>,
    /// The streams that are open.
    pub streams: Vec<SourceStreamStatus>,
}

/// One stream of a source.
#[derive(Clone, Debug)]
pub struct SourceStreamStatus {
    /// The address of the sink.
    pub peer: String,
    /// Who the sink says it is.
    pub node: SinkNode,
    /// Whether it gets updates before others.
    pub is_canary: bool,
    /// Whether the sink has ACKed the newest state of all that it asked for.
    pub is_current: bool,
    /// Collections of which a response is not acknowledged.
    pub pending: Vec<TypeUrl>,
    /// Collections whose newest state the sink has rejected, and why: an alarm
    /// (M5).
    pub rejected: Vec<(TypeUrl, String)>,
}

/// How far the newest contents are (M14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutStatus {
    /// Every sink gets them.
    Promoted,
    /// Canaries get them. None may be connected: then nothing goes on.
    OnCanaries {
        /// The canaries that are connected.
        canaries: usize,
    },
    /// All canaries have taken them; this time is left.
    Soaking(Duration),
    /// A canary has rejected them: an alarm. They go to no other sink.
    Stopped {
        /// The name of the canary.
        canary: String,
        /// The collection, and its words.
        reason: String,
    },
}

impl SourceStatus {
    /// Returns the status of a source. Counters of streams that have ended are
    /// in it.
    pub(super) fn of(state: &State, now: Moment) -> Self {
        let mut status = state.ended_streams.clone();
        let publisher = &state.publisher;
        for (stream, open) in &state.streams {
            // A stream without a request has no sink yet.
            let Some((machine, is_canary)) = publisher.stream(*stream) else {
                continue;
            };
            let db = publisher.database(*stream);
            status.nacks += machine.nacks();
            status.stale += machine.stale();
            let rejections = machine.rejected(db);
            let rejections = rejections.map(|(name, reason)| (name.clone(), reason.to_owned()));
            status.streams.push(SourceStreamStatus {
                peer: open.peer.clone(),
                node: machine.node().clone(),
                is_canary,
                is_current: machine.is_current(db),
                pending: machine.pending().cloned().collect(),
                rejected: rejections.collect(),
            });
        }
        let canaries = status.streams.iter().filter(|stream| stream.is_canary);
        let canaries = canaries.count();
        status.rollout = publisher.stage().map(|stage| match stage {
            Stage::Promoted => RolloutStatus::Promoted,
            Stage::OnCanaries => RolloutStatus::OnCanaries { canaries },
            Stage::Soaking(until) => RolloutStatus::Soaking(*until - now),
            Stage::Stopped { canary, reason } => RolloutStatus::Stopped {
                // Empty once the stream of the canary has ended.
                canary: match publisher.stream(*canary) {
                    Some((machine, _)) => machine.node().id.clone(),
                    None => String::new(),
                },
                reason: reason.clone(),
            },
        });
        status
    }
}
