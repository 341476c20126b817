//! The settings of a server, fixed before it serves.

use std::time::Duration;

use trunkline_core::limits::Limits;
use trunkline_core::resource::TypeUrl;

use crate::listen::Lanes;
use crate::load::{LoadLimits, LoadSettings};
use crate::node::{BaseRule, NodeMatch, ParamRules};

/// The settings of a server. The defaults suit a fleet of some thousand
/// proxies.
///
/// ```
/// use trunkline::core::limits::Limits;
/// use trunkline::{Server, kind};
///
/// let server = Server::builder().options(|options| {
///     options.streams = 5_000;
///     options.limits = Limits { subscriptions: 10_000, ..Limits::default() };
///     options.named_only = vec![kind::CDS.into()];
/// });
/// # drop(server);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The name of the server in its responses (S68).
    pub identifier: String,
    /// Limits on the state of one stream (S72).
    pub limits: Limits,
    /// Base subscriptions: virtual hosts that clients get without asking, by
    /// their nodes.
    pub base_sets: Vec<BaseRule>,
    /// Parameters of clients that do not send any, by their nodes (TP2).
    pub params: ParamRules,
    /// Clients that understand `resource_errors` (TP3), beside those that have
    /// the feature [`Options::RESOURCE_ERRORS`].
    pub resource_errors: Vec<NodeMatch>,
    /// Types of which an empty first request subscribes to nothing (S18).
    pub named_only: Vec<TypeUrl>,
    /// Whether endpoints are resent after their cluster changed (S53).
    pub repeat_endpoints: bool,
    /// Whether secrets, and resources with a private key in them, are sent to
    /// every client: not only to one that is local, or behind TLS with a
    /// certificate or another identity.
    pub secrets_in_clear: bool,
    /// Streams at once; one more is refused before its first response (S78).
    pub streams: usize,
    /// Streams at once of one address, and of one identity; zero is half of
    /// [`Self::streams`]. One more is refused before its first response. A fleet
    /// may be behind one address, or share one identity.
    pub streams_per_peer: usize,
    /// Streams at once on one connection; HTTP/2 keeps further ones with the
    /// client. Envoy opens another connection then.
    pub streams_per_connection: usize,
    /// Connections at once. One more is closed, unless an address that has more
    /// of them has one without a request, which is closed in its place.
    pub connections: usize,
    /// Bytes of memory; near them, new streams, large answers and names that do
    /// not exist are refused ([`memory`](crate::memory)). `None` is no limit.
    pub memory_limit: Option<u64>,
    /// Connections at once of one address; zero is half of
    /// [`Self::connections`]. One more is closed at once. A fleet may be behind
    /// one address.
    pub connections_per_address: usize,
    /// Bytes of one request: an Envoy that reconnects names all it holds (S80).
    pub request_bytes: usize,
    /// Requests per second that a stream may make; further ones wait.
    pub requests_per_second: u32,
    /// Bytes of requests that have begun to arrive and are not complete, of all
    /// clients; one address may have half of them. A long request beyond its
    /// share waits, and small ones never do.
    pub unfinished_bytes: usize,
    /// Bytes of responses of one connection that its client has not taken.
    /// Beyond them its streams wait for their own client; one response may
    /// always be on its way.
    pub unsent_bytes: usize,
    /// How long a client may take nothing of a response that waits for it. Then
    /// its connection is closed: it is broken, although its transport may
    /// answer pings. Zero is for ever.
    pub send_timeout: Duration,
    /// How long a change waits for others, so that a burst is one response.
    pub debounce: Duration,
    /// How long a refused stream is held before it ends, so that the client
    /// does not reconnect at once (S78).
    pub refusal_delay: Duration,
    /// How long a stream waits for contents to be loaded before it is refused
    /// (S51).
    pub ready_patience: Duration,
    /// The interval of pings on an idle connection.
    pub keep_alive: Duration,
    /// The timeout of a ping.
    pub keep_alive_timeout: Duration,
    /// The age at which a connection is closed, give or take a tenth, so that a
    /// fleet spreads over replicas by itself; `None` is never.
    pub max_age: Option<Duration>,
    /// The runtimes of the server; `None` is the one that it is called in, in
    /// which the work for clients that ask for much delays all others.
    pub lanes: Option<Lanes>,
    /// The load reports that clients are asked for.
    pub load: LoadSettings,
    /// Bytes of memory for the load reports of all clients, of which one client
    /// may have a third. One that does not fit is refused and counted.
    pub load_bytes: usize,
    /// The time over which the streams of a connection that is too old, or of a
    /// server that drains, are ended (S79).
    pub drain: Duration,
}

impl Options {
    /// The client feature of understanding `resource_errors` (TP3).
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
            streams_per_peer: 0,
            streams_per_connection: 1_000,
            connections: 100_000,
            memory_limit: None,
            connections_per_address: 0,
            request_bytes: 64 << 20,
            requests_per_second: 2_000,
            unfinished_bytes: 256 << 20,
            unsent_bytes: 64 << 20,
            send_timeout: Duration::from_secs(60),
            debounce: Duration::from_millis(1),
            refusal_delay: Duration::from_secs(2),
            ready_patience: Duration::from_secs(2),
            keep_alive: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(20),
            max_age: Some(Duration::from_secs(30 * 60)),
            lanes: None,
            load: LoadSettings::default(),
            load_bytes: LoadLimits::default().bytes,
            drain: Duration::from_secs(5),
        }
    }
}
