//! Query parameters and cookies against a route (facts 1.3).
//!
//! Both take the first of a name. A parameter is compared as it was sent,
//! without decoding; a cookie loses quotes around it.

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::{
    CookieMatcher as CookieMessage, QueryParameterMatcher,
    query_parameter_matcher::QueryParameterMatchSpecifier,
};

use crate::findings::Findings;
use crate::headers::Headers;
use crate::pattern::TextMatcher;

/// A test of one query parameter.
#[derive(Debug, Clone)]
pub(crate) struct QueryMatcher {
    name: Box<str>,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Present,
    Absent,
    Value(TextMatcher),
}

impl QueryMatcher {
    /// Compiles a matcher of a query parameter. Without a test, the parameter
    /// has to be present. Returns `None` if the test cannot be compiled.
    pub(super) fn compile(
        message: &QueryParameterMatcher,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        use QueryParameterMatchSpecifier as Specifier;
        let test = match &message.query_parameter_match_specifier {
            None | Some(Specifier::PresentMatch(true)) => Test::Present,
            Some(Specifier::PresentMatch(false)) => Test::Absent,
            Some(Specifier::StringMatch(string)) => {
                let place = place.field("string_match");
                Test::Value(TextMatcher::compile(string, &place, findings)?)
            }
        };
        Some(Self {
            name: message.name.as_str().into(),
            test,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Tests the parameter in a query. Only its first value counts.
    pub(crate) fn is_match(&self, query: Option<&str>) -> bool {
        let value = query.and_then(|query| parameter(query, &self.name));
        match &self.test {
            Test::Present => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Value(text) => value.is_some_and(|value| text.is_match(value.as_bytes())),
        }
    }
}

/// Returns the value of the first parameter of a name.
pub(crate) fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

/// A test of one cookie.
#[derive(Debug, Clone)]
pub(crate) struct CookieMatcher {
    name: Box<str>,
    text: TextMatcher,
    is_inverted: bool,
}

impl CookieMatcher {
    /// Compiles a matcher of a cookie. Returns `None` if it has no text to
    /// match, or one that cannot be compiled.
    pub(super) fn compile(
        message: &CookieMessage,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let Some(string) = &message.string_match else {
            findings.add(&place.field("string_match"), Problem::Missing);
            return None;
        };
        Some(Self {
            name: message.name.as_str().into(),
            text: TextMatcher::compile(string, &place.field("string_match"), findings)?,
            is_inverted: message.invert_match,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the cookie of a request matches. A missing cookie, unlike
    /// a missing header, matches an inverted matcher.
    pub(crate) fn is_match(&self, headers: &Headers) -> bool {
        let value = cookie(headers, &self.name);
        value.is_some_and(|value| self.text.is_match(value)) != self.is_inverted
    }
}

/// Returns the first cookie with a name, in all lines of the header.
pub(crate) fn cookie<'h>(headers: &'h Headers, name: &str) -> Option<&'h [u8]> {
    let lines = headers.all("cookie");
    let mut pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.find_map(|pair| {
        let pair = pair.trim_ascii_start();
        let equals_sign = memchr::memchr(b'=', pair)?;
        (&pair[..equals_sign] == name.as_bytes()).then(|| unquote(&pair[equals_sign + 1..]))
    })
}

/// Returns a value without the quotes around it, if it has both.
fn unquote(value: &[u8]) -> &[u8] {
    match value {
        [b'"', inside @ .., b'"'] => inside,
        _ => value,
    }
}
