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

/// Checks a route configuration, which may be inside a listener.
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

/// Checks the plugins that a route configuration declares. One that is not
/// supported may be optional.
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
        let message = || clip(message, MAX_VALUE).to_owned();
        match (is_supported, plugin.is_optional) {
            (true, _) => {}
            (false, true) => findings.ignore(&place, IgnoreReason::Optional(message())),
            (false, false) => findings.reject(&place, Problem::Extension(message())),
        }
        plugins.insert(&extension.name, is_supported);
    }
    plugins
}

fn check_host(
    host: &VirtualHost,
    plugins: Option<&Plugins<'_>>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    for (index, route) in host.routes.iter().enumerate() {
        check_route(route, plugins, &place.item("routes", index), findings);
    }
    retry::check(host.retry_policy.as_ref(), place, findings);
    http_filters::check_overrides(&host.typed_per_filter_config, place, findings);
}

/// Checks a route, unless it is skipped.
fn check_route(
    descriptor: &Route,
    plugins: Option<&Plugins<'_>>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let match_place = place.field("match");
    match &descriptor.r#match {
        None => findings.reject(&match_place, Problem::Missing),
        // C58: the route is skipped, whatever else it has.
        Some(descriptor) if !descriptor.query_parameters.is_empty() => {
            return findings.ignore(place, IgnoreReason::QueryParameters);
        }
        Some(descriptor) => route_match::check(descriptor, &match_place, findings),
    }
    match &descriptor.action {
        Some(Action::Route(action)) => {
            let is_used = route_action::check(action, plugins, &place.field("route"), findings);
            if !is_used {
                return;
            }
        }
        // Of servers (A36).
        Some(Action::NonForwardingAction(_)) => {}
        // C58: A28 rejects these. A36 has requests fail that match them, and
        // that is what gRPC does; a strict policy rejects them.
        Some(Action::Redirect(_)) => unsupported_action("redirect", place, findings),
        Some(Action::DirectResponse(_)) => unsupported_action("direct_response", place, findings),
        Some(Action::FilterAction(_)) => unsupported_action("filter_action", place, findings),
        None => {
            if findings.policy().unsupported == Unsupported::Strict {
                findings.reject(&place.field("action"), Problem::Missing);
            }
            findings.ignore(place, IgnoreReason::Action);
        }
    }
    http_filters::check_overrides(&descriptor.typed_per_filter_config, place, findings);
}

fn unsupported_action(field: &str, place: &Place<'_>, findings: &mut Findings<'_>) {
    findings.unsupported(&place.field(field));
    findings.ignore(place, IgnoreReason::Action);
}
