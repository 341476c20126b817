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
pub(in crate::acceptance) fn check(findings: &mut Findings<'_>, of: &RouteConfiguration) {
    check_configuration(of, &Place::ROOT, findings);
}

/// Checks a virtual host that is a resource (VHDS). The plugins that it may
/// name are in its route configuration, which is not known here.
pub(in crate::acceptance) fn check_virtual_host(findings: &mut Findings<'_>, of: &VirtualHost) {
    check_host(of, None, &Place::ROOT, findings);
}

/// The plugins that a route configuration declares, and whether each is
/// supported.
pub(super) type Plugins<'a> = HashMap<&'a str, bool>;

/// Checks a route configuration, which may be inside a listener.
pub(super) fn check_configuration(
    of: &RouteConfiguration,
    at: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let plugins = check_plugins(of, at, findings);
    for (index, host) in of.virtual_hosts.iter().enumerate() {
        let at = at.item("virtual_hosts", index);
        check_host(host, Some(&plugins), &at, findings);
    }
}

/// Checks the plugins that a route configuration declares. One that is not
/// supported may be optional.
fn check_plugins<'a>(
    of: &'a RouteConfiguration,
    at: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Plugins<'a> {
    let mut plugins = Plugins::new();
    for (index, plugin) in of.cluster_specifier_plugins.iter().enumerate() {
        let at = at.item("cluster_specifier_plugins", index);
        let at = at.field("extension");
        let Some(extension) = &plugin.extension else {
            findings.reject(&at, Problem::Missing);
            continue;
        };
        let type_url = extension.typed_config.as_ref().map(|any| &*any.type_url);
        let message = full_name(type_url.unwrap_or_default());
        let is_supported = (findings.policy().cluster_specifier_plugins).contains(message);
        let message = || clip(message, MAX_VALUE).to_owned();
        match (is_supported, plugin.is_optional) {
            (true, _) => {}
            (false, true) => findings.ignore(&at, IgnoreReason::Optional(message())),
            (false, false) => findings.reject(&at, Problem::Extension(message())),
        }
        plugins.insert(&extension.name, is_supported);
    }
    plugins
}

fn check_host(
    of: &VirtualHost,
    plugins: Option<&Plugins<'_>>,
    at: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    for (index, route) in of.routes.iter().enumerate() {
        check_route(route, plugins, &at.item("routes", index), findings);
    }
    retry::check(of.retry_policy.as_ref(), at, findings);
    http_filters::check_overrides(&of.typed_per_filter_config, at, findings);
}

/// Checks a route, unless it is skipped.
fn check_route(
    of: &Route,
    plugins: Option<&Plugins<'_>>,
    at: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let match_at = at.field("match");
    match &of.r#match {
        None => findings.reject(&match_at, Problem::Missing),
        // C58: the route is skipped, whatever else it has.
        Some(of) if !of.query_parameters.is_empty() => {
            return findings.ignore(at, IgnoreReason::QueryParameters);
        }
        Some(of) => route_match::check(of, &match_at, findings),
    }
    match &of.action {
        Some(Action::Route(action)) => {
            let is_used = route_action::check(action, plugins, &at.field("route"), findings);
            if !is_used {
                return;
            }
        }
        // Of servers (A36).
        Some(Action::NonForwardingAction(_)) => {}
        // C58: A28 rejects these. A36 has requests fail that match them, and
        // that is what gRPC does; a strict policy rejects them.
        Some(Action::Redirect(_)) => unsupported_action("redirect", at, findings),
        Some(Action::DirectResponse(_)) => unsupported_action("direct_response", at, findings),
        Some(Action::FilterAction(_)) => unsupported_action("filter_action", at, findings),
        None => {
            if findings.policy().unsupported == Unsupported::Strict {
                findings.reject(&at.field("action"), Problem::Missing);
            }
            findings.ignore(at, IgnoreReason::Action);
        }
    }
    http_filters::check_overrides(&of.typed_per_filter_config, at, findings);
}

fn unsupported_action(field: &str, at: &Place<'_>, findings: &mut Findings<'_>) {
    findings.unsupported(&at.field(field));
    findings.ignore(at, IgnoreReason::Action);
}
