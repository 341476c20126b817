//! The Mesh Configuration Protocol in a server: the sink of `serve`, the source
//! of `mcp source`, and what is seen of them.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use trunkline::bounds;
use trunkline::checked::Guard;
use trunkline::listen::{Lanes, Listening};
use trunkline::mcp::{
    Door, McpContents, McpSource, OwnerOptions, RolloutStatus, SinkNode, SinkOptions, SinkStatus,
    SourceStatus, Wire,
};
use trunkline::tls::Tls;

use crate::settings::{OverXds, Settings};

/// The role of this process.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// Contents come from a source.
    Sink(Arc<McpContents>),
    /// Contents go to sinks.
    Source(McpSource),
}

/// What is seen of a role.
#[derive(Clone, Debug)]
pub(crate) enum Status {
    Sink(SinkStatus),
    Source(SourceStatus),
}

impl Role {
    /// Returns the state of the streams of this role.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Sink(contents) => Status::Sink(contents.status()),
            Self::Source(source) => Status::Source(source.status()),
        }
    }
}

/// What is to be watched of a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Streams to the other role.
    pub(crate) streams: usize,
    /// Responses that were rejected so far, here or there.
    pub(crate) nacks: u64,
    /// Requests that were ignored because of their nonce.
    pub(crate) stale: u64,
    /// Collections, of each stream, whose newest response is rejected.
    pub(crate) rejected: usize,
    /// Whether a canary has stopped an update.
    pub(crate) is_stopped: bool,
}

impl Status {
    /// Counts what a role has at this moment, for the metrics.
    pub(crate) fn counts(&self) -> Counts {
        match self {
            Self::Sink(status) => {
                let collections = status.collections.values();
                let rejected = collections.clone().filter(|one| !one.faults.is_empty());
                Counts {
                    streams: usize::from(status.source.is_some()),
                    nacks: collections.map(|one| one.rejected).sum(),
                    stale: 0,
                    rejected: rejected.count(),
                    is_stopped: false,
                }
            }
            Self::Source(status) => Counts {
                streams: status.streams.len(),
                nacks: status.nacks,
                stale: status.stale,
                rejected: status.streams.iter().map(|one| one.rejected.len()).sum(),
                is_stopped: matches!(status.rollout, Some(RolloutStatus::Stopped { .. })),
            },
        }
    }
}

/// Returns how a role listens, with bounds for a few peers: sinks and sources are
/// no fleet.
pub(crate) fn listening(tls: Option<Tls>, lanes: Option<Lanes>) -> Listening {
    Listening {
        tls,
        lanes,
        connections: bounds::MCP_CONNECTIONS,
        streams: bounds::MCP_STREAMS,
        ..Listening::default()
    }
}

/// Makes the contents that a server takes from a source of the Mesh
/// Configuration Protocol. With a listener the source dials, and has its TLS and
/// its lanes; otherwise the source is dialled. Returns `None` if there is neither
/// a listener nor an address.
pub(crate) fn make_contents(
    settings: &Settings,
    listener: Option<TcpListener>,
    tls: Option<Tls>,
    lanes: Option<Lanes>,
) -> Option<Arc<McpContents>> {
    let mcp = &settings.mcp;
    let door = match (listener, &mcp.from) {
        (Some(listener), _) => Door::Listen(listener, Box::new(listening(tls, lanes))),
        (None, Some(peer)) => {
            let certificate = settings.tls_cert.as_ref().zip(settings.tls_key.as_ref());
            Door::Dial(peer.control_plane(mcp.tls_ca.as_ref(), certificate).into())
        }
        (None, None) => return None,
    };

    let sink_options = SinkOptions {
        node: SinkNode {
            id: settings.sending.identifier.clone(),
            annotations: mcp.annotations.0.iter().cloned().collect(),
        },
        wire: match mcp.over_xds {
            OverXds::No => Wire::Mcp,
            OverXds::Sotw => Wire::Xds,
            OverXds::Delta => Wire::DeltaXds,
        },
        // The node is that of the settings, above.
        ..SinkOptions::of("", mcp.collections.names())
    };

    let owner_options = OwnerOptions {
        dangling: settings.dangling.into(),
        guard: match settings.hold_removals {
            true => Guard::On,
            false => Guard::Off,
        },
        labels: mcp.labels.clone(),
    };
    Some(McpContents::new(sink_options, owner_options, door))
}

/// Returns whether an address is one that only this machine reaches.
pub(crate) fn is_local(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
