//! What a client holds, and why: for people, for CSDS and for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use trunkline_core::client::{NameStatus, Origin};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl, Version};
use trunkline_core::sink::{CacheState, WatchError};

use super::handle::{Client, Running};
use super::metrics::{
    CONNECTED, CONNECTED_STATE, FETCH_TIMEOUT, RATE_LIMITED, RESOURCES, SERVER, Sample, TARGET,
};
use super::rejections::RejectedUpdate;

/// One name that a client holds, or has asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Held {
    /// The type.
    pub type_url: TypeUrl,
    /// The name.
    pub name: Name,
    /// Where it is from.
    pub origin: Origin,
    /// Where that is: the addresses of the control planes, or a file.
    pub servers: String,
    /// CSDS's `ClientResourceStatus` (C44).
    pub state: CacheState,
    /// The resource in use, or its variants.
    pub resources: Vec<Arc<Resource>>,
    /// The version that the control plane gave it; in state of the world that
    /// of the response.
    pub version: Option<Version>,
    /// When the resource in use was accepted.
    pub updated: Option<SystemTime>,
    /// Why there is none, or only an old one.
    pub error: Option<WatchError>,
    /// The update that was rejected, if that is the error.
    pub rejected: Option<RejectedUpdate>,
}

impl Client {
    /// Returns all names that the client holds, or has asked for, with their
    /// states.
    #[must_use]
    pub fn dump(&self) -> Vec<Held> {
        self.running().dump()
    }
}

impl Running {
    /// Joins the states of the machine with the receipts and rejections that the
    /// shell keeps. Of several variants the first one's receipt counts.
    fn dump(&self) -> Vec<Held> {
        let server_names = self.places();
        self.shared.read(|state, _| {
            let statuses = state.machine.statuses();
            let names = statuses.into_iter().map(|status| {
                let NameStatus {
                    type_url,
                    name,
                    origin,
                    state: cache_state,
                    held: resources,
                    error,
                } = status;
                let first = resources.first();
                let receipt = first.and_then(|resource| state.values.receipt(resource));

                let is_rejected = cache_state == CacheState::Nacked;
                let rejected = state.rejections.get(&type_url, &name);
                let rejected = rejected.filter(|_| is_rejected).cloned();

                let servers = match origin {
                    Origin::Static => "bootstrap".to_owned(),
                    Origin::Source(id) => server_names.get(&id).cloned().unwrap_or_default(),
                };
                Held {
                    type_url,
                    name,
                    origin,
                    servers,
                    state: cache_state,
                    resources,
                    version: receipt.map(|receipt| receipt.version.clone()),
                    updated: receipt.map(|receipt| receipt.accepted_at),
                    error,
                    rejected,
                }
            });
            names.collect()
        })
    }

    /// Returns the metrics of the client (C66, E16): counters, the states of the
    /// servers, and the numbers of resources. All have the client's target.
    pub(super) fn metrics(&self) -> Vec<Sample> {
        let mut samples = self.observers.counters.samples();
        samples.extend(self.server_samples());
        samples.extend(self.resource_samples());

        let target = (TARGET, self.target().to_owned());
        for sample in &mut samples {
            sample.labels.insert(0, target.clone());
        }
        samples
    }

    /// Returns the metrics of the servers. Servers that no subscription needs are
    /// left out.
    fn server_samples(&self) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (id, server) in self.servers() {
            let status = self.shared.read(|state, _| state.machine.server_status(id));
            if let Some(status) = status.filter(|status| status.is_needed) {
                let values = [
                    (CONNECTED, u64::from(!status.has_failed)),
                    (CONNECTED_STATE, u64::from(status.is_connected)),
                    (RATE_LIMITED, status.rate_limited),
                    (FETCH_TIMEOUT, status.fetch_timeouts),
                ];
                samples.extend(values.map(|(name, value)| Sample {
                    name,
                    labels: vec![(SERVER, server.clone())],
                    value,
                }));
            }
        }
        samples
    }

    /// Counts the names of the cache by authority, state and type.
    fn resource_samples(&self) -> impl Iterator<Item = Sample> {
        let mut counts: BTreeMap<(String, &str, String), u64> = BTreeMap::new();
        for entry in self.dump() {
            let state = cache_state(entry.state, !entry.resources.is_empty());
            let key = (authority(&entry.name), state, entry.type_url.to_string());
            *counts.entry(key).or_default() += 1;
        }

        let counts = counts.into_iter();
        counts.map(|((authority, state, type_url), value)| Sample {
            name: RESOURCES,
            labels: vec![
                ("grpc.xds.authority", authority),
                ("grpc.xds.cache_state", state.to_owned()),
                ("grpc.xds.resource_type", type_url),
            ],
            value,
        })
    }
}

/// Returns the authority of a name as gRPC's metrics have it: `#old` for a name
/// that is not structured.
fn authority(name: &Name) -> String {
    match name.xdstp() {
        None => "#old".to_owned(),
        Some(name) => name.authority().to_owned(),
    }
}

/// Returns the state of a name as gRPC's metrics have it.
fn cache_state(state: CacheState, is_cached: bool) -> &'static str {
    match (state, is_cached) {
        (CacheState::Requested, _) => "requested",
        (CacheState::Acked, _) => "acked",
        (CacheState::DoesNotExist, false) => "does_not_exist",
        (CacheState::DoesNotExist, true) => "does_not_exist_but_cached",
        (CacheState::Nacked, false) => "nacked",
        (CacheState::Nacked, true) => "nacked_but_cached",
        (CacheState::ReceivedError, false) => "received_error",
        (CacheState::ReceivedError, true) => "received_error_but_cached",
        (CacheState::Timeout, _) => "timeout",
    }
}
