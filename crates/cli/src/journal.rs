//! The log of streams: NACKs and oversized responses always, the rest at level
//! debug.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use trunkline::{Event, Hooks, Limit, Name, Oversized, Peer, Report, TypeUrl, Version};
use trunkline_proto::redact;

use crate::kinds;

/// Resources that are remembered for each kind of line.
const REMEMBERED: usize = 1000;

/// Hooks that log.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    rejected: Known,
    oversized: Known,
}

/// The resources that were logged last: a problem of a whole fleet is one line.
#[derive(Debug, Default)]
struct Known(Mutex<VecDeque<(TypeUrl, Name, Version)>>);

impl Known {
    /// Whether it was not logged before, as far as is remembered.
    fn is_first(&self, type_url: &TypeUrl, name: &Name, version: &Version) -> bool {
        let key = (type_url.clone(), name.clone(), version.clone());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&key) {
            return false;
        }
        if known.len() == REMEMBERED {
            known.pop_front();
        }
        known.push_back(key);
        true
    }
}

impl Journal {
    /// gRPC does not report it itself: it reconnects for ever.
    fn oversized(&self, peer: Peer<'_>, response: Oversized<'_>) {
        let Some(largest) = response.largest else {
            return;
        };
        let (type_url, name) = (response.type_url, &largest.name);
        if !self.oversized.is_first(type_url, name, &largest.version) {
            return;
        }
        tracing::warn!(
            stream = peer.stream,
            node = peer.node,
            "type" = kinds::short(type_url),
            bytes = response.bytes,
            limit = response.limit,
            resources = response.resources,
            largest = name.as_str(),
            largest_bytes = largest.wire_size(),
            "a response is larger than what gRPC clients take by default: they end the stream, \
             come back and are sent the same; make the largest resource smaller, or have one \
             client ask for fewer of them"
        );
    }
}

impl Hooks for Journal {
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        let (stream, node) = (peer.stream, peer.node);
        match report {
            Report::Opened => tracing::debug!(stream, node, "a stream begins"),
            Report::Closed => tracing::debug!(stream, node, "a stream ends"),
            // The resource at fault in a NACK of many is found by trials, and
            // that one is logged.
            Report::Event(Event::Quarantined {
                type_url,
                name,
                version,
                error,
            }) => {
                let kind = kinds::short(type_url);
                let reason = redact::quoted(&error.message);
                let (named, versioned) = (name.as_str(), version.as_str());
                if self.rejected.is_first(type_url, name, version) {
                    tracing::warn!(
                        stream,
                        node,
                        "type" = kind,
                        name = named,
                        version = versioned,
                        reason = &*reason,
                        "a client rejects a resource; it is not sent to it again until it \
                         changes, and `trunkline status` shows who else rejects it"
                    );
                } else {
                    tracing::debug!(stream, node, "type" = kind, name = named, "and another one");
                }
            }
            Report::Event(Event::Nacked {
                type_url, error, ..
            }) => tracing::debug!(
                stream,
                node,
                "type" = kinds::short(type_url),
                reason = &*redact::quoted(&error.message),
                "a client rejects a response"
            ),
            Report::Oversized(response) => self.oversized(peer, response),
            Report::Event(Event::Refused { type_url, reason }) => {
                let kind = kinds::short(type_url);
                tracing::debug!(stream, node, "type" = kind, %reason, "a name is refused");
            }
            Report::Refused(refused) => {
                tracing::debug!(stream, node, ?refused, "a name is refused");
            }
            Report::Asked {
                type_url,
                names,
                more,
            } => {
                let kind = kinds::short(type_url);
                tracing::debug!(stream, node, "type" = kind, ?names, more, "asked on demand");
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
