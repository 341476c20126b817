//! `envoy.type.matcher.v3.StringMatcher`: one test of a text.

use memchr::memmem;
use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::r#type::matcher::v3::{
    StringMatcher, string_matcher::MatchPattern,
};

use super::Regex;
use crate::findings::Findings;

/// A test of a text.
#[derive(Debug, Clone)]
pub(crate) enum TextMatcher {
    /// Part of the text equals a literal.
    Literal {
        part: Part,
        literal: Box<[u8]>,
        case: Case,
    },
    /// An expression matches the whole text.
    Regex(Box<Regex>),
}

/// The part of a text that a literal is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Start,
    End,
    Anywhere,
}

/// Whether letters of ASCII are told apart by case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Sensitive,
    Ignored,
}

impl TextMatcher {
    /// Makes a matcher that looks for a text in some part of others.
    pub(crate) fn literal(part: Part, literal: &str, case: Case) -> Self {
        let literal = match case {
            Case::Sensitive => literal.to_owned(),
            Case::Ignored => literal.to_ascii_lowercase(),
        };
        Self::Literal {
            part,
            literal: literal.into_bytes().into(),
            case,
        }
    }

    /// Compiles a matcher. Returns `None` if it has no pattern, or one that is not
    /// valid or supported. `ignore_case` does not apply to an expression.
    pub(crate) fn compile(
        message: &StringMatcher,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let case = match message.ignore_case {
            true => Case::Ignored,
            false => Case::Sensitive,
        };

        let literal = |part, text: &str| Some(Self::literal(part, text, case));
        match &message.match_pattern {
            Some(MatchPattern::Exact(text)) => literal(Part::Whole, text),
            Some(MatchPattern::Prefix(text)) => literal(Part::Start, text),
            Some(MatchPattern::Suffix(text)) => literal(Part::End, text),
            Some(MatchPattern::Contains(text)) => literal(Part::Anywhere, text),
            Some(MatchPattern::SafeRegex(regex)) => {
                let regex = Regex::compile(regex, &place.field("safe_regex"), findings)?;
                Some(Self::Regex(Box::new(regex)))
            }
            Some(MatchPattern::Custom(_)) => {
                findings.add(&place.field("custom"), Problem::Unsupported);
                None
            }
            None => {
                findings.add(place, Problem::Missing);
                None
            }
        }
    }

    /// Returns whether a text matches.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        match self {
            Self::Regex(regex) => regex.is_match(text),
            Self::Literal {
                part,
                literal,
                case,
            } => part.is_match(text, literal, *case),
        }
    }
}

impl Part {
    /// Returns whether this part of a text is the literal. If case is ignored, the
    /// literal is in lower case.
    fn is_match(self, text: &[u8], literal: &[u8], case: Case) -> bool {
        let length = literal.len();
        match self {
            Self::Whole => text.len() == length && case.is_equal(text, literal),
            Self::Start => text.len() >= length && case.is_equal(&text[..length], literal),
            Self::End => {
                text.len() >= length && case.is_equal(&text[text.len() - length..], literal)
            }
            Self::Anywhere if case == Case::Sensitive => memmem::find(text, literal).is_some(),
            Self::Anywhere => {
                length == 0
                    || text
                        .windows(length)
                        .any(|part| case.is_equal(part, literal))
            }
        }
    }
}

impl Case {
    /// Returns whether two texts are equal, in this case or in any.
    pub(crate) fn is_equal(self, left: &[u8], right: &[u8]) -> bool {
        match self {
            Self::Sensitive => left == right,
            Self::Ignored => left.eq_ignore_ascii_case(right),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_compared_with_a_part_of_a_text() {
        use Case::{Ignored, Sensitive};
        use Part::{Anywhere, End, Start, Whole};
        for (part, literal, case, matched, others) in [
            (Whole, "aB", Sensitive, &["aB"][..], &["ab", "aBc", "a"][..]),
            (Whole, "aB", Ignored, &["aB", "Ab"], &["aBc", "a"]),
            (Start, "aB", Sensitive, &["aB", "aBc"], &["abc", "caB", "a"]),
            (Start, "aB", Ignored, &["Ab", "abc"], &["cab", "a"]),
            (End, "aB", Sensitive, &["aB", "caB"], &["cab", "aBc", "B"]),
            (End, "aB", Ignored, &["AB", "cab"], &["abc", "b"]),
            (Anywhere, "aB", Sensitive, &["aB", "caBc"], &["cabc", "a"]),
            (Anywhere, "aB", Ignored, &["AB", "cabc"], &["acb", "a"]),
            (Anywhere, "", Ignored, &["", "a"], &[]),
            (Anywhere, "", Sensitive, &["", "a"], &[]),
        ] {
            let matcher = TextMatcher::literal(part, literal, case);
            let is_match = |text: &&str| matcher.is_match(text.as_bytes());
            assert!(matched.iter().all(is_match), "{part:?} {literal} {case:?}");
            assert!(!others.iter().any(is_match), "{part:?} {literal} {case:?}");
        }
    }
}
