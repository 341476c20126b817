//! `envoy.config.core.v3.ApiConfigSource`: control planes, and how they are
//! asked.

use std::sync::Arc;
use std::time::Duration;

use trunkline_core::message::Mode;
use trunkline_core::sink::BackoffConfig;
use trunkline_proto::envoy::envoy::config::core::v3::api_config_source::ApiType;
use trunkline_proto::envoy::envoy::config::core::v3::{
    ApiConfigSource, ApiVersion, RateLimitSettings,
};

use super::super::problem::Problem;
use super::super::report::Scope;
use super::{Resolver, duration};
use crate::client::{ApiSource, ControlPlane, RateLimit, Transport};

/// How long a poll may take, if nothing else is said.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

impl Resolver<'_> {
    /// Resolves the control planes of a source. `is_ads` marks the aggregated
    /// stream of the bootstrap, whose `api_type` is written without
    /// `AGGREGATED`. Returns `None` after a mistake.
    pub(in super::super) fn resolve_api(
        self,
        source: &ApiConfigSource,
        is_ads: bool,
        scope: &Scope<'_>,
    ) -> Option<ApiSource> {
        if source.transport_api_version() != ApiVersion::V3 {
            let version = source.transport_api_version().as_str_name();
            let what = format!("the transport_api_version {version}");
            scope.unsupported::<()>(what, "write transport_api_version: V3");
        }

        let transport = read_transport(source, is_ads, scope);
        let limits = source.rate_limit_settings.as_ref();
        let limits_scope = scope.field("rate_limit_settings");
        let rate_limit = limits.map(|limits| read_rate_limit(limits, &limits_scope));
        let servers = match source.api_type() {
            ApiType::Rest => self.resolve_rest_servers(source, scope),
            _ => self.resolve_grpc_servers(source, scope),
        };

        let (servers, backoff) = servers?;
        Some(ApiSource {
            transport: transport?,
            servers,
            rate_limit: match rate_limit {
                None => None,
                Some(limit) => Some(limit?),
            },
            backoff,
            node_on_first_message_only: source.set_node_on_first_message_only,
        })
    }

    /// Returns the servers of streams, in their order (E11, C46), and the
    /// back-off of the first one.
    fn resolve_grpc_servers(self, source: &ApiConfigSource, scope: &Scope<'_>) -> Option<Servers> {
        if !source.cluster_names.is_empty() {
            let remedy = "name the cluster in grpc_services: [{envoy_grpc: {cluster_name: ...}}]";
            scope
                .field("cluster_names")
                .unsupported::<()>("cluster_names for gRPC", remedy);
        }

        let services = source.grpc_services.iter().enumerate();
        let results: Vec<_> = services
            .map(|(index, service)| {
                self.resolve_service(service, &scope.index("grpc_services", index))
            })
            .collect();
        if results.is_empty() {
            let remedy = "add grpc_services: [{envoy_grpc: {cluster_name: ...}}]";
            return scope.missing("the control plane", remedy);
        }

        let results = results.into_iter().collect::<Option<Vec<_>>>()?;
        let backoff = results.first().map(|(_, backoff)| *backoff)?;
        let servers = results.into_iter().map(|(server, _)| Arc::new(server));
        Some((servers.collect(), backoff))
    }

    /// Returns the servers that are polled, with the default back-off.
    fn resolve_rest_servers(self, source: &ApiConfigSource, scope: &Scope<'_>) -> Option<Servers> {
        if !source.grpc_services.is_empty() {
            let scope = scope.field("grpc_services");
            scope.unsupported::<()>(
                "grpc_services for REST",
                "name the cluster in cluster_names",
            );
        }

        let names = source.cluster_names.iter().enumerate();
        let results: Vec<_> = names
            .map(|(index, name)| {
                let upstream = self.resolve_cluster(name, &scope.index("cluster_names", index))?;
                Some(Arc::new(ControlPlane::from(upstream)))
            })
            .collect();
        if results.is_empty() {
            return scope.missing("the control plane", "add cluster_names: [...]");
        }

        let servers = results.into_iter().collect::<Option<Vec<_>>>()?;
        Some((servers, BackoffConfig::default()))
    }
}

/// Servers, and when to connect to them again.
type Servers = (Vec<Arc<ControlPlane>>, BackoffConfig);

/// Returns the transport of a source. REST is a mistake for the aggregated
/// stream.
fn read_transport(source: &ApiConfigSource, is_ads: bool, scope: &Scope<'_>) -> Option<Transport> {
    let grpc = |mode, aggregated| Some(Transport::Grpc { mode, aggregated });
    match source.api_type() {
        ApiType::Grpc => grpc(Mode::Sotw, is_ads),
        ApiType::DeltaGrpc => grpc(Mode::Delta, is_ads),
        ApiType::AggregatedGrpc => grpc(Mode::Sotw, true),
        ApiType::AggregatedDeltaGrpc => grpc(Mode::Delta, true),
        ApiType::Rest if !is_ads => read_rest(source, scope),
        api_type => {
            let what = format!("the api_type {}", api_type.as_str_name());
            let scope = scope.field("api_type");
            scope.unsupported(what, "write GRPC or DELTA_GRPC")
        }
    }
}

/// Reads the times of polls. Returns `None` after a mistake.
fn read_rest(source: &ApiConfigSource, scope: &Scope<'_>) -> Option<Transport> {
    let request_timeout = duration::read_or(
        source.request_timeout.as_ref(),
        REQUEST_TIMEOUT,
        &scope.field("request_timeout"),
    );

    let Some(delay) = source.refresh_delay.as_ref() else {
        return scope.missing("refresh_delay", "write the time between polls, such as 5s");
    };
    let delay = duration::read(delay, &scope.field("refresh_delay"))?;
    if delay.is_zero() {
        let reason = "polls need a time between them; write such as 5s";
        let scope = scope.field("refresh_delay");
        return scope.mistake(Problem::Invalid { reason });
    }
    Some(Transport::Rest {
        refresh_delay: delay,
        request_timeout: request_timeout?,
    })
}

/// Reads how many requests may be sent in a time (E6). A limit that lets no
/// request through is a mistake.
fn read_rate_limit(settings: &RateLimitSettings, scope: &Scope<'_>) -> Option<RateLimit> {
    let RateLimit {
        max_tokens,
        token_time,
    } = RateLimit::default();

    let max_tokens = settings.max_tokens.map_or(max_tokens, |max| max.value);
    let token_time = match settings.fill_rate.map(|rate| rate.value) {
        None => Some(token_time),
        // At a lower rate, the next token comes after minutes, or never.
        Some(rate) if rate >= 0.001 => Duration::try_from_secs_f64(rate.recip()).ok(),
        Some(_) => None,
    };

    match token_time.filter(|_| max_tokens > 0) {
        Some(token_time) => Some(RateLimit {
            max_tokens,
            token_time,
        }),
        None => {
            let reason = "no request could be sent; write a max_tokens of 1 and a fill_rate of \
                          0.001 at least";
            scope.mistake(Problem::Invalid { reason })
        }
    }
}
