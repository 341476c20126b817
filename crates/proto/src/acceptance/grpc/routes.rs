//! Route configurations, virtual hosts and their routes (C58, A28).

use std::collections::HashMap;

use super::{http_filters, retry, route_action, route_match};
use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::policy::Unsupported;
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::acceptance::report::IgnoreReason;
use crate::descriptor::full_name;
use crate::envoy::envoy::config::route::v3::route::Action;
use crate::envoy::envoy::config::route::v3::{Route, RouteConfiguration, VirtualHost};

/// Checks a route configuration that is a resource.
pub(in crate::acceptance) fn check(findings: &mut Findings<'_>, routes: &RouteConfiguration) {
    check_configuration(routes, &Place::ROOT, findings);
}

/// Checks a virtual host that is a resource (VHDS). The plugins that it may
/// name are in its route configuration, which is not known here.
pub(in crate::acceptance) fn check_virtual_host(findings: &mut Findings<'_>, host: &VirtualHost) {
    check_host(host, None, &Place::ROOT, findings);
}

/// The plugins that a route configuration declares, and whether each is
/// supported.
pub(super) type Plugins<'a> = HashMap<&'a str, bool>;

/// Checks a route configuration, alone or inside a listener.
pub(super) fn check_configuration(
    routes: &RouteConfiguration,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let plugins = check_plugins(routes, place, findings);
    for (index, host) in routes.virtual_hosts.iter().enumerate() {
        let place = place.item("virtual_hosts", index);
        check_host(host, Some(&plugins), &place, findings);
    }
}

/// Checks the plugins that a route configuration declares, and returns them. An
/// optional plugin that is not supported is ignored.
fn check_plugins<'a>(
    routes: &'a RouteConfiguration,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Plugins<'a> {
    let mut plugins = Plugins::new();
    for (index, plugin) in routes.cluster_specifier_plugins.iter().enumerate() {
        let place = place.item("cluster_specifier_plugins", index);
        let place = place.field("extension");
        let Some(extension) = &plugin.extension else {
            findings.reject(&place, Problem::Missing);
            continue;
        };

        let type_url = extension.typed_config.as_ref().map(|any| &*any.type_url);
        let message = full_name(type_url.unwrap_or_default());
        let is_supported = (findings.policy().cluster_specifier_plugins).contains(message);

        let short_name = || clip(message, MAX_VALUE).to_owned();
        match (is_supported, plugin.is_optional) {
            (true, _) => {}
            (false, true) => findings.ignore(&place, IgnoreReason::Optional(short_name())),
            (false, false) => findings.reject(&place, Problem::Extension(short_name())),
        }
        plugins.insert(&extension.name, is_supported);
    }
    plugins
}

/// Checks the routes, retries and overrides of a virtual host.
fn check_host(
    host: &VirtualHost,
    plugins: Option<&Plugins<'_>>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    for (index, route) in host.routes.iter().enumerate() {
        check_route(route, plugins, &place.item("routes", index), findings);
    }
    retry::check_retry_policy(host.retry_policy.as_ref(), place, findings);
    http_filters::check_overrides(&host.typed_per_filter_config, place, findings);
}

/// Checks a route. The rest of a route that is skipped is not checked.
fn check_route(
    route: &Route,
    plugins: Option<&Plugins<'_>>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let match_place = place.field("match");
    match &route.r#match {
        None => findings.reject(&match_place, Problem::Missing),
        // C58: the route is skipped, whatever else it has.
        Some(route_match) if !route_match.query_parameters.is_empty() => {
            return findings.ignore(place, IgnoreReason::QueryParameters);
        }
        Some(route_match) => route_match::check_match(route_match, &match_place, findings),
    }

    match &route.action {
        Some(Action::Route(action)) => {
            let is_used =
                route_action::check_action(action, plugins, &place.field("route"), findings);
            if !is_used {
                return;
            }
        }
        // The action of a server's routes (A36).
        Some(Action::NonForwardingAction(_)) => {}
        // C58: A28 rejects the other actions, but by A36 only the requests that
        // match them fail. gRPC follows A36; a strict policy rejects.
        Some(Action::Redirect(_)) => report_unsupported_action("redirect", place, findings),
        Some(Action::DirectResponse(_)) => {
            report_unsupported_action("direct_response", place, findings)
        }
        Some(Action::FilterAction(_)) => {
            report_unsupported_action("filter_action", place, findings)
        }
        None => {
            if findings.policy().unsupported == Unsupported::Strict {
                findings.reject(&place.field("action"), Problem::Missing);
            }
            findings.ignore(place, IgnoreReason::Action);
        }
    }
    http_filters::check_overrides(&route.typed_per_filter_config, place, findings);
}

/// Reports a route whose action `field` is not supported: it is ignored, and a
/// strict policy rejects it.
fn report_unsupported_action(field: &str, place: &Place<'_>, findings: &mut Findings<'_>) {
    findings.unsupported(&place.field(field));
    findings.ignore(place, IgnoreReason::Action);
}
