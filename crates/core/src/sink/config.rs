//! The configuration of a sink.
//!
//! Where gRPC and Envoy differ, the defaults are gRPC's, and Envoy's behaviour
//! is an option.

use std::time::Duration;

use crate::limits::Limits;
use crate::message::{Mode, Node};
use crate::resource::TypeUrl;

/// The types that a stream carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamScope {
    /// Any type (ADS).
    Aggregated,
    /// This type only.
    Single(TypeUrl),
}

/// What happens to a name that gets no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchTimeout {
    /// It waits for ever.
    Never,
    /// It counts as not existing (C32, C34).
    DoesNotExist(Duration),
    /// It is unavailable for now (C35).
    Transient(Duration),
}

impl FetchTimeout {
    /// C32: fifteen seconds, then the name does not exist.
    pub const NOT_FOUND: Self = Self::DoesNotExist(Duration::from_secs(15));
    /// C35, `resource_timer_is_transient_error`: thirty seconds, then the name
    /// is unavailable for now.
    pub const UNAVAILABLE: Self = Self::Transient(Duration::from_secs(30));

    /// Returns how long a name waits for a response; `None` is for ever.
    #[must_use]
    pub(crate) fn duration(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::DoesNotExist(timeout) | Self::Transient(timeout) => Some(timeout),
        }
    }
}

/// When the fetch timer of a name starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchStart {
    /// With the request that subscribes to the name, again on each stream (C32,
    /// C33).
    Sent,
    /// With the subscription, whatever the stream does (E2).
    Subscribed,
}

/// What happens to a cached resource that has a data error (C41).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataErrors {
    /// A resource that the server removes is removed; a name whose update the
    /// owner rejects keeps its last good resource. So do Envoy, gRPC before
    /// A88, and every relay.
    Obey,
    /// The cached resource stays in use, with the error beside it: A88.
    Keep,
    /// The cached resource is dropped: A88 with `fail_on_data_errors`.
    Fail,
}

/// The status code of a NACK (C18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackCode {
    /// As gRPC sends it.
    InvalidArgument,
    /// As Envoy sends it (E8).
    Internal,
}

impl NackCode {
    /// Returns the number of the gRPC status code.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::InvalidArgument => 3,
            Self::Internal => 13,
        }
    }
}

/// The configuration of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkConfig {
    /// The protocol of its streams.
    pub mode: Mode,
    /// The types that it may subscribe to.
    pub scope: StreamScope,
    /// The node of the sink.
    pub node: Node,
    /// Sends the node in every request, not in the first only (E14).
    pub node_every_request: bool,
    /// What happens to a name that gets no response.
    pub fetch_timeout: FetchTimeout,
    /// When the fetch timer of a name starts.
    pub fetch_start: FetchStart,
    /// What happens to a cached resource that has a data error.
    pub data_errors: DataErrors,
    /// The status code of a NACK.
    pub nack_code: NackCode,
    /// Lists the members of globs among the versions in the first request of a
    /// delta stream. Envoy does not, so servers may not expect it.
    pub glob_versions: bool,
    /// The server reads locators (TP2), so each subscription is sent with its
    /// own parameters, and variants are matched with them, or for plain ones
    /// with those of the node. Another server is sent plain names, and its
    /// resources are for all subscriptions of their names, whatever the
    /// parameters.
    pub locators: bool,
    /// How long the server is silent after the last response of a wildcard or a
    /// glob that it sends in parts (S44), which then is complete. Zero for a
    /// server that sends each in one response.
    pub silence: Duration,
    /// Bounds on the memory that the server can make this process use.
    pub limits: Limits,
}

impl SinkConfig {
    /// Makes the configuration of an aggregated stream with gRPC's behaviour.
    #[must_use]
    pub fn new(mode: Mode, node: Node) -> Self {
        Self {
            mode,
            scope: StreamScope::Aggregated,
            node,
            node_every_request: false,
            fetch_timeout: FetchTimeout::NOT_FOUND,
            fetch_start: FetchStart::Sent,
            data_errors: DataErrors::Obey,
            nack_code: NackCode::InvalidArgument,
            glob_versions: false,
            locators: false,
            silence: Duration::from_secs(1),
            limits: Limits::default(),
        }
    }
}
