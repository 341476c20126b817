//! Connection managers, in an API listener or in a filter chain (C14, C59,
//! C61, A31, A41).

use super::{check_duration, config_source, decode_body, http_filters, routes};
use crate::acceptance::extensions::Side;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::acceptance::problem::Problem;
use crate::envoy::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use crate::envoy::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;

/// The full name of the message.
pub(super) const MANAGER: &str =
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// Checks the body of a connection manager.
pub(super) fn check_manager(
    body: &[u8],
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let Some(manager) = decode_body::<HttpConnectionManager>(MANAGER, body, place, findings) else {
        return;
    };

    // A41: the client's address is that of its connection, never of a header.
    if manager.xff_num_trusted_hops != 0 {
        let problem = Problem::value(manager.xff_num_trusted_hops, "0");
        findings.reject(&place.field("xff_num_trusted_hops"), problem);
    }

    if !manager.original_ip_detection_extensions.is_empty() {
        let place = place.field("original_ip_detection_extensions");
        findings.reject(&place, Problem::Insecure);
    }
    check_routes(&manager, place, findings);
    http_filters::check_filters(&manager.http_filters, side, place, findings);
    if let Some(options) = &manager.common_http_protocol_options {
        let place = place.field("common_http_protocol_options");
        let place = place.field("max_stream_duration");
        check_duration(options.max_stream_duration.as_ref(), &place, findings);
    }
}

/// Checks the routes of a connection manager, or the source of its routes
/// (C14).
fn check_routes(manager: &HttpConnectionManager, place: &Place<'_>, findings: &mut Findings<'_>) {
    match &manager.route_specifier {
        Some(RouteSpecifier::RouteConfig(routes)) => {
            routes::check_configuration(routes, &place.field("route_config"), findings);
        }
        Some(RouteSpecifier::Rds(rds)) => {
            let place = place.field("rds");
            let source_place = place.field("config_source");
            config_source::check_source(rds.config_source.as_ref(), &source_place, findings);
            if rds.route_config_name.is_empty() {
                findings.reject(&place.field("route_config_name"), Problem::Missing);
            }
        }
        Some(RouteSpecifier::ScopedRoutes(_)) => {
            let problem = Problem::value("scoped_routes", "rds or route_config");
            findings.reject(&place.field("route_specifier"), problem);
        }
        None => findings.reject(&place.field("route_specifier"), Problem::Missing),
    }
}
