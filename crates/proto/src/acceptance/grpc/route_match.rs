//! What a route matches (C58, A28).

use super::matcher;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::acceptance::problem::Problem;
use crate::envoy::envoy::config::core::v3::RuntimeFractionalPercent;
use crate::envoy::envoy::config::route::v3::RouteMatch;
use crate::envoy::envoy::config::route::v3::route_match::PathSpecifier;
use crate::envoy::envoy::r#type::v3::fractional_percent::DenominatorType;

const SUPPORTED: &str = "prefix, path or safe_regex";

/// Checks the match of a route.
pub(super) fn check_match(
    route_match: &RouteMatch,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    // C58: a route needs a path, of a supported kind.
    let unsupported = match &route_match.path_specifier {
        Some(PathSpecifier::Prefix(_) | PathSpecifier::Path(_)) => None,
        Some(PathSpecifier::SafeRegex(regex)) => {
            matcher::check_regex(regex, &place.field("safe_regex"), findings);
            None
        }
        Some(PathSpecifier::ConnectMatcher(_)) => Some("connect_matcher"),
        Some(PathSpecifier::PathSeparatedPrefix(_)) => Some("path_separated_prefix"),
        Some(PathSpecifier::PathMatchPolicy(_)) => Some("path_match_policy"),
        None => {
            findings.reject(&place.field("path_specifier"), Problem::Missing);
            None
        }
    };

    if let Some(field) = unsupported {
        let problem = Problem::value(field, SUPPORTED);
        findings.reject(&place.field("path_specifier"), problem);
    }
    for (index, header) in route_match.headers.iter().enumerate() {
        matcher::check_header(header, &place.item("headers", index), findings);
    }

    if let Some(fraction) = &route_match.runtime_fraction {
        check_fraction(fraction, &place.field("runtime_fraction"), findings);
    }
}

/// Checks the share of requests that match. The default value counts, since
/// gRPC has no runtime.
fn check_fraction(
    fraction: &RuntimeFractionalPercent,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let place = place.field("default_value");
    let denominator = fraction
        .default_value
        .as_ref()
        .map(|value| value.denominator);
    match denominator {
        None => findings.reject(&place, Problem::Missing),
        Some(number) if DenominatorType::try_from(number).is_err() => {
            let problem = Problem::value(number, "one of HUNDRED, TEN_THOUSAND, MILLION");
            findings.reject(&place.field("denominator"), problem);
        }
        Some(_) => {}
    }
}
