//! `envoy.config.core.v3.GrpcService`: a control plane that is asked by gRPC.

use trunkline_core::sink::BackoffConfig;
use trunkline_proto::envoy::envoy::config::core::v3::grpc_service::{EnvoyGrpc, TargetSpecifier};
use trunkline_proto::envoy::envoy::config::core::v3::{GrpcService, HeaderValue, RetryPolicy};

use super::super::problem::Problem;
use super::super::report::Scope;
use super::{Resolver, duration};
use crate::client::{ControlPlane, Secret};

impl Resolver<'_> {
    /// Resolves the control plane of a gRPC service, and its back-off.
    pub(super) fn resolve_service(
        self,
        service: &GrpcService,
        scope: &Scope<'_>,
    ) -> Option<(ControlPlane, BackoffConfig)> {
        let metadata = read_headers(&service.initial_metadata, scope);
        let mut retry_policy = service.retry_policy.as_ref();
        let mut retry_scope = scope.field("retry_policy");
        let server = match service.target_specifier.as_ref() {
            None => scope.missing(
                "the control plane",
                "set envoy_grpc: {cluster_name: ...}, or google_grpc: {target_uri: ...}",
            ),
            Some(TargetSpecifier::EnvoyGrpc(envoy)) => {
                let scope = scope.field("envoy_grpc");
                if envoy.retry_policy.is_some() {
                    retry_policy = envoy.retry_policy.as_ref();
                    retry_scope = scope.field("retry_policy");
                }
                self.resolve_envoy_grpc(envoy, &scope)
            }
            Some(TargetSpecifier::GoogleGrpc(google)) => {
                self.resolve_google_grpc(google, &scope.field("google_grpc"))
            }
        };

        let backoff = read_backoff(retry_policy, &retry_scope);
        let mut server = server?;
        server.metadata.extend(metadata?);
        if server.sends_token_in_plaintext() {
            scope.warn(Problem::PlainToken);
        }
        Some((server, backoff?))
    }

    /// Resolves the static cluster of a gRPC service. One that is not set up for
    /// HTTP/2 gets a warning.
    fn resolve_envoy_grpc(self, service: &EnvoyGrpc, scope: &Scope<'_>) -> Option<ControlPlane> {
        let upstream = self.resolve_cluster(&service.cluster_name, &scope.field("cluster_name"))?;
        if !upstream.speaks_http2 {
            let scope = scope.at_path(&upstream.path);
            let what = "a cluster without http2_protocol_options";
            scope.warn_ignored(what, "gRPC needs HTTP/2, which is spoken all the same");
        }
        let mut server = ControlPlane::from(upstream);
        let authority = Some(service.authority.clone());
        server.authority = authority.filter(|authority| !authority.is_empty());
        Some(server)
    }
}

/// Reads the headers of every stream. A mistake does not show their values,
/// which may be tokens.
fn read_headers(headers: &[HeaderValue], scope: &Scope<'_>) -> Option<Vec<(String, Secret)>> {
    let pairs = headers.iter().enumerate().map(|(index, header)| {
        let scope = scope.index("initial_metadata", index);
        let is_key = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
        let key = header.key.to_ascii_lowercase();
        if key.is_empty() || !key.chars().all(is_key) {
            let reason = "a key of metadata has letters, digits, and the signs - _ . only";
            return scope.field("key").mistake(Problem::Invalid { reason });
        }

        let raw_text = String::from_utf8(header.raw_value.clone()).ok();
        let value = if header.value.is_empty() {
            raw_text.unwrap_or_default()
        } else {
            header.value.clone()
        };

        let is_text = |char: char| (' '..='~').contains(&char);
        if value.is_empty() || !value.chars().all(is_text) {
            let reason = "a value of metadata is printable ASCII; write it as `value`";
            return scope.mistake(Problem::Invalid { reason });
        }
        Some((key, Secret(value)))
    });
    let pairs: Vec<_> = pairs.collect();
    pairs.into_iter().collect()
}

/// Reads the back-off between two connections. Without a `max_interval`, the
/// longest wait is ten times `base_interval` (E7).
fn read_backoff(policy: Option<&RetryPolicy>, scope: &Scope<'_>) -> Option<BackoffConfig> {
    let Some(retry_back_off) = policy.and_then(|policy| policy.retry_back_off.as_ref()) else {
        return Some(BackoffConfig::default());
    };
    let scope = scope.field("retry_back_off");
    let Some(base) = retry_back_off.base_interval.as_ref() else {
        return scope.missing("base_interval", "write the first wait, such as 0.5s");
    };
    let base = duration::read(base, &scope.field("base_interval"))?;
    let config = BackoffConfig::with_base(base);

    let max_scope = scope.field("max_interval");
    let max = duration::read_or(retry_back_off.max_interval.as_ref(), config.max, &max_scope)?;
    if base.is_zero() || max < base {
        let reason = "base_interval must be longer than zero, and at most max_interval";
        return scope.mistake(Problem::Invalid { reason });
    }
    Some(BackoffConfig { max, ..config })
}
