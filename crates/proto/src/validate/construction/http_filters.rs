//! The filters of a connection manager, and of its upgrades.

use prost_reflect::DynamicMessage;

use super::filter_list::{self, Kind};
use super::read::{Part, messages};
use crate::validate::walk::Walk;

const HTTP: Kind = Kind {
    name: "HTTP",
    other_packages: &["network.", "listener.", "udp."],
    terminal: &["http.router.v3.Router"],
    not_terminal: &[
        "http.adaptive_concurrency.v3.AdaptiveConcurrency",
        "http.api_key_auth.v3.ApiKeyAuth",
        "http.aws_lambda.v3.Config",
        "http.bandwidth_limit.v3.BandwidthLimit",
        "http.buffer.v3.Buffer",
        "http.compressor.v3.Compressor",
        "http.cors.v3.Cors",
        "http.csrf.v3.CsrfPolicy",
        "http.decompressor.v3.Decompressor",
        "http.ext_authz.v3.ExtAuthz",
        "http.ext_proc.v3.ExternalProcessor",
        "http.fault.v3.HTTPFault",
        "http.gcp_authn.v3.GcpAuthnFilterConfig",
        "http.grpc_stats.v3.FilterConfig",
        "http.grpc_web.v3.GrpcWeb",
        "http.header_mutation.v3.HeaderMutation",
        "http.header_to_metadata.v3.Config",
        "http.health_check.v3.HealthCheck",
        "http.json_to_metadata.v3.JsonToMetadata",
        "http.jwt_authn.v3.JwtAuthentication",
        "http.local_ratelimit.v3.LocalRateLimit",
        "http.lua.v3.Lua",
        "http.oauth2.v3.OAuth2",
        "http.on_demand.v3.OnDemand",
        "http.ratelimit.v3.RateLimit",
        "http.rbac.v3.RBAC",
        "http.set_filter_state.v3.Config",
        "http.stateful_session.v3.StatefulSession",
    ],
    remedy: "envoy.filters.http.router",
};

/// Reports the mistakes in the filters of a connection manager.
pub(super) fn check_manager(walk: &mut Walk, manager: &DynamicMessage) {
    let place = [Part::Field("http_filters")];
    let filters = messages(manager, "http_filters");
    filter_list::check_filters(walk, manager, &place, &HTTP, &filters);

    for (index, upgrade) in messages(manager, "upgrade_configs").into_iter().enumerate() {
        let place = [
            Part::Field("upgrade_configs"),
            Part::Index(index),
            Part::Field("filters"),
        ];
        let filters = messages(upgrade, "filters");
        filter_list::check_filters(walk, manager, &place, &HTTP, &filters);
    }
}
