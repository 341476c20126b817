//! The configurations of gRPC's own HTTP filters (C59): what each filter would
//! refuse.

use super::{check_duration, decode_body};
use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::descriptor::full_name;
use crate::envoy::envoy::config::rbac::v3::permission::Rule;
use crate::envoy::envoy::config::rbac::v3::principal::Identifier;
use crate::envoy::envoy::config::rbac::v3::{Permission, Policy, Principal};
use crate::envoy::envoy::config::route::v3::HeaderMatcher;
use crate::envoy::envoy::extensions::filters::http::fault::v3::HttpFault;
use crate::envoy::envoy::extensions::filters::http::gcp_authn::v3::GcpAuthnFilterConfig;
use crate::envoy::envoy::extensions::filters::http::rbac::v3::{Rbac, RbacPerRoute};
use crate::envoy::envoy::extensions::filters::http::router::v3::Router;
use crate::envoy::envoy::extensions::filters::http::stateful_session::v3::stateful_session_per_route::Override;
use crate::envoy::envoy::extensions::filters::http::stateful_session::v3::{
    StatefulSession, StatefulSessionPerRoute,
};
use crate::envoy::envoy::extensions::http::stateful_session::cookie::v3::CookieBasedSessionState;

const COOKIE: &str = "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState";

/// Checks that a router can be decoded: all its fields are ignored (A39).
pub(in crate::acceptance) fn check_router(
    body: &[u8],
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    decode_body::<Router>(
        "envoy.extensions.filters.http.router.v3.Router",
        body,
        place,
        findings,
    );
}

/// Checks that a fault filter can be decoded: any fault is valid (A33).
pub(in crate::acceptance) fn check_fault(
    body: &[u8],
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    decode_body::<HttpFault>(
        "envoy.extensions.filters.http.fault.v3.HTTPFault",
        body,
        place,
        findings,
    );
}

/// Checks the rules of RBAC (A41).
pub(in crate::acceptance) fn check_rbac(
    body: &[u8],
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let message = "envoy.extensions.filters.http.rbac.v3.RBAC";
    if let Some(rbac) = decode_body::<Rbac>(message, body, place, findings) {
        check_rules(&rbac, place, findings);
    }
}

/// Checks the rules of RBAC for one route. Without rules, RBAC is off for the
/// route.
pub(in crate::acceptance) fn check_rbac_per_route(
    body: &[u8],
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let message = "envoy.extensions.filters.http.rbac.v3.RBACPerRoute";
    let per_route = decode_body::<RbacPerRoute>(message, body, place, findings);
    if let Some(rbac) = per_route.and_then(|per_route| per_route.rbac) {
        check_rules(&rbac, &place.field("rbac"), findings);
    }
}

/// Checks the policies of RBAC, in the order of their names.
fn check_rules(rbac: &Rbac, place: &Place<'_>, findings: &mut Findings<'_>) {
    let Some(rules) = &rbac.rules else { return };
    let place = place.field("rules");
    let mut policies: Vec<_> = rules.policies.iter().collect();
    policies.sort_by_key(|(name, _)| *name);
    for (name, policy) in policies {
        check_policy(policy, &place.entry("policies", name), findings);
    }
}

/// Rejects conditions, and matchers of headers that gRPC requests do not have
/// (A41).
fn check_policy(policy: &Policy, place: &Place<'_>, findings: &mut Findings<'_>) {
    if policy.condition.is_some() {
        findings.reject(&place.field("condition"), Problem::Insecure);
    }
    if policy.checked_condition.is_some() {
        findings.reject(&place.field("checked_condition"), Problem::Insecure);
    }
    for (index, permission) in policy.permissions.iter().enumerate() {
        check_permission(permission, &place.item("permissions", index), findings);
    }
    for (index, principal) in policy.principals.iter().enumerate() {
        check_principal(principal, &place.item("principals", index), findings);
    }
}

