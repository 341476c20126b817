//! Header matchers, line by line (facts 1.3).

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::{
    HeaderMatcher as Message, header_matcher::HeaderMatchSpecifier,
};

use crate::findings::Findings;
use crate::headers::Headers;
use crate::pattern::{Case, Part, Regex, TextMatcher};
use crate::request::Request;

/// A test of the lines of one header.
#[derive(Debug, Clone)]
pub(crate) struct HeaderMatcher {
    name: Box<str>,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Present,
    Absent,
    /// A test of presence, where a missing header counts as an empty one and is
    /// present for that: its outcome does not depend on the request.
    Fixed(bool),
    Value {
        value: ValueTest,
        /// The outcome is turned round: no line may match.
        is_inverted: bool,
        /// A header that is missing counts as one with an empty value.
        missing_is_empty: bool,
    },
}

#[derive(Debug, Clone)]
enum ValueTest {
    Text(TextMatcher),
    /// A decimal number of `start..end`.
    Range(i64, i64),
}

impl HeaderMatcher {
    /// Compiles a header matcher. A matcher without a test matches a header
    /// that is present. Returns `None` if its expression cannot be compiled.
    #[expect(deprecated, reason = "Envoy still reads the old forms")]
    pub(crate) fn compile(
        message: &Message,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        use HeaderMatchSpecifier as Specifier;
        if message.name.is_empty() {
            findings.add(&place.field("name"), Problem::Missing);
        }

        let literal =
            |part, text: &str| ValueTest::Text(TextMatcher::literal(part, text, Case::Sensitive));
        let value = match &message.header_match_specifier {
            None => return Some(Self::presence(message, true)),
            Some(Specifier::PresentMatch(present)) => {
                return Some(Self::presence(message, *present));
            }
            Some(Specifier::ExactMatch(text)) => literal(Part::Whole, text),
            Some(Specifier::PrefixMatch(text)) => literal(Part::Start, text),
            Some(Specifier::SuffixMatch(text)) => literal(Part::End, text),
            Some(Specifier::ContainsMatch(text)) => literal(Part::Anywhere, text),
            Some(Specifier::SafeRegexMatch(regex)) => {
                let regex = Regex::compile(regex, &place.field("safe_regex_match"), findings)?;
                ValueTest::Text(TextMatcher::Regex(Box::new(regex)))
            }
            Some(Specifier::RangeMatch(range)) => ValueTest::Range(range.start, range.end),
            Some(Specifier::StringMatch(string)) => {
                let place = place.field("string_match");
                ValueTest::Text(TextMatcher::compile(string, &place, findings)?)
            }
        };

        Some(Self {
            name: message.name.to_ascii_lowercase().into(),
            test: Test::Value {
                value,
                is_inverted: message.invert_match,
                missing_is_empty: message.treat_missing_header_as_empty,
            },
        })
    }

    /// Makes a matcher of the presence or absence of a header.
    fn presence(message: &Message, is_present: bool) -> Self {
        let expects_presence = is_present != message.invert_match;
        let test = match (message.treat_missing_header_as_empty, expects_presence) {
            (true, expects_presence) => Test::Fixed(expects_presence),
            (false, true) => Test::Present,
            (false, false) => Test::Absent,
        };
        Self {
            name: message.name.to_ascii_lowercase().into(),
            test,
        }
    }

    /// Returns the name of the header, in lower case.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Tests the headers of a request, pseudo headers included.
    pub(crate) fn is_match(&self, request: &Request<'_>) -> bool {
        match request.pseudo(&self.name) {
            Some(value) => self.test.is_match(std::iter::once(value.as_bytes())),
            None => self.test.is_match(request.headers.all(&self.name)),
        }
    }

    /// Tests the headers of a response.
    pub(crate) fn is_match_lines(&self, headers: &Headers) -> bool {
        self.test.is_match(headers.all(&self.name))
    }
}

impl Test {
    /// Tests the lines of a header. One line that matches is enough.
    fn is_match<'v>(&self, mut lines: impl Iterator<Item = &'v [u8]>) -> bool {
        match self {
            Self::Present => lines.next().is_some(),
            Self::Absent => lines.next().is_none(),
            Self::Fixed(outcome) => *outcome,
            Self::Value {
                value,
                is_inverted,
                missing_is_empty,
            } => {
                let first_line = match lines.next() {
                    Some(line) => line,
                    None if *missing_is_empty => b"",
                    // As in Envoy, a missing header does not match, even if inverted.
                    None => return false,
                };
                let has_match =
                    value.is_match(first_line) || lines.any(|line| value.is_match(line));
                has_match != *is_inverted
            }
        }
    }
}

impl ValueTest {
    /// Tests one line: a text, or a whole number in a range.
    fn is_match(&self, line: &[u8]) -> bool {
        match self {
            Self::Text(text) => text.is_match(line),
            Self::Range(start, end) => {
                let number = str::from_utf8(line).ok().and_then(|text| text.parse().ok());
                number.is_some_and(|number: i64| (*start..*end).contains(&number))
            }
        }
    }
}
