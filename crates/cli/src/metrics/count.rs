//! Counts events as they happen.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use trunkline::{Changed, Event, Hooks, LeaseEvent, Limit, Peer, Report, TypeUrl};
use trunkline_core::session::Refusal;

use super::table::Counters;
use super::{Metrics, lock};
use crate::kinds;

/// Hooks that count.
#[derive(Clone)]
pub(crate) struct Count(pub(crate) Arc<Metrics>);

/// Counts one event of a type.
fn count_one(counters: &Counters, type_url: &TypeUrl) {
    count_many(counters, type_url, 1);
}

/// Counts a number of events of a type; all types without a short name count as
/// one.
fn count_many(counters: &Counters, type_url: &TypeUrl, count: usize) {
    let counter = counters.get_or_create(&[("type", kinds::label(type_url))]);
    counter.inc_by(count as u64);
}

impl Hooks for Count {
    /// Counts an event of a stream in each metric that it concerns.
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        let table = &self.0.table;
        match report {
            Report::Opened => self.0.open_stream(peer.node),
            Report::Closed => self.0.close_stream(peer.node),
            Report::Requested {
                type_url, bytes, ..
            } => {
                count_one(&table.requests, type_url);
                table.received_bytes.inc_by(bytes as u64);
            }
            Report::Sent(sent) => {
                count_one(&table.pushes, sent.type_url);
                count_many(&table.resources_sent, sent.type_url, sent.resources.len());
                table.sent_bytes.inc_by(sent.bytes as u64);
            }

            Report::Oversized(response) => count_one(&table.oversized, response.type_url),
            Report::Missing { type_url, .. } => count_one(&table.missing, type_url),
            Report::Denied { type_url } => count_one(&table.denied, type_url),
            Report::Configured(duration) => table.first_config.observe(duration.as_secs_f64()),
            Report::Refused(_) => self.0.count_refused_names("request", 1),

            Report::Event(Event::Acked { type_url, .. }) => count_one(&table.acks, type_url),
            Report::Event(Event::Nacked { type_url, .. }) => count_one(&table.nacks, type_url),
            Report::Event(Event::Refused { reason, names, .. }) => {
                self.0.count_refused_names(refusal_label(reason), *names);
            }
            _ => {}
        }
    }

    fn changed(&self, _: u64, _origin: &str, changed: &[Changed]) {
        for change in changed {
            count_one(&self.0.table.changes, &change.type_url);
        }
    }

    fn converged(&self, took: Duration) {
        self.0.table.convergence.observe(took.as_secs_f64());
    }

    fn pushed(&self, type_url: &TypeUrl, took: Duration) {
        let label = [("type", kinds::label(type_url))];
        let histogram = self.0.table.push.get_or_create(&label);
        histogram.observe(took.as_secs_f64());
    }

    /// Counts a lease that was not renewed in time. Other events are not
    /// counted.
    fn lease(&self, event: LeaseEvent<'_>) {
        let outcome = match event {
            LeaseEvent::Expired { .. } => "removed",
            LeaseEvent::Held { .. } => "held",
            _ => return,
        };
        let expiries = &self.0.table.lease_expiries;
        expiries.get_or_create(&[("outcome", outcome)]).inc();
    }

    fn limited(&self, limit: Limit) {
        let limits = &self.0.table.limits;
        limits.get_or_create(&[("limit", limit.as_str())]).inc();
    }
}

impl Metrics {
    /// Counts a stream that opens. The first stream of a node counts as a
    /// connected client too.
    fn open_stream(&self, node: &str) {
        self.table.streams.inc();
        let mut nodes = lock(&self.nodes);
        let streams = nodes.entry(node.to_owned()).or_default();
        *streams += 1;
        if *streams == 1 {
            self.table.connected_clients.inc();
        }
    }

    /// Subtracts a stream that closes. With the last stream of a node,
    /// subtracts its client too, and forgets the node.
    fn close_stream(&self, node: &str) {
        self.table.streams.dec();
        let mut nodes = lock(&self.nodes);
        let Entry::Occupied(mut streams) = nodes.entry(node.to_owned()) else {
            return;
        };
        *streams.get_mut() -= 1;
        if *streams.get() == 0 {
            streams.remove();
            self.table.connected_clients.dec();
        }
    }

    /// Counts lines that are not in the audit log.
    pub(crate) fn count_audit_failures(&self, lines: u64) {
        self.table.audit_failures.inc_by(lines);
    }

    /// Returns the number of lines that are not in the audit log.
    #[cfg(test)]
    pub(crate) fn audit_failures(&self) -> u64 {
        self.table.audit_failures.get()
    }

    /// Counts a request to the admin API that was refused.
    pub(crate) fn count_refusal(&self, is_recorded: bool) {
        let label = if is_recorded { "yes" } else { "no" };
        let refusals = &self.table.admin_refusals;
        refusals.get_or_create(&[("recorded", label)]).inc();
    }

    /// Counts refused names. `reason` is the limit or the check that refused them.
    fn count_refused_names(&self, reason: &'static str, names: usize) {
        let counter = self.table.refused_names.get_or_create(&[("by", reason)]);
        counter.inc_by(names as u64);
    }
}

/// Returns the label of the limit that refused a name.
fn refusal_label(reason: &Refusal) -> &'static str {
    match reason {
        Refusal::Hosts { .. } => "host",
        Refusal::SubscriptionBytes { .. } => "subscription_bytes",
        Refusal::MissingBytes { .. } => "missing_bytes",
        Refusal::Memory => "memory",
        Refusal::Params { .. } | Refusal::AllParams { .. } => "params",
        Refusal::Types { .. } | Refusal::AllTypes { .. } => "type",
        Refusal::Name(_) | Refusal::Subscriptions { .. } | Refusal::Globs { .. } => "subscription",
    }
}
