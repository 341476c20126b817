//! Counts events as they happen.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use trunkline::{Changed, Event, Hooks, Limit, Peer, Report, TypeUrl};
use trunkline_core::session::Refusal;

use super::table::Counters;
use super::{Metrics, lock};
use crate::kinds;

/// Hooks that count.
pub(crate) struct Count(pub(crate) Arc<Metrics>);

fn one(counters: &Counters, type_url: &TypeUrl) {
    more(counters, type_url, 1);
}

fn more(counters: &Counters, type_url: &TypeUrl, count: usize) {
    let counter = counters.get_or_create(&[("type", kinds::label(type_url))]);
    counter.inc_by(count as u64);
}

impl Hooks for Count {
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        let table = &self.0.table;
        match report {
            Report::Opened => self.0.opened(peer.node),
            Report::Closed => self.0.closed(peer.node),
            Report::Requested { type_url, bytes } => {
                one(&table.requests, type_url);
                table.received_bytes.inc_by(bytes as u64);
            }
            Report::Sent(sent) => {
                one(&table.pushes, sent.type_url);
                more(&table.resources_sent, sent.type_url, sent.resources.len());
                table.sent_bytes.inc_by(sent.bytes as u64);
            }
            Report::Oversized(oversized) => one(&table.oversized, oversized.type_url),
            Report::Missing { type_url, .. } => one(&table.missing, type_url),
            Report::Denied { type_url } => one(&table.denied, type_url),
            Report::Configured(took) => table.first_config.observe(took.as_secs_f64()),
            Report::Refused(_) => self.0.refused("request"),
            Report::Event(Event::Acked { type_url, .. }) => one(&table.acks, type_url),
            Report::Event(Event::Nacked { type_url, .. }) => one(&table.nacks, type_url),
            Report::Event(Event::Refused { reason, .. }) => self.0.refused(match reason {
                Refusal::Hosts { .. } => "host",
                _ => "subscription",
            }),
            _ => {}
        }
    }

    fn changed(&self, _origin: &str, changed: &[Changed]) {
        for change in changed {
            one(&self.0.table.changes, &change.type_url);
        }
    }

    fn converged(&self, took: Duration) {
        self.0.table.convergence.observe(took.as_secs_f64());
    }

    fn limited(&self, limit: Limit) {
        let counter = self
            .0
            .table
            .limits
            .get_or_create(&[("limit", limit.as_str())]);
        counter.inc();
    }
}

impl Metrics {
    fn opened(&self, node: &str) {
        self.table.streams.inc();
        let mut nodes = lock(&self.nodes);
        let streams = nodes.entry(node.to_owned()).or_default();
        *streams += 1;
        if *streams == 1 {
            self.table.connected_clients.inc();
        }
    }

    fn closed(&self, node: &str) {
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

    fn refused(&self, by: &'static str) {
        let counter = self.table.refused_names.get_or_create(&[("by", by)]);
        counter.inc();
    }
}
