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
pub(super) fn check(of: &RouteMatch, at: &Place<'_>, findings: &mut Findings<'_>) {
    // C58: a route needs a path, of a kind that is supported.
    let unsupported = match &of.path_specifier {
        Some(PathSpecifier::Prefix(_) | PathSpecifier::Path(_)) => None,
        Some(PathSpecifier::SafeRegex(regex)) => {
            matcher::check_regex(regex, &at.field("safe_regex"), findings);
            None
        }
        Some(PathSpecifier::ConnectMatcher(_)) => Some("connect_matcher"),
        Some(PathSpecifier::PathSeparatedPrefix(_)) => Some("path_separated_prefix"),
        Some(PathSpecifier::PathMatchPolicy(_)) => Some("path_match_policy"),
        None => {
            findings.reject(&at.field("path_specifier"), Problem::Missing);
            None
        }
    };
    if let Some(found) = unsupported {
        let problem = Problem::value(found, SUPPORTED);
        findings.reject(&at.field("path_specifier"), problem);
    }
    for (index, header) in of.headers.iter().enumerate() {
        matcher::check_header(header, &at.item("headers", index), findings);
    }
    if let Some(fraction) = &of.runtime_fraction {
        check_fraction(fraction, &at.field("runtime_fraction"), findings);
    }
}

/// Checks the share of requests that match. Its default counts, since gRPC has
/// no runtime.
fn check_fraction(of: &RuntimeFractionalPercent, at: &Place<'_>, findings: &mut Findings<'_>) {
    let at = at.field("default_value");
    let denominator = of.default_value.as_ref().map(|value| value.denominator);
    match denominator {
        None => findings.reject(&at, Problem::Missing),
        Some(number) if DenominatorType::try_from(number).is_err() => {
            let problem = Problem::value(number, "one of HUNDRED, TEN_THOUSAND, MILLION");
            findings.reject(&at.field("denominator"), problem);
        }
        Some(_) => {}
    }
}
