//! The log of streams and leases: clients that connect, NACKs, oversized
//! responses and leases that end always, the rest at level debug.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use trunkline::{
    Event, Hooks, Identity, LeaseEvent, Limit, Name, Oversized, Peer, Report, RequestDetails, Sent,
    TypeUrl, Version, kind,
};
use trunkline_core::message::ErrorDetail;
use trunkline_proto::redact;

use crate::{admin, kinds};

/// The maximum of resources that are remembered for each kind of line.
const MOST_REMEMBERED: usize = 1000;
/// The maximum of names that are logged of a response, of each kind.
const MOST_NAMES: usize = 16;
/// The maximum of warnings that are logged of the end of a lease.
const MOST_WARNINGS: usize = 10;

/// Hooks that log.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    rejected: Remembered,
    oversized: Remembered,
    withheld: Remembered,
    /// Whether a client was logged that may not have secrets.
    has_denied: AtomicBool,
}

/// Logs a request at level debug. Lists of names are short, with the number of
/// further names.
fn log_request(peer: Peer<'_>, type_url: &TypeUrl, details: &RequestDetails) {
    let error = details.error.as_deref().map(redact::quoted);
    tracing::debug!(
        stream = peer.stream,
        node = peer.node,
        "type" = kinds::short(type_url),
        names = ?details.names,
        more = details.more,
        unsubscribed = ?details.unsubscribed,
        more_unsubscribed = details.more_unsubscribed,
        nonce = details.nonce.as_ref().map(|nonce| nonce.as_str()),
        version = details.version.as_ref().map(|version| version.as_str()),
        error = error.as_deref(),
        "a request arrives"
    );
}

/// Logs the opening of a stream at level info.
fn log_opening(peer: Peer<'_>) {
    tracing::info!(
        stream = peer.stream,
        node = peer.node,
        address = peer.connection.peer.map(tracing::field::display),
        identity = peer.identity.map(Identity::as_str),
        identity_kind = peer.identity.map(Identity::kind),
        protocol = admin::protocol_name(peer.mode),
        "a client connects"
    );
}

/// Logs a response at level debug. Lists of names are short, with the number of
/// further names. The names that a set in state of the world leaves out count
/// as removed, since the client removes them.
fn log_response(peer: Peer<'_>, response: &Sent<'_>) {
    let first_names = response.resources.iter().take(MOST_NAMES);
    let first_names: Vec<&str> = first_names
        .map(|sent_resource| sent_resource.resource.name.as_str())
        .collect();
    let removed_names = response.removed.iter().take(MOST_NAMES).map(Name::as_str);
    let removed_names: Vec<&str> = removed_names.collect();
    tracing::debug!(
        stream = peer.stream,
        node = peer.node,
        "type" = kinds::short(response.type_url),
        nonce = response.nonce.as_str(),
        resources = response.resources.len(),
        names = ?first_names,
        removed = ?removed_names,
        more_removed = response.removed.len() - removed_names.len(),
        bytes = response.bytes,
        "a response goes out"
    );
}

/// The resources that were logged last: a problem of a whole fleet is one line.
#[derive(Debug, Default)]
struct Remembered(Mutex<VecDeque<(TypeUrl, Name, Version)>>);

impl Remembered {
    /// Remembers a resource that is about to be logged. Returns `false` if it
    /// is among the last [`MOST_REMEMBERED`] ones.
    fn insert_new(&self, type_url: &TypeUrl, name: &Name, version: &Version) -> bool {
        let key = (type_url.clone(), name.clone(), version.clone());
        let mut recent_keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent_keys.contains(&key) {
            return false;
        }
        if recent_keys.len() == MOST_REMEMBERED {
            recent_keys.pop_front();
        }
        recent_keys.push_back(key);
        true
    }
}

