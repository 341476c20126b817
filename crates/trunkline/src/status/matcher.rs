//! The clients that a CSDS request is about.

use regex::{Regex, RegexBuilder};
use trunkline_proto::envoy::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use trunkline_proto::envoy::envoy::r#type::matcher::v3::{NodeMatcher, StringMatcher};

use crate::bounds::{REGEX_LENGTH, REGEX_MEMORY, STATUS_MATCHERS, STATUS_REGEXES};

/// Errors in a request's matchers. All of them are the requester's to mend.
#[derive(Debug, thiserror::Error)]
pub(super) enum MatcherError {
    #[error("node_matchers: more than {STATUS_MATCHERS}")]
    TooMany,
    #[error("node_matchers: more than {STATUS_REGEXES} with safe_regex; join some by |")]
    TooManyRegexes,
    #[error("node_matchers: safe_regex has more than {REGEX_LENGTH} bytes")]
    LongRegex,
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
pub(super) struct NodeMatchers(Vec<Option<IdMatcher>>);

impl NodeMatchers {
    /// Reads the matchers of a request. One without a `node_id` accepts every
    /// client. Refuses too many, and matchers of metadata, which is not kept.
    pub(super) fn read(matchers: Vec<NodeMatcher>) -> Result<Self, MatcherError> {
        if matchers.len() > STATUS_MATCHERS {
            return Err(MatcherError::TooMany);
        }
        if matchers.iter().filter(|matcher| is_regex(matcher)).count() > STATUS_REGEXES {
            return Err(MatcherError::TooManyRegexes);
        }
        let read = |matcher: NodeMatcher| match matcher.node_metadatas.is_empty() {
            true => matcher.node_id.map(IdMatcher::read).transpose(),
            false => Err(MatcherError::Metadata),
        };
        let matchers: Result<_, _> = matchers.into_iter().map(read).collect();
        matchers.map(Self)
    }

    /// Whether any of the matchers accepts a node id, or there is no matcher.
    pub(super) fn accept(&self, id: &str) -> bool {
        let accepts = |matcher: &Option<IdMatcher>| {
            let matcher = matcher.as_ref();
            matcher.is_none_or(|matcher| matcher.accepts(id))
        };
        self.0.is_empty() || self.0.iter().any(accepts)
    }
}

/// A matcher of node ids.
#[derive(Debug)]
struct IdMatcher {
    /// In lower case, if case is ignored.
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

impl IdMatcher {
    /// Reads a matcher. As in Envoy, a regular expression has to match the
    /// whole id, and decides itself about case.
    fn read(matcher: StringMatcher) -> Result<Self, MatcherError> {
        let ignore_case = matcher.ignore_case;
        let folded = |text: String| fold_case(text, ignore_case);
        let pattern = match matcher.match_pattern.ok_or(MatcherError::NoPattern)? {
            MatchPattern::Exact(text) => Pattern::Exact(folded(text)),
            MatchPattern::Prefix(text) => Pattern::Prefix(folded(text)),
            MatchPattern::Suffix(text) => Pattern::Suffix(folded(text)),
            MatchPattern::Contains(text) => Pattern::Contains(folded(text)),
            MatchPattern::SafeRegex(regex) => {
                if regex.regex.len() > REGEX_LENGTH {
                    return Err(MatcherError::LongRegex);
                }
                let whole = format!("^(?:{})$", regex.regex);
                let mut builder = RegexBuilder::new(&whole);
                builder
                    .size_limit(REGEX_MEMORY)
                    .dfa_size_limit(REGEX_MEMORY);
                Pattern::Regex(builder.build()?)
            }
            MatchPattern::Custom(_) => return Err(MatcherError::Custom),
        };
        Ok(Self {
            pattern,
            ignore_case,
        })
    }

    /// Whether a node id matches.
    fn accepts(&self, id: &str) -> bool {
        let folded = || fold_case(id.to_owned(), self.ignore_case);
        match &self.pattern {
            Pattern::Exact(text) => folded() == *text,
            Pattern::Prefix(text) => folded().starts_with(text),
            Pattern::Suffix(text) => folded().ends_with(text),
            Pattern::Contains(text) => folded().contains(text),
            Pattern::Regex(regex) => regex.is_match(id),
        }
    }
}

/// Whether a matcher has an expression.
fn is_regex(matcher: &NodeMatcher) -> bool {
    let pattern = matcher.node_id.as_ref().map(|id| &id.match_pattern);
    matches!(pattern, Some(Some(MatchPattern::SafeRegex(_))))
}

/// Returns a text in lower case, if case is ignored.
fn fold_case(text: String, ignore_case: bool) -> String {
    match ignore_case {
        true => text.to_lowercase(),
        false => text,
    }
}
