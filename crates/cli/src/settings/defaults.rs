//! Default settings: those of the library, and the addresses.

use std::time::Duration;

use trunkline::load::LoadClusters;

use super::types::{ByteSize, LogFormat, LogLevel, MemoryLimit, OnDangling};
use super::{Address, Limits, Load, Mcp, Rules, Sending, Settings, Times};

/// The default address of xDS.
const LISTEN: &str = "127.0.0.1:18000";
/// The default address of the admin API.
pub(crate) const ADMIN: &str = "127.0.0.1:18001";

/// The default number of revisions that are kept.
const HISTORY: usize = 1000;

/// The default limit of a body of the admin API.
const ADMIN_BODY: ByteSize = ByteSize(64 << 20);

impl Settings {
    /// Makes the default settings. A setting that the library has as an option
    /// gets the library's default.
    pub(crate) fn new() -> Self {
        let options = trunkline::Options::default();
        let sending = Sending {
            identifier: options.identifier.clone(),
            debounce: options.debounce,
            repeat_endpoints: options.repeat_endpoints,
            named_only: Vec::new(),
        };
        let load = Load {
            clusters: Vec::new(),
            interval: options.load.interval,
            endpoints: options.load.endpoint_granularity,
            memory: ByteSize(options.load_bytes),
        };

        Self {
            // `known` does not fail, since the constants are valid addresses.
            listen: Address::known(LISTEN),
            also_listen: Vec::new(),
            admin: Address::known(ADMIN),
            health: None,
            config: Vec::new(),
            data: None,
            history: HISTORY,
            allow_empty: false,
            await_origins: Vec::new(),
            hold_removals: true,
            dangling: OnDangling::Warn,
            config_quiet: Duration::from_millis(50),
            config_rescan: Duration::from_secs(10),
            descriptors: Vec::new(),
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            admin_tls_client_ca: None,
            admin_allow: Vec::new(),
            admin_token_file: None,
            admin_auth_reads: false,
            allow_plaintext_secrets: options.secrets_in_clear,
            audit_log: None,
            audit_required: false,
            log_format: LogFormat::Text,
            log_level: LogLevel::Info,
            sending,
            rules: Rules::default(),
            times: default_times(&options),
            limits: default_limits(options),
            load,
            mcp: Mcp::default(),
        }
    }

    /// Sets the options of the library by the settings: all of them but its
    /// hooks and contents.
    pub(crate) fn fill(&self, options: &mut trunkline::Options) {
        options.secrets_in_clear = self.allow_plaintext_secrets;
        options.base_sets.clone_from(&self.rules.base_sets);
        options.params.clone_from(&self.rules.params);
        let errors = &self.rules.resource_errors;
        options.resource_errors.clone_from(errors);
        self.sending.fill(options);
        self.limits.fill(options);
        self.times.fill(options);
        self.load.fill(options);
    }
}

impl Sending {
    /// Sets the options of sending. Types may be short names or type URLs.
    fn fill(&self, options: &mut trunkline::Options) {
        options.identifier.clone_from(&self.identifier);
        options.debounce = self.debounce;
        options.repeat_endpoints = self.repeat_endpoints;
        let types = self.named_only.iter();
        options.named_only = types.map(|text| crate::kinds::type_url(text)).collect();
    }
}

impl Limits {
    /// Sets the limits of the server and of each stream. The limit for bodies
    /// of the admin API is no option of the library.
    fn fill(&self, options: &mut trunkline::Options) {
        options.streams = self.streams;
        options.streams_per_peer = self.streams_per_peer;
        options.connections = self.connections;
        options.memory_limit = self.memory.bytes();
        options.connections_per_address = self.connections_per_address;
        options.request_bytes = self.request.0;
        options.requests_per_second = self.requests_per_second;

        let stream = &mut options.limits;
        stream.subscriptions = self.subscriptions;
        stream.hosts = self.hosts;
        stream.globs = self.globs;
        stream.types = self.types;
        stream.params = self.params;
        stream.all_params = self.all_params;
        stream.name_bytes = self.name.0;
        stream.error_bytes = self.error.0;
        stream.response_bytes = self.response.0;
    }
}

impl Times {
    /// Sets the timeouts and intervals. A maximum age of zero means no maximum.
    fn fill(&self, options: &mut trunkline::Options) {
        options.drain = self.drain;
        options.ready_patience = self.ready_patience;
        options.refusal_delay = self.refusal_delay;
        options.send_timeout = self.send_timeout;
        options.keep_alive = self.keep_alive;
        options.keep_alive_timeout = self.keep_alive_timeout;
        let age = self.max_connection_age;
        options.max_age = Some(age).filter(|age| !age.is_zero());
    }
}

impl Load {
    /// Sets the options of load reports. Without named clusters, clients report
    /// on all of them.
    fn fill(&self, options: &mut trunkline::Options) {
        options.load.interval = self.interval;
        options.load.endpoint_granularity = self.endpoints;
        options.load_bytes = self.memory.0;
        options.load.clusters = match &self.clusters[..] {
            [] => LoadClusters::All,
            names => LoadClusters::Named(names.to_vec()),
        };
    }
}

/// Returns the default limits: those of the library, and that of the admin API.
fn default_limits(options: trunkline::Options) -> Limits {
    let stream = options.limits;

    Limits {
        streams: options.streams,
        streams_per_peer: options.streams_per_peer,
        connections: options.connections,
        memory: MemoryLimit::Cgroup,
        connections_per_address: options.connections_per_address,
        subscriptions: stream.subscriptions,
        hosts: stream.hosts,
        globs: stream.globs,
        types: stream.types,
        params: stream.params,
        all_params: stream.all_params,
        name: ByteSize(stream.name_bytes),
        error: ByteSize(stream.error_bytes),
        request: ByteSize(options.request_bytes),
        response: ByteSize(stream.response_bytes),
        requests_per_second: options.requests_per_second,
        admin_body: ADMIN_BODY,
    }
}

/// Returns the default times, which are those of the library. A maximum age of
/// `None` there is zero here.
fn default_times(options: &trunkline::Options) -> Times {
    Times {
        drain: options.drain,
        ready_patience: options.ready_patience,
        refusal_delay: options.refusal_delay,
        send_timeout: options.send_timeout,
        keep_alive: options.keep_alive,
        keep_alive_timeout: options.keep_alive_timeout,
        max_connection_age: options.max_age.unwrap_or_default(),
    }
}
