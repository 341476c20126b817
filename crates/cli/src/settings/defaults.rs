//! Default settings: those of the library, and the addresses.

use std::time::Duration;

use trunkline::load::LoadClusters;

use super::types::{ByteSize, LogFormat, LogLevel, OnDangling};
use super::{Address, Limits, Load, Rules, Sending, Settings, Times};

/// The default address of xDS.
const LISTEN: &str = "127.0.0.1:18000";
/// The default address of the admin API.
pub(crate) const ADMIN: &str = "127.0.0.1:18001";

impl Settings {
    /// The defaults. The literals are valid addresses.
    pub(crate) fn new() -> Self {
        let options = trunkline::Options::default();
        let load = Load {
            clusters: Vec::new(),
            interval: options.load.interval,
            endpoints: options.load.endpoint_granularity,
        };
        Self {
            listen: Address::known(LISTEN),
            also_listen: Vec::new(),
            admin: Address::known(ADMIN),
            config: Vec::new(),
            dangling: OnDangling::Warn,
            config_quiet: Duration::from_millis(50),
            config_rescan: Duration::from_secs(10),
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            admin_token_file: None,
            allow_plaintext_secrets: options.secrets_in_clear,
            audit_log: None,
            log_format: LogFormat::Text,
            log_level: LogLevel::Info,
            sending: Sending {
                identifier: options.identifier.clone(),
                debounce: options.debounce,
                repeat_endpoints: options.repeat_endpoints,
                named_only: Vec::new(),
            },
            rules: Rules::default(),
            times: times(&options),
            limits: limits(options),
            load,
        }
    }

    /// Sets the options of the library.
    pub(crate) fn fill(&self, options: &mut trunkline::Options) {
        let Self {
            sending,
            limits,
            times,
            load,
            rules,
            ..
        } = self;
        options.load.interval = load.interval;
        options.load.endpoint_granularity = load.endpoints;
        options.load.clusters = match &load.clusters[..] {
            [] => LoadClusters::All,
            named => LoadClusters::Named(named.to_vec()),
        };
        options.identifier.clone_from(&sending.identifier);
        options.debounce = sending.debounce;
        options.repeat_endpoints = sending.repeat_endpoints;
        let urls = sending.named_only.iter();
        options.named_only = urls.map(|name| crate::kinds::type_url(name)).collect();
        options.base_sets.clone_from(&rules.base_sets);
        options.params.clone_from(&rules.params);
        options.resource_errors.clone_from(&rules.resource_errors);
        options.secrets_in_clear = self.allow_plaintext_secrets;
        options.streams = limits.streams;
        options.connections = limits.connections;
        options.request_bytes = limits.request.0;
        options.requests_per_second = limits.requests_per_second;
        options.pushes = limits.pushes;
        options.bytes_in_flight = limits.bytes_in_flight.0;
        options.limits.subscriptions = limits.subscriptions;
        options.limits.hosts = limits.hosts;
        options.limits.globs = limits.globs;
        options.limits.types = limits.types;
        options.limits.params = limits.params;
        options.limits.all_params = limits.all_params;
        options.limits.name_bytes = limits.name.0;
        options.limits.error_bytes = limits.error.0;
        options.limits.response_bytes = limits.response.0;
        options.drain = times.drain;
        options.ready_patience = times.ready_patience;
        options.refusal_delay = times.refusal_delay;
        options.keep_alive = times.keep_alive;
        options.keep_alive_timeout = times.keep_alive_timeout;
        let age = times.max_connection_age;
        options.max_age = Some(age).filter(|age| !age.is_zero());
    }
}

fn limits(options: trunkline::Options) -> Limits {
    let stream = options.limits;
    Limits {
        streams: options.streams,
        connections: options.connections,
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
        pushes: options.pushes,
        bytes_in_flight: ByteSize(options.bytes_in_flight),
        admin_body: ByteSize(64 << 20),
    }
}

fn times(options: &trunkline::Options) -> Times {
    Times {
        drain: options.drain,
        ready_patience: options.ready_patience,
        refusal_delay: options.refusal_delay,
        keep_alive: options.keep_alive,
        keep_alive_timeout: options.keep_alive_timeout,
        max_connection_age: options.max_age.unwrap_or_default(),
    }
}
