//! Metrics of a client, with gRPC's names (C66), and with Envoy's where gRPC has
//! none (E6, E16).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::events::ClientEvent;

/// One number of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The name: gRPC's, such as `grpc.xds_client.resources`, or Envoy's, such
    /// as `update_rejected`.
    pub name: &'static str,
    /// What it is of.
    pub labels: Vec<(&'static str, String)>,
    /// The number.
    pub value: u64,
}

/// The label of [`super::ClientBuilder::target`].
pub(super) const TARGET: &str = "grpc.target";
/// `grpc.xds_client.connected`.
pub(super) const CONNECTED: &str = "grpc.xds_client.connected";
/// `grpc.xds_client.server_failure`.
const SERVER_FAILURE: &str = "grpc.xds_client.server_failure";
/// `grpc.xds_client.resource_updates_valid`.
const VALID: &str = "grpc.xds_client.resource_updates_valid";
/// `grpc.xds_client.resource_updates_invalid`.
const INVALID: &str = "grpc.xds_client.resource_updates_invalid";
/// `grpc.xds_client.resources`.
pub(super) const RESOURCES: &str = "grpc.xds_client.resources";

/// Whether there is a stream.
pub(super) const CONNECTED_STATE: &str = "control_plane.connected_state";
/// How often requests had to wait (E6).
pub(super) const RATE_LIMITED: &str = "control_plane.rate_limit_enforced";
/// Names that the server did not answer in time (E2).
pub(super) const FETCH_TIMEOUT: &str = "init_fetch_timeout";
/// Responses of a type, and attempts that brought none.
const UPDATE_ATTEMPT: &str = "update_attempt";
/// Attempts that failed for want of a connection.
const UPDATE_FAILURE: &str = "update_failure";
/// Responses that were NACKed.
const UPDATE_REJECTED: &str = "update_rejected";
/// Responses that were ACKed.
const UPDATE_SUCCESS: &str = "update_success";

/// The label of a server.
pub(super) const SERVER: &str = "grpc.xds.server";

/// Counters that only grow, by server, and by type where that matters.
#[derive(Default)]
pub(super) struct Counters(Mutex<BTreeMap<(&'static str, String, String), u64>>);

impl Counters {
    /// Counts the valid and invalid resources of a response, and failures of
    /// servers. Other events have no counter.
    pub(super) fn count(&self, event: &ClientEvent<'_>) {
        match event {
            ClientEvent::Judged {
                stream,
                delivery,
                verdict,
                ..
            } => {
                let invalid = verdict.rejected.len() as u64;
                let total = delivery.resources.len() as u64;
                let (server, url) = (
                    stream.server.address.to_string(),
                    delivery.type_url.to_string(),
                );
                self.add(
                    VALID,
                    server.clone(),
                    url.clone(),
                    total.saturating_sub(invalid),
                );
                self.add(INVALID, server.clone(), url.clone(), invalid);

                let outcome = match invalid {
                    0 => UPDATE_SUCCESS,
                    _ => UPDATE_REJECTED,
                };
                self.add(outcome, server.clone(), url.clone(), 1);
                self.add(UPDATE_ATTEMPT, server, url, 1);
            }
            ClientEvent::Failed(server) => {
                for name in [SERVER_FAILURE, UPDATE_FAILURE, UPDATE_ATTEMPT] {
                    self.add(name, server.address.to_string(), String::new(), 1);
                }
            }
            _ => {}
        }
    }

    /// Adds to a counter, and makes it with the first count that is not zero. An
    /// empty `type_url` stands for all types.
    fn add(&self, name: &'static str, server: String, type_url: String, count: u64) {
        if count == 0 {
            return;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((name, server, type_url)).or_default() += count;
    }

    /// Returns the counters as samples. Counters of servers have no label of a
    /// type.
    pub(super) fn samples(&self) -> Vec<Sample> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = counts.iter().map(|((name, server, type_url), value)| {
            let mut labels = vec![(SERVER, server.clone())];
            if !type_url.is_empty() {
                labels.push(("grpc.xds.resource_type", type_url.clone()));
            }
            Sample {
                name,
                labels,
                value: *value,
            }
        });
        samples.collect()
    }
}
