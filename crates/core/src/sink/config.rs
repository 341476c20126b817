//! How one asking side behaves, decided before its first stream.
//!
//! Where gRPC and Envoy differ the defaults are gRPC's, and Envoy's way is a
//! choice here.

use std::time::Duration;

use crate::limits::Limits;
use crate::message::{Mode, Node};
use crate::resource::TypeUrl;

/// Which types a stream carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamScope {
    /// Any (ADS).
    Aggregated,
    /// This one only.
    Single(TypeUrl),
}

/// What a name that gets no answer comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchTimeout {
    /// It waits for ever.
    Never,
    /// It does not exist (C32, C34).
    DoesNotExist(Duration),
    /// It cannot be had for now (C35).
    Transient(Duration),
}

impl FetchTimeout {
    /// C32: fifteen seconds, then the name does not exist.
    pub const NOT_FOUND: Self = Self::DoesNotExist(Duration::from_secs(15));
    /// C35, `resource_timer_is_transient_error`: thirty seconds, then the name
    /// cannot be had for now.
    pub const UNAVAILABLE: Self = Self::Transient(Duration::from_secs(30));

    /// How long a name waits.
    #[must_use]
    pub fn after(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::DoesNotExist(after) | Self::Transient(after) => Some(after),
        }
    }
}

/// From when a name's time runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchStart {
    /// From the message that asks for it, anew on each stream (C32, C33).
    Sent,
    /// From the subscription, whatever the stream does (E2).
    Subscribed,
}

/// What becomes of a held resource that is said, or found, to be bad (C41).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataErrors {
    /// What the source withdraws is gone; what the owner rejects keeps its last
    /// good contents. So do Envoy, gRPC before A88, and every relay.
    Obey,
    /// Everything held stays in use, with the error beside it: A88.
    Keep,
    /// Nothing that has an error stays in use: A88 with `fail_on_data_errors`.
    Fail,
}

/// The status code of a rejection (C18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackCode {
    /// As gRPC says it.
    InvalidArgument,
    /// As Envoy says it (E8).
    Internal,
}

impl NackCode {
    /// gRPC's number for it.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::InvalidArgument => 3,
            Self::Internal => 13,
        }
    }
}

/// How one asking side behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkConfig {
    /// Which variant of the protocol it speaks.
    pub mode: Mode,
    /// Which types it may ask for.
    pub scope: StreamScope,
    /// Who it is.
    pub node: Node,
    /// Says who it is in every request, not in the first only (E14).
    pub node_every_request: bool,
    /// What a name that gets no answer comes to.
    pub fetch_timeout: FetchTimeout,
    /// From when a name's time runs.
    pub fetch_start: FetchStart,
    /// What becomes of a held resource that is bad.
    pub data_errors: DataErrors,
    /// The status code of a rejection.
    pub nack_code: NackCode,
    /// Lists the members of globs among the versions held when a delta stream
    /// begins. Envoy does not, so sources may not expect it.
    pub glob_versions: bool,
    /// What the source may make this process hold.
    pub limits: Limits,
}

impl SinkConfig {
    /// An aggregated stream with gRPC's habits.
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
            limits: Limits::default(),
        }
    }
}
