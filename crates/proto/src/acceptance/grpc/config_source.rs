//! Where a dependent resource comes from (C14).

use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::acceptance::problem::Problem;
use crate::envoy::envoy::config::core::v3::ConfigSource;
use crate::envoy::envoy::config::core::v3::config_source::ConfigSourceSpecifier;

/// Rejects a source other than `ads` and `self`, which both mean the server
/// that sent this resource (C14, A27, A47).
pub(super) fn check_source(
    source: Option<&ConfigSource>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let specifier = source.and_then(|source| source.config_source_specifier.as_ref());
    match specifier {
        Some(ConfigSourceSpecifier::Ads(_) | ConfigSourceSpecifier::Self_(_)) => {}
        None => findings.reject(place, Problem::Missing),
        Some(specifier) => {
            findings.reject(place, Problem::value(field_name(specifier), "ads or self"))
        }
    }
}

/// Rejects a source other than `self` (A27, for load reports).
pub(super) fn check_self(source: &ConfigSource, place: &Place<'_>, findings: &mut Findings<'_>) {
    match source.config_source_specifier.as_ref() {
        Some(ConfigSourceSpecifier::Self_(_)) => {}
        None => findings.reject(place, Problem::Missing),
        Some(other) => findings.reject(place, Problem::value(field_name(other), "self")),
    }
}

/// Returns the name of the field that a source has set.
#[expect(deprecated, reason = "a deprecated field has a name too")]
fn field_name(specifier: &ConfigSourceSpecifier) -> &'static str {
    match specifier {
        ConfigSourceSpecifier::Path(_) => "path",
        ConfigSourceSpecifier::PathConfigSource(_) => "path_config_source",
        ConfigSourceSpecifier::ApiConfigSource(_) => "api_config_source",
        ConfigSourceSpecifier::Ads(_) => "ads",
        ConfigSourceSpecifier::Self_(_) => "self",
    }
}
