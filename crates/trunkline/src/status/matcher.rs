//! The clients that a CSDS request is about.

use regex::{Regex, RegexBuilder};
use trunkline_proto::envoy::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use trunkline_proto::envoy::envoy::r#type::matcher::v3::{NodeMatcher, StringMatcher};

/// The maximum of memory for one expression.
const REGEX_BYTES: usize = 1 << 20;

/// The maximum of matchers in one request.
const MOST: usize = 100;

/// Errors in a request's matchers. All of them are the requester's to mend.
#[derive(Debug, thiserror::Error)]
pub(super) enum MatcherError {
    #[error("node_matchers: more than {MOST}")]
    TooMany,
    #[error(
        "node_matchers: node_metadatas cannot be matched, as metadata of nodes is not kept; match by node_id"
    )]
    Metadata,
    #[error(
        "node_matchers: node_id has no pattern; set exact, prefix, suffix, contains or safe_regex"
    )]
    NoPattern,
    #[error("node_matchers: a custom matcher is not known here")]
    Custom,
    #[error("node_matchers: safe_regex: {0}")]
    Regex(#[from] regex::Error),
}

/// A client matches if any of the matchers accepts it, or if there is none.
#[derive(Debug)]
pub(super) struct NodeMatchers(Vec<Option<Text>>);

impl NodeMatchers {
    pub(super) fn read(matchers: Vec<NodeMatcher>) -> Result<Self, MatcherError> {
        if matchers.len() > MOST {
            return Err(MatcherError::TooMany);
        }
        let one = |matcher: NodeMatcher| match matcher.node_metadatas.is_empty() {
            true => matcher.node_id.map(Text::read).transpose(),
            false => Err(MatcherError::Metadata),
        };
        matchers
            .into_iter()
            .map(one)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn accept(&self, id: &str) -> bool {
        let one = |matcher: &Option<Text>| matcher.as_ref().is_none_or(|text| text.accepts(id));
        self.0.is_empty() || self.0.iter().any(one)
    }
}

#[derive(Debug)]
struct Text {
    pattern: Pattern,
    ignore_case: bool,
}

#[derive(Debug)]
enum Pattern {
    Exact(String),
    Prefix(String),
    Suffix(String),
    Contains(String),
    Regex(Regex),
}

impl Text {
    fn read(matcher: StringMatcher) -> Result<Self, MatcherError> {
        let ignore_case = matcher.ignore_case;
        let folded = |text: String| fold(text, ignore_case);
        let pattern = match matcher.match_pattern.ok_or(MatcherError::NoPattern)? {
            MatchPattern::Exact(text) => Pattern::Exact(folded(text)),
            MatchPattern::Prefix(text) => Pattern::Prefix(folded(text)),
            MatchPattern::Suffix(text) => Pattern::Suffix(folded(text)),
            MatchPattern::Contains(text) => Pattern::Contains(folded(text)),
            // As in Envoy, the expression decides about case, and it has to
            // match the whole text.
            MatchPattern::SafeRegex(regex) => {
                let whole = format!("^(?:{})$", regex.regex);
                let built = RegexBuilder::new(&whole).size_limit(REGEX_BYTES).build();
                Pattern::Regex(built?)
            }
            MatchPattern::Custom(_) => return Err(MatcherError::Custom),
        };
        Ok(Self {
            pattern,
            ignore_case,
        })
    }

    fn accepts(&self, id: &str) -> bool {
        if let Pattern::Regex(regex) = &self.pattern {
            return regex.is_match(id);
        }
        let id = fold(id.to_owned(), self.ignore_case);
        match &self.pattern {
            Pattern::Exact(text) => id == *text,
            Pattern::Prefix(text) => id.starts_with(text),
            Pattern::Suffix(text) => id.ends_with(text),
            Pattern::Contains(text) => id.contains(text),
            Pattern::Regex(regex) => regex.is_match(&id),
        }
    }
}

fn fold(text: String, ignore_case: bool) -> String {
    match ignore_case {
        true => text.to_lowercase(),
        false => text,
    }
}
