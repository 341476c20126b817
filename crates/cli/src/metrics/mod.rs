//! Metrics of a server, in the text that Prometheus reads.
//!
//! Events are counted as they happen (`count`); states are looked up on each
//! scrape. Labels are short names of types and of limits: clients choose
//! neither.

mod count;
mod table;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use trunkline::status::Client;
use trunkline::{Server, TypeUrl};
use trunkline_core::database::Database;
use trunkline_store::FilesStatus;

pub(crate) use count::Count;
use table::{Gauges, Table};

use crate::mcp::Counts;
use crate::{kinds, log};

/// All metrics of a server.
pub(crate) struct Metrics {
    registry: Registry,
    table: Table,
    /// Streams by node: a client may have several.
    nodes: Mutex<HashMap<String, usize>>,
    /// Held while looked-up values are set and written: scrapes share them.
    scrape: Mutex<()>,
}

impl Metrics {
    /// Makes and registers all metrics. All but the constant ones are zero.
    pub(crate) fn new() -> Arc<Self> {
        let mut registry = Registry::default();
        let table = Table::register(&mut registry);
        Arc::new(Self {
            registry,
            table,
            nodes: Mutex::default(),
            scrape: Mutex::default(),
        })
    }

    /// Writes all metrics. Values that are looked up are set first. Scrapes wait
    /// for each other, since they set the same values.
    pub(crate) fn to_text(
        &self,
        server: &Server,
        clients: &[Client],
        files: Option<&FilesStatus>,
        mcp_counts: Counts,
    ) -> String {
        let _scrape = lock(&self.scrape);
        self.set_server_gauges(server);
        self.set_resource_gauges(server);
        self.set_client_gauges(clients);
        self.set_file_gauges(files);
        self.set_mcp_metrics(mcp_counts);
        set_counter(&self.table.log_dropped, log::lost_lines());

        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Sets the gauges of the server itself: whether it is ready, its memory and
    /// the limit of that (zero without one), the number of leases, the longest
    /// wait for the database, and the most names that were visited in one slice.
    fn set_server_gauges(&self, server: &Server) {
        let table = &self.table;
        table.ready.set(i64::from(server.is_ready()));
        let memory = server.memory();
        table.resident.set(to_gauge(memory.resident()));
        table
            .memory_limit
            .set(to_gauge(memory.limit().unwrap_or_default()));
        table.leases.set(to_gauge(server.leases().len()));
        table.longest_wait.set(server.longest_wait().as_secs_f64());
        let work = server.read(Database::work);
        table.largest_slice.set(to_gauge(work.largest_slice));
    }

    /// Sets the number of names that have a resource, for each type.
    fn set_resource_gauges(&self, server: &Server) {
        let mut resources = ByType::default();
        server.read(|db| {
            for (id, url) in db.types() {
                resources.add(url, db.len(id));
            }
        });
        resources.set(&self.table.resources);
    }

    /// Sets, for each type, the numbers of subscriptions and of quarantined
    /// resources of all clients.
    fn set_client_gauges(&self, clients: &[Client]) {
        let mut subscriptions = ByType::default();
        let mut quarantined = ByType::default();
        for state in clients.iter().flat_map(|client| &client.types) {
            subscriptions.add(&state.type_url, state.subscriptions);
            quarantined.add(&state.type_url, state.quarantined.len());
        }
        subscriptions.set(&self.table.subscriptions);
        quarantined.set(&self.table.parked);
    }

    /// Sets the gauges and the counters of the Mesh Configuration Protocol.
    fn set_mcp_metrics(&self, counts: Counts) {
        let table = &self.table;
        table.mcp_streams.set(to_gauge(counts.streams));
        table.mcp_rejected.set(to_gauge(counts.rejected));
        table.mcp_stopped.set(i64::from(counts.is_stopped));
        set_counter(&table.mcp_nacks, counts.nacks);
        set_counter(&table.mcp_stale, counts.stale);
    }

    /// Sets the numbers of mistakes in files, of bad files and of held files.
    /// Without files, all are zero.
    fn set_file_gauges(&self, files: Option<&FilesStatus>) {
        let errors = files.map_or(0, |files| files.errors().count());
        let bad_files = files.map_or(0, |files| files.bad().count());
        self.table.config_errors.set(to_gauge(errors));
        self.table.config_bad_files.set(to_gauge(bad_files));
        let held_files = files.map_or(0, |files| files.held().len());
        self.table.config_held.set(to_gauge(held_files));
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

/// A number for the label of each type; zero at first, so that a type without
/// any is shown.
struct ByType(HashMap<&'static str, i64>);

impl Default for ByType {
    fn default() -> Self {
        Self(kinds::LABELS.map(|label| (label, 0)).into())
    }
}

impl ByType {
    /// Adds to the number of a type.
    fn add(&mut self, type_url: &TypeUrl, count: usize) {
        *self.0.entry(kinds::label(type_url)).or_default() += to_gauge(count);
    }

    /// Sets the gauges of all types.
    fn set(self, gauges: &Gauges) {
        for (label, count) in self.0 {
            gauges.get_or_create(&[("type", label)]).set(count);
        }
    }
}

/// Overwrites a counter with a total that is counted elsewhere and looked up on
/// a scrape: to count it here too would be to count it twice. A total that goes
/// down is a restart to Prometheus.
fn set_counter(counter: &Counter, total: u64) {
    counter.inner().store(total, Ordering::Relaxed);
}

/// Converts a count to the value of a gauge; one that does not fit becomes the
/// maximum.
fn to_gauge(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Locks a mutex. A panic of another thread does not spoil what it guards.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_documentation_has_every_metric() {
        let page = include_str!("../../../../docs/admin-api.md");
        let text = Metrics::new().to_text(&Server::default(), &[], None, Counts::default());
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        for line in types {
            let (name, kind) = line.split_once(' ').unwrap();
            let end = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            assert!(page.contains(&format!("`{name}{end}`")), "{name}{end}");
        }
    }
}