impl Journal {
    /// Warns of a response that is too large for gRPC clients, which do not
    /// report that themselves but reconnect for ever. Does not log later
    /// responses with the same largest resource.
    fn log_large_response(&self, peer: Peer<'_>, response: Oversized<'_>) {
        let Some(largest) = response.largest else {
            return;
        };
        let (type_url, name) = (response.type_url, &largest.name);
        let is_new = self.oversized.insert_new(type_url, name, &largest.version);
        if !is_new {
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

    /// Warns of a resource that a client rejects on its own. Further clients
    /// that reject it are logged at level debug.
    fn log_rejection(
        &self,
        peer: Peer<'_>,
        (type_url, name, version): (&TypeUrl, &Name, &Version),
        error: &ErrorDetail,
    ) {
        let (stream, node) = (peer.stream, peer.node);
        let kind = kinds::short(type_url);
        let is_new = self.rejected.insert_new(type_url, name, version);
        if !is_new {
            let name = name.as_str();
            tracing::debug!(stream, node, "type" = kind, name, "and another one");
            return;
        }

        tracing::warn!(
            stream,
            node,
            "type" = kind,
            name = name.as_str(),
            version = version.as_str(),
            reason = &*redact::quoted(&error.message),
            "a client rejects a resource; it is not sent to it again until it changes, and \
             `trunkline status` shows who else rejects it"
        );
    }

    /// Warns of a resource that is withheld because it contains a private key.
    /// Further clients are logged at level debug.
    fn log_withheld(&self, peer: Peer<'_>, type_url: &TypeUrl, name: &Name, version: &Version) {
        let (stream, node) = (peer.stream, peer.node);
        let kind = kinds::short(type_url);
        let is_new = self.withheld.insert_new(type_url, name, version);
        let name = name.as_str();
        if !is_new {
            tracing::debug!(stream, node, "type" = kind, name, "and another one");
            return;
        }
        tracing::warn!(
            stream,
            node,
            "type" = kind,
            name,
            "a resource has a private key in it and is withheld from clients that are neither \
             local nor behind TLS with a client certificate; they keep what they have of it. Put \
             the key into a Secret or into a file of the client's; or set --tls-client-ca, or \
             --allow-plaintext-secrets"
        );
    }

    /// Warns of the first client that requests secrets and may not receive
    /// them. Other types and other clients are not logged.
    fn log_denial(&self, peer: Peer<'_>, type_url: &TypeUrl) {
        let is_secret = type_url.as_str() == kind::SDS;
        if !is_secret || self.has_denied.swap(true, Ordering::Relaxed) {
            return;
        }
        tracing::warn!(
            stream = peer.stream,
            node = peer.node,
            address = peer.connection.peer.map(tracing::field::display),
            "a client asks for secrets and is told that there are none: it is neither local nor \
             behind TLS with a client certificate; set --tls-client-ca, or \
             --allow-plaintext-secrets. Other clients are not logged"
        );
    }

    /// Logs an event of a session. A NACK of a response is logged at level
    /// debug only: trials find the resource at fault, and its quarantine is a
    /// warning.
    fn log_event(&self, peer: Peer<'_>, event: &Event) {
        let (stream, node) = (peer.stream, peer.node);
        match event {
            Event::Quarantined {
                type_url,
                name,
                version,
                error,
            } => self.log_rejection(peer, (type_url, name, version), error),

            Event::Nacked {
                type_url, error, ..
            } => tracing::debug!(
                stream,
                node,
                "type" = kinds::short(type_url),
                reason = &*redact::quoted(&error.message),
                "a client rejects a response"
            ),

            Event::Withheld {
                type_url,
                name,
                version,
            } => self.log_withheld(peer, type_url, name, version),

            Event::Refused {
                type_url,
                reason,
                names,
            } => {
                let kind = kinds::short(type_url);
                tracing::debug!(stream, node, "type" = kind, names, %reason, "names are refused");
            }
            _ => {}
        }
    }
}

impl Hooks for Journal {
    /// Logs what happens on a stream. NACKed resources and oversized responses
    /// are warnings, the opening is logged at level info, other reports at
    /// level debug or not at all.
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        let (stream, node) = (peer.stream, peer.node);
        match report {
            Report::Opened => log_opening(peer),

            Report::Requested {
                type_url,
                details: Some(details),
                ..
            } => log_request(peer, type_url, details),
            Report::Closed => tracing::debug!(stream, node, "a stream ends"),
            Report::Event(event) => self.log_event(peer, event),
            Report::Denied { type_url } => self.log_denial(peer, type_url),
            Report::Oversized(response) => self.log_large_response(peer, response),
            Report::Refused(refused) => {
                tracing::debug!(stream, node, ?refused, "a name is refused");
            }
            Report::HostsRequested {
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
            Report::Sent(sent) => log_response(peer, &sent),
            _ => {}
        }
    }

    /// Reads requests if they are logged.
    fn reads_requests(&self) -> bool {
        tracing::enabled!(tracing::Level::DEBUG)
    }

    /// Logs the end of leases. A lease whose removal is held is logged only
    /// once.
    fn lease(&self, event: LeaseEvent<'_>) {
        match event {
            LeaseEvent::Expired { origin, removed } => {
                let resources = removed.applied.counts.deleted;
                tracing::warn!(
                    origin,
                    resources,
                    "a lease was not renewed in time; what its writer applied is removed"
                );
                for warning in removed.warnings.iter().take(MOST_WARNINGS) {
                    tracing::warn!(origin, "{}", warning.fault);
                }
            }

            LeaseEvent::Held { origin, finding } => tracing::warn!(
                origin,
                "a lease was not renewed in time; its removal {}",
                finding.fault
            ),

            LeaseEvent::Silence { late, leases } => tracing::warn!(
                late,
                leases,
                "most writers do not renew their leases, and seem to be cut off: no lease ends \
                 until others are renewed; DELETE /api/v1/leases/ORIGIN ends one"
            ),

            LeaseEvent::Restarted { late, leases } => tracing::warn!(
                seconds = late.as_secs_f64(),
                leases,
                "the server did not run for a while, and writers could not renew: all leases \
                 begin anew"
            ),
            _ => {}
        }
    }

    fn limited(&self, limit: Limit) {
        tracing::debug!(limit = limit.as_str(), "a limit is met");
    }
}
