//! Metrics of a server, in the text that Prometheus reads.
//!
//! Events are counted as they happen (`count`); states are looked up on each
//! scrape. Labels are short names of types and of limits: clients choose
//! neither.

mod count;
mod table;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use trunkline::Server;
use trunkline::status::Client;
use trunkline_core::database::Database;
use trunkline_store::FilesStatus;

pub(crate) use count::Count;
use table::Table;

use crate::kinds;

/// All metrics of a server.
pub(crate) struct Metrics {
    registry: Registry,
    table: Table,
    /// Streams by node: a client may have several.
    nodes: Mutex<HashMap<String, usize>>,
    /// Looked-up values are written to shared gauges, by one scrape at a time.
    scrape: Mutex<()>,
}

impl Metrics {
    /// Metrics at zero.
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

    /// All metrics at this moment.
    pub(crate) fn text(
        &self,
        server: &Server,
        clients: &[Client],
        files: Option<&FilesStatus>,
    ) -> String {
        let _one = lock(&self.scrape);
        self.resources(server);
        self.clients(clients);
        let table = &self.table;
        table.ready.set(i64::from(server.is_ready()));
        table.longest_wait.set(server.longest_wait().as_secs_f64());
        let work = server.read(Database::work);
        let largest = i64::try_from(work.largest_slice).unwrap_or(i64::MAX);
        table.largest_slice.set(largest);
        let (errors, bad) = files.map_or((0, 0), |files| {
            (files.errors().count(), files.bad().count())
        });
        table.config_errors.set(number(errors));
        table.config_bad_files.set(number(bad));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    fn resources(&self, server: &Server) {
        let mut counts = zeroes();
        server.read(|db| {
            for (id, url) in db.types() {
                *counts.entry(kinds::label(url)).or_default() += number(db.len(id));
            }
        });
        for (label, count) in counts {
            let gauge = self.table.resources.get_or_create(&[("type", label)]);
            gauge.set(count);
        }
    }

    fn clients(&self, clients: &[Client]) {
        let (mut asked, mut parked) = (zeroes(), zeroes());
        for state in clients.iter().flat_map(|client| &client.types) {
            let label = kinds::label(&state.type_url);
            *asked.entry(label).or_default() += number(state.subscriptions);
            *parked.entry(label).or_default() += number(state.parked.len());
        }
        for (label, count) in asked {
            let gauge = self.table.subscriptions.get_or_create(&[("type", label)]);
            gauge.set(count);
        }
        for (label, count) in parked {
            let gauge = self.table.parked.get_or_create(&[("type", label)]);
            gauge.set(count);
        }
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

/// Every label at zero, so that a type without resources is shown.
fn zeroes() -> HashMap<&'static str, i64> {
    kinds::LABELS.map(|label| (label, 0)).into()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_documentation_has_every_metric() {
        let page = include_str!("../../../../docs/admin-api.md");
        let text = Metrics::new().text(&Server::default(), &[], None);
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
