//! What is logged of streams: rejections always, the rest when it is asked for.

use trunkline::{Event, Hooks, Limit, Peer, Report};
use trunkline_proto::redact;

use crate::kinds;

/// A server's hooks that log.
#[derive(Debug)]
pub(crate) struct Journal;

impl Hooks for Journal {
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        let (stream, node) = (peer.stream, peer.node);
        match report {
            Report::Opened => tracing::debug!(stream, node, "a stream begins"),
            Report::Closed => tracing::debug!(stream, node, "a stream ends"),
            // One line for each resource: a NACK of many is sent again in
            // parts until it is known which one is at fault.
            Report::Event(Event::Parked {
                type_url,
                name,
                version,
                error,
            }) => tracing::warn!(
                stream,
                node,
                "type" = kinds::short(type_url),
                name = name.as_str(),
                version = version.as_str(),
                reason = &*redact::quoted(&error.message),
                "a client rejects a resource; it is not sent to it again until it changes"
            ),
            Report::Event(Event::Nacked {
                type_url, error, ..
            }) => tracing::debug!(
                stream,
                node,
                "type" = kinds::short(type_url),
                reason = &*redact::quoted(&error.message),
                "a client rejects a response"
            ),
            Report::Event(Event::Refused { type_url, reason }) => {
                let kind = kinds::short(type_url);
                tracing::debug!(stream, node, "type" = kind, %reason, "a name is refused");
            }
            Report::Refused(refused) => {
                tracing::debug!(stream, node, ?refused, "a name is refused");
            }
            Report::Missing { type_url, name } => {
                let kind = kinds::short(type_url);
                let name = name.as_str();
                tracing::debug!(stream, node, "type" = kind, name, "a name does not exist");
            }
            Report::Sent(sent) => tracing::debug!(
                stream,
                node,
                "type" = kinds::short(sent.type_url),
                nonce = sent.nonce.as_str(),
                resources = sent.resources.len(),
                removed = sent.removed.len(),
                bytes = sent.bytes,
                "a response goes out"
            ),
            _ => {}
        }
    }

    fn limited(&self, limit: Limit) {
        tracing::debug!(limit = limit.as_str(), "a limit is met");
    }
}
