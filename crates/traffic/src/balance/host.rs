//! An endpoint of a cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use trunkline_proto::envoy::envoy::config::core::v3::{
    HealthStatus, Locality as LocalityMessage, address::Address, socket_address::PortSpecifier,
};
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    LbEndpoint, lb_endpoint::HostIdentifier,
};

use super::metadata::{LbMetadata, lb_metadata, text_of};

/// An endpoint as it was last described. A change makes another value, which
/// shares the counters.
#[derive(Debug)]
pub struct Host {
    address: Box<str>,
    hostname: Box<str>,
    pub(super) locality: Locality,
    pub(super) weight: u32,
    pub(super) metadata: LbMetadata,
    /// A part of the metadata.
    hash_key: Option<Box<str>>,
    reported: Health,
    /// Whether the control plane says that it drains. It is used in panic only,
    /// and does not count where health is a share of all endpoints.
    is_draining: bool,
    counters: Arc<HostCounters>,
}

/// Region, zone and sub-zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Locality {
    /// The region.
    pub region: String,
    /// The zone.
    pub zone: String,
    /// The sub-zone.
    pub sub_zone: String,
}

/// What outlives a change of an endpoint: requests under way, what checks and
/// outlier detection found, and since when it is known.
#[derive(Debug, Default)]
pub struct HostCounters {
    active: AtomicU32,
    fails_check: AtomicBool,
    is_ejected: AtomicBool,
    added: Duration,
}

/// Whether an endpoint is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It is used.
    Healthy,
    /// It is used where healthy ones do not suffice.
    Degraded,
    /// It is used in panic only.
    Unhealthy,
}

impl Host {
    /// Reads an endpoint, which counts as seen first at `now`. Returns `None`
    /// if it has no socket address, or no number as its port.
    pub(super) fn read(message: &LbEndpoint, locality: &Locality, now: Duration) -> Option<Self> {
        let HostIdentifier::Endpoint(endpoint) = message.host_identifier.as_ref()? else {
            return None;
        };

        let Address::SocketAddress(socket) = endpoint.address.as_ref()?.address.as_ref()? else {
            return None;
        };

        let PortSpecifier::PortValue(port) = socket.port_specifier.as_ref()? else {
            return None;
        };

        let address = match socket.address.contains(':') {
            true => format!("[{}]:{port}", socket.address),
            false => format!("{}:{port}", socket.address),
        };

        let counters = HostCounters {
            added: now,
            ..HostCounters::default()
        };

        Some(Self {
            address: address.into(),
            hostname: endpoint.hostname.as_str().into(),
            locality: locality.clone(),
            weight: message
                .load_balancing_weight
                .map_or(1, |weight| weight.value.max(1)),
            metadata: lb_metadata(message.metadata.as_ref()),
            hash_key: text_of(message.metadata.as_ref(), "hash_key").map(Into::into),
            reported: match HealthStatus::try_from(message.health_status) {
                Ok(HealthStatus::Unknown | HealthStatus::Healthy) => Health::Healthy,
                Ok(HealthStatus::Degraded) => Health::Degraded,
                _ => Health::Unhealthy,
            },
            is_draining: message.health_status() == HealthStatus::Draining,
            counters: Arc::new(counters),
        })
    }

    /// Returns the endpoint with the counters of an earlier description of it.
    pub(super) fn with_counters_of(self, earlier: &Self) -> Self {
        Self {
            counters: Arc::clone(&earlier.counters),
            ..self
        }
    }

    /// Returns the address, with the port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the host name; often empty.
    #[must_use]
    pub fn hostname(&self) -> &str {
        &self.hostname
    }

    /// Returns the locality.
    #[must_use]
    pub fn locality(&self) -> &Locality {
        &self.locality
    }

    /// Returns the health, by the control plane, by checks and by outlier
    /// detection.
    #[must_use]
    pub fn health(&self) -> Health {
        let counters = &self.counters;
        let is_out = counters.fails_check.load(Ordering::Relaxed)
            || counters.is_ejected.load(Ordering::Relaxed);
        match is_out {
            true => Health::Unhealthy,
            false => self.reported,
        }
    }

    /// Returns the counters, which a change of the endpoint does not reset.
    #[must_use]
    pub fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// Returns whether the endpoint counts where health is a share of all: one
    /// that drains does not.
    pub(super) fn counts_for_health(&self) -> bool {
        !self.is_draining
    }

    /// Returns the text that ring hash and maglev hash: that of the metadata, or
    /// the host name if the policy says so and there is one, or the address.
    pub(super) fn hash_key(&self, uses_hostname: bool) -> &str {
        match &self.hash_key {
            Some(key) => key,
            None if uses_hostname && !self.hostname.is_empty() => &self.hostname,
            None => &self.address,
        }
    }

    /// Returns whether two descriptions are of the same endpoint in the same
    /// state, so that nothing has to be built anew.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.address == other.address
            && self.hostname == other.hostname
            && self.locality == other.locality
            && self.weight == other.weight
            && self.metadata == other.metadata
            && self.reported == other.reported
            && self.is_draining == other.is_draining
    }
}

impl HostCounters {
    /// Returns the number of requests under way.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// Counts a request that starts.
    pub fn start(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that ended.
    pub fn end(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records whether active health checks fail.
    pub fn set_fails_check(&self, fails: bool) {
        self.fails_check.store(fails, Ordering::Relaxed);
    }

    /// Records whether outlier detection has ejected the endpoint.
    pub fn set_ejected(&self, is_ejected: bool) {
        self.is_ejected.store(is_ejected, Ordering::Relaxed);
    }

    /// Returns when the endpoint was first seen.
    pub(super) fn added(&self) -> Duration {
        self.added
    }
}

impl Locality {
    /// Reads a locality. Without a message all its parts are empty.
    pub(super) fn read(message: Option<&LocalityMessage>) -> Self {
        message.map_or_else(Self::default, |message| Self {
            region: message.region.clone(),
            zone: message.zone.clone(),
            sub_zone: message.sub_zone.clone(),
        })
    }
}
