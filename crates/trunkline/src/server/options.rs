//! What a server can be told once, before it serves.

use std::time::Duration;

use trunkline_core::limits::Limits;
use trunkline_core::resource::TypeUrl;

use crate::load::LoadSettings;
use crate::node::{BaseRule, NodeMatch, ParamRules};

/// The settings of a server. The defaults suit a fleet of some thousand
/// proxies.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What the server calls itself in its responses (S68).
    pub identifier: String,
    /// What one stream may make the server hold (S72).
    pub limits: Limits,
    /// Virtual hosts that clients get without asking, by their nodes.
    pub base_sets: Vec<BaseRule>,
    /// Parameters of clients that do not send any, by their nodes (TP2).
    pub params: ParamRules,
    /// Clients that understand `resource_errors` (TP3), beside those that say
    /// so by [`Options::RESOURCE_ERRORS`].
    pub resource_errors: Vec<NodeMatch>,
    /// Types of which an empty first request asks for nothing (S18).
    pub named_only: Vec<TypeUrl>,
    /// Whether a changed cluster gets its endpoints again (S53).
    pub repeat_endpoints: bool,
    /// Whether secrets are given to peers that are neither local nor behind TLS.
    pub secrets_in_clear: bool,
    /// Streams at once; one more is refused before its first response (S78).
    pub streams: usize,
    /// Connections at once; one more waits to be accepted.
    pub connections: usize,
    /// Bytes of one request: an Envoy that reconnects names all it holds (S80).
    pub request_bytes: usize,
    /// Requests that a stream may make in a second; what is more waits.
    pub requests_per_second: u32,
    /// Responses that are on their way to a transport at once; 0 is no bound.
    pub pushes: usize,
    /// Bytes that are on their way to transports at once; 0 is no bound.
    pub bytes_in_flight: usize,
    /// How long a change waits for others, so that a burst is one response.
    pub debounce: Duration,
    /// How long a stream that is refused is held before it ends, so that the
    /// peer does not come back at once (S78).
    pub refusal_delay: Duration,
    /// How long a stream waits for the first contents before it is refused (S51).
    pub ready_patience: Duration,
    /// How often a silent connection is asked whether it is still there.
    pub keep_alive: Duration,
    /// How long it may take to answer.
    pub keep_alive_timeout: Duration,
    /// How old a connection may become, give or take a tenth, so that a fleet
    /// spreads over replicas by itself; `None` is for ever.
    pub max_age: Option<Duration>,
    /// What clients are asked to report of their load.
    pub load: LoadSettings,
    /// Over how long the streams of a connection that is too old, or of a
    /// server that drains, are ended (S79).
    pub drain: Duration,
}

impl Options {
    /// The client feature by which a node says that it understands
    /// `resource_errors` (TP3).
    pub const RESOURCE_ERRORS: &'static str = "trunkline.resource_errors";
}

impl Default for Options {
    fn default() -> Self {
        Self {
            identifier: "trunkline".to_owned(),
            limits: Limits::default(),
            base_sets: Vec::new(),
            params: ParamRules::default(),
            resource_errors: Vec::new(),
            named_only: Vec::new(),
            repeat_endpoints: true,
            secrets_in_clear: false,
            streams: 100_000,
            connections: 100_000,
            request_bytes: 64 << 20,
            requests_per_second: 2_000,
            pushes: 0,
            bytes_in_flight: 1 << 30,
            debounce: Duration::from_millis(1),
            refusal_delay: Duration::from_secs(2),
            ready_patience: Duration::from_secs(2),
            keep_alive: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(20),
            max_age: Some(Duration::from_secs(30 * 60)),
            load: LoadSettings::default(),
            drain: Duration::from_secs(5),
        }
    }
}
