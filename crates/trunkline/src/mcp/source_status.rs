//! What can be seen of a source: its sinks, and the alarms that they raised.

use trunkline_core::mcp::McpSource as Machine;
use trunkline_core::mcp::SinkNode;
use trunkline_core::resource::TypeUrl;

use super::source::State;

/// A source, its streams and counters.
#[derive(Clone, Debug, Default)]
pub struct SourceStatus {
    /// NACKs so far, on all streams (M11).
    pub nacks: u64,
    /// Requests that were ignored because of their nonce (M4).
    pub stale: u64,
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
    /// Whether the sink has ACKed the newest state of all that it asked for.
    pub is_current: bool,
    /// Collections of which a response is not acknowledged.
    pub pending: Vec<TypeUrl>,
    /// Collections whose newest state the sink has rejected, and why: an alarm
    /// (M5).
    pub rejected: Vec<(TypeUrl, String)>,
}

impl SourceStatus {
    pub(super) fn of(state: &State) -> Self {
        let mut status = state.past.clone();
        for open in state.streams.values() {
            status.count(&open.machine);
            status.streams.push(SourceStreamStatus {
                peer: open.peer.clone(),
                node: open.machine.node().clone(),
                is_current: open.machine.is_current(&state.db),
                pending: open.machine.pending().cloned().collect(),
                rejected: {
                    let rejected = open.machine.rejected(&state.db);
                    rejected
                        .map(|(name, why)| (name.clone(), why.to_owned()))
                        .collect()
                },
            });
        }
        status
    }

    /// Adds the counters of a stream.
    pub(super) fn count(&mut self, machine: &Machine) {
        self.nacks += machine.nacks();
        self.stale += machine.stale();
    }
}