/// Checks a permission and those inside it. The decoder limits the depth.
fn check_permission(permission: &Permission, place: &Place<'_>, findings: &mut Findings<'_>) {
    let (field, set) = match &permission.rule {
        Some(Rule::Header(header)) => {
            return check_header(header, &place.field("header"), findings);
        }
        Some(Rule::NotRule(rule)) => {
            return check_permission(rule, &place.field("not_rule"), findings);
        }
        Some(Rule::AndRules(set)) => ("and_rules", set),
        Some(Rule::OrRules(set)) => ("or_rules", set),
        _ => return,
    };
    let place = place.field(field);
    for (index, rule) in set.rules.iter().enumerate() {
        check_permission(rule, &place.item("rules", index), findings);
    }
}

/// Checks a principal and those inside it. The decoder limits the depth.
fn check_principal(principal: &Principal, place: &Place<'_>, findings: &mut Findings<'_>) {
    let (field, set) = match &principal.identifier {
        Some(Identifier::Header(header)) => {
            return check_header(header, &place.field("header"), findings);
        }
        Some(Identifier::NotId(id)) => {
            return check_principal(id, &place.field("not_id"), findings);
        }
        Some(Identifier::AndIds(set)) => ("and_ids", set),
        Some(Identifier::OrIds(set)) => ("or_ids", set),
        _ => return,
    };
    let place = place.field(field);
    for (index, id) in set.ids.iter().enumerate() {
        check_principal(id, &place.item("ids", index), findings);
    }
}

/// Rejects a matcher of a header that the transport sets, not the application.
fn check_header(matcher: &HeaderMatcher, place: &Place<'_>, findings: &mut Findings<'_>) {
    let name = matcher.name.to_ascii_lowercase();
    if name == ":scheme" || name.starts_with("grpc-") {
        let problem = Problem::value(
            clip(&matcher.name, MAX_VALUE),
            "a header of the application",
        );
        findings.reject(&place.field("name"), problem);
    }
}

/// Checks the cookie of a stateful session (A55).
pub(in crate::acceptance) fn check_session(
    body: &[u8],
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let message = "envoy.extensions.filters.http.stateful_session.v3.StatefulSession";
    if let Some(session) = decode_body::<StatefulSession>(message, body, place, findings) {
        check_state(&session, place, findings);
    }
}

/// Checks the cookie of a stateful session for one route.
pub(in crate::acceptance) fn check_session_per_route(
    body: &[u8],
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let message = "envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute";
    let per_route = decode_body::<StatefulSessionPerRoute>(message, body, place, findings);
    if let Some(Override::StatefulSession(session)) =
        per_route.and_then(|per_route| per_route.r#override)
    {
        check_state(&session, &place.field("stateful_session"), findings);
    }
}

/// Checks the state of stateful sessions, which has to be a cookie. A filter
/// without a state is valid, and does nothing.
fn check_state(session: &StatefulSession, place: &Place<'_>, findings: &mut Findings<'_>) {
    let Some(state) = &session.session_state else {
        return;
    };
    let place = place.field("session_state");
    let place = place.field("typed_config");
    let Some(any) = &state.typed_config else {
        return findings.reject(&place, Problem::Missing);
    };

    let name = full_name(&any.type_url);
    if name != COOKIE {
        let name = clip(name, MAX_VALUE).to_owned();
        return findings.reject(&place, Problem::Extension(name));
    }
    let Some(cookie_state) =
        decode_body::<CookieBasedSessionState>(COOKIE, &any.value, &place, findings)
    else {
        return;
    };

    let place = place.field("cookie");
    match &cookie_state.cookie {
        None => findings.reject(&place, Problem::Missing),
        Some(cookie) => {
            if cookie.name.is_empty() {
                findings.reject(&place.field("name"), Problem::Missing);
            }
            check_duration(cookie.ttl.as_ref(), &place.field("ttl"), findings);
        }
    }
}

/// Checks the cache of the GCP authentication filter, whose size must not be
/// zero (A83).
pub(in crate::acceptance) fn check_gcp_authn(
    body: &[u8],
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let message = "envoy.extensions.filters.http.gcp_authn.v3.GcpAuthnFilterConfig";
    let config = decode_body::<GcpAuthnFilterConfig>(message, body, place, findings);
    let cache = config.and_then(|config| config.cache_config);
    let size = cache.and_then(|cache| cache.cache_size);
    if size.is_some_and(|size| size.value == 0) {
        let place = place.field("cache_config");
        findings.reject(&place.field("cache_size"), Problem::value(0, "above 0"));
    }
}
