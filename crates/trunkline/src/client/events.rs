//! What happens in a client, for those who log, count or record it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use trunkline_core::resource::Resource;
use trunkline_core::sink::{Delivery, SinkError, Verdict};
use trunkline_proto::acceptance::Report;

use super::control_plane::ControlPlane;
use super::metrics::Counters;

/// A stream to a control plane, or an attempt to open one. All that is logged
/// for it is in a span `xds_stream` with these fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// The control plane.
    pub server: Arc<ControlPlane>,
    /// The path of the gRPC method, which tells state of the world from delta.
    pub path: String,
    /// Counts the streams and attempts of a client, from 1.
    pub number: u64,
}

impl StreamInfo {
    /// Returns the span of all that happens on the stream.
    pub(super) fn span(&self) -> tracing::Span {
        let Self {
            server,
            path,
            number,
        } = self;
        tracing::info_span!("xds_stream", server = %server.address, path, number)
    }
}

/// Something that happened between a client and a control plane.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// A stream is about to be opened.
    Connecting(&'a StreamInfo),
    /// A stream was opened.
    Connected(&'a StreamInfo),
    /// A stream ended, or could not be opened, and why.
    Disconnected(&'a StreamInfo, &'a str),
    /// A stream ended without a response, or could not be opened (C36).
    Failed(&'a ControlPlane),
    /// A request was given to the transport.
    Sent(&'a StreamInfo, &'a Bytes),
    /// A response was received, whatever becomes of it.
    Received(&'a StreamInfo, &'a Bytes),
    /// A response was judged: without a rejection in the verdict it is ACKed.
    Judged {
        /// The stream on which it came.
        stream: &'a StreamInfo,
        /// What of it was subscribed to.
        delivery: &'a Delivery,
        /// The judgement.
        verdict: &'a Verdict,
        /// What is set in its good resources and not used (C57).
        unused: &'a [(Arc<Resource>, Report)],
    },
    /// The server has broken the protocol on the stream, which goes on.
    Fault(&'a StreamInfo, &'a SinkError),
}

/// Somebody who is told what happens in a client, in the tasks in which it
/// happens: an observer must not wait. One that panics has missed this event,
/// and nobody else has.
pub trait Observer: Send + Sync + 'static {
    /// Takes note of an event. It must not wait, for the task in which the event
    /// happened waits for it.
    fn observe(&self, event: &ClientEvent<'_>);
}

/// The counters and the observers of a client: all that is told of events.
pub(super) struct Observers {
    pub(super) counters: Counters,
    observers: Vec<Arc<dyn Observer>>,
}

impl Observers {
    /// Makes the observers of a client, whose counters are zero.
    pub(super) fn new(observers: Vec<Arc<dyn Observer>>) -> Self {
        Self {
            counters: Counters::default(),
            observers,
        }
    }

    /// Counts and logs an event, and passes it on to all observers. An observer
    /// that panics loses the event, and the client goes on.
    pub(super) fn notify(&self, event: &ClientEvent<'_>) {
        self.counters.count(event);
        log(event);
        for observer in &self.observers {
            // The client uses nothing that a panic may have left half done.
            let outcome = catch_unwind(AssertUnwindSafe(|| observer.observe(event)));
            if outcome.is_err() {
                tracing::error!("an observer panicked");
            }
        }
    }
}

/// Writes an event to the log of the process.
fn log(event: &ClientEvent<'_>) {
    match event {
        ClientEvent::Connected(stream) => {
            tracing::info!(server = %stream.server.address, "connected");
        }
        ClientEvent::Disconnected(stream, reason) => {
            tracing::warn!(server = %stream.server.address, reason, "disconnected");
        }
        ClientEvent::Judged {
            stream,
            delivery,
            verdict,
            unused,
        } => log_verdict(&stream.server, delivery, verdict, unused),
        ClientEvent::Fault(stream, error) => {
            tracing::warn!(server = %stream.server.address, %error, "the server broke the protocol");
        }
        ClientEvent::Connecting(_)
        | ClientEvent::Failed(_)
        | ClientEvent::Sent(..)
        | ClientEvent::Received(..) => {}
    }
}

/// Logs the outcome of a judgement: each rejection as a warning, and all else for
/// debugging.
fn log_verdict(
    server: &ControlPlane,
    delivery: &Delivery,
    verdict: &Verdict,
    unused_reports: &[(Arc<Resource>, Report)],
) {
    let (type_url, nonce) = (delivery.type_url.as_str(), delivery.nonce.as_str());
    tracing::debug!(
        server = %server.address,
        type_url,
        nonce,
        resources = delivery.resources.len(),
        removed = delivery.removed.len(),
        rejected = verdict.rejected.len(),
        "response"
    );

    for rejection in &verdict.rejected {
        let name = rejection.name.as_ref().map_or("?", |name| name.as_str());
        let reason = rejection.reason.as_str();
        tracing::warn!(server = %server.address, type_url, nonce, name, reason, "NACK");
    }
    for (resource, report) in unused_reports {
        let name = resource.name.as_str();
        tracing::debug!(type_url, name, ?report, "set and not used");
    }
}
