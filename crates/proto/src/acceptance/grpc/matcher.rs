//! Matchers of texts and of headers, and expressions (C58, A28, A63).

use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::acceptance::report::IgnoreReason;
use crate::envoy::envoy::config::route::v3::HeaderMatcher;
use crate::envoy::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use crate::envoy::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use crate::envoy::envoy::r#type::matcher::v3::{RegexMatcher, StringMatcher};
use crate::validate::find_regex_fault;

/// Rejects an expression that RE2 cannot read.
pub(super) fn check_regex(matcher: &RegexMatcher, place: &Place<'_>, findings: &mut Findings<'_>) {
    if let Some(fault) = find_regex_fault(&matcher.regex) {
        findings.reject(&place.field("regex"), Problem::Regex(fault));
    }
}

/// Rejects a matcher without a pattern, with an empty pattern that would match
/// every text, or of an unsupported kind.
pub(super) fn check_text(matcher: &StringMatcher, place: &Place<'_>, findings: &mut Findings<'_>) {
    let (field, pattern) = match &matcher.match_pattern {
        None => return findings.reject(&place.field("match_pattern"), Problem::Missing),
        Some(MatchPattern::Custom(_)) => {
            let name = "custom".to_owned();
            return findings.reject(&place.field("custom"), Problem::Extension(name));
        }
        Some(MatchPattern::SafeRegex(regex)) => {
            return check_regex(regex, &place.field("safe_regex"), findings);
        }
        Some(MatchPattern::Exact(_)) => return,
        Some(MatchPattern::Prefix(prefix)) => ("prefix", prefix),
        Some(MatchPattern::Suffix(suffix)) => ("suffix", suffix),
        Some(MatchPattern::Contains(contains)) => ("contains", contains),
    };
    if pattern.is_empty() {
        findings.reject(&place.field(field), Problem::Missing);
    }
}

/// Checks the matcher of a header.
pub(super) fn check_header(
    matcher: &HeaderMatcher,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    if matcher.name.is_empty() {
        findings.reject(&place.field("name"), Problem::Missing);
    }
    // C58: for gRPC, a binary header is always absent.
    if matcher.name.ends_with("-bin") {
        let name = clip(&matcher.name, MAX_VALUE).to_owned();
        findings.ignore(place, IgnoreReason::BinaryHeader(name));
    }
    match &matcher.header_match_specifier {
        Some(specifier) => check_specifier(specifier, place, findings),
        None => findings.reject(&place.field("header_match_specifier"), Problem::Missing),
    }
}

/// Checks the value that a header must have. An empty prefix, suffix or part
/// would match every header, so it is rejected; an empty exact value matches an
/// empty header.
#[expect(deprecated, reason = "control planes send them, and gRPC takes them")]
fn check_specifier(
    specifier: &HeaderMatchSpecifier,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let mut check_not_empty = |field: &'static str, text: &str| {
        if text.is_empty() {
            findings.reject(&place.field(field), Problem::Missing);
        }
    };

    match specifier {
        HeaderMatchSpecifier::ExactMatch(_) | HeaderMatchSpecifier::PresentMatch(_) => {}
        HeaderMatchSpecifier::PrefixMatch(prefix) => check_not_empty("prefix_match", prefix),
        HeaderMatchSpecifier::SuffixMatch(suffix) => check_not_empty("suffix_match", suffix),
        HeaderMatchSpecifier::ContainsMatch(part) => check_not_empty("contains_match", part),
        HeaderMatchSpecifier::SafeRegexMatch(regex) => {
            check_regex(regex, &place.field("safe_regex_match"), findings);
        }
        HeaderMatchSpecifier::StringMatch(text) => {
            check_text(text, &place.field("string_match"), findings);
        }
        HeaderMatchSpecifier::RangeMatch(range) => {
            if range.start > range.end {
                let problem = Problem::value(range.start, "at most the end of the range");
                findings.reject(&place.field("range_match"), problem);
            }
        }
    }
}
