//! Config sources: where the resources of a type come from.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trunkline_core::client::RateLimit;
use trunkline_core::message::Mode;
use trunkline_core::sink::BackoffConfig;

use super::control_plane::ControlPlane;

/// Where resources come from: `envoy.config.core.v3.ConfigSource`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConfigSource {
    /// The kind of source.
    pub specifier: Specifier,
    /// How long a name waits for its first response; `None` is for ever (E2).
    pub initial_fetch_timeout: Option<Duration>,
}

impl ConfigSource {
    /// How long a name waits for its first response, if nothing else is said
    /// (E2, C32).
    pub const INITIAL_FETCH_TIMEOUT: Duration = Duration::from_secs(15);

    /// The aggregated stream of the bootstrap.
    #[must_use]
    pub fn ads() -> Self {
        Specifier::Ads.into()
    }
}

/// A source with the usual time-out.
impl From<Specifier> for ConfigSource {
    fn from(specifier: Specifier) -> Self {
        Self {
            specifier,
            initial_fetch_timeout: Some(Self::INITIAL_FETCH_TIMEOUT),
        }
    }
}

/// The kind of a config source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Specifier {
    /// The aggregated stream of the bootstrap.
    Ads,
    /// The source of the resource that names this one (C14).
    SelfSource,
    /// Control planes.
    Api(Arc<ApiSource>),
    /// A file that holds a `DiscoveryResponse`.
    Path(PathSource),
}

/// Control planes, in the order in which they are tried (C46).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiSource {
    /// How they are asked.
    pub transport: Transport,
    /// The first is the best.
    pub servers: Vec<Arc<ControlPlane>>,
    /// How fast requests may be sent; `None` is as fast as they are made (E6).
    pub rate_limit: Option<RateLimit>,
    /// When to connect again.
    pub backoff: BackoffConfig,
    /// Sends the node in the first request of a stream only (E14).
    pub node_on_first_message_only: bool,
}

/// How a control plane is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// By gRPC streams.
    Grpc {
        /// State of the world, or delta.
        mode: Mode,
        /// One stream for all types, or one for each.
        aggregated: bool,
    },
    /// By polls.
    Rest {
        /// The time between two polls, to which jitter is added.
        refresh_delay: Duration,
        /// How long a poll may take.
        request_timeout: Duration,
    },
}

/// A file as a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathSource {
    /// The file.
    pub path: PathBuf,
    /// The directory whose moves announce another file; that of the file if it
    /// is `None`.
    pub watched_directory: Option<PathBuf>,
}
