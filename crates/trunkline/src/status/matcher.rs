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
    /// Parses the matchers of a request. A matcher without a `node_id` accepts
    /// every client. Too many matchers are an error, and so are those of
    /// metadata, which the server does not keep.
    pub(super) fn read(matchers: Vec<NodeMatcher>) -> Result<Self, MatcherError> {
        if matchers.len() > STATUS_MATCHERS {
            return Err(MatcherError::TooMany);
        }
        if matchers.iter().filter(|matcher| is_regex(matcher)).count() > STATUS_REGEXES {
            return Err(MatcherError::TooManyRegexes);
        }
        let read_one = |matcher: NodeMatcher| {
            if matcher.node_metadatas.is_empty() {
                matcher.node_id.map(IdMatcher::read).transpose()
            } else {
                Err(MatcherError::Metadata)
            }
        };
        let matchers: Result<_, _> = matchers.into_iter().map(read_one).collect();
        matchers.map(Self)
    }

    /// Returns whether any of the matchers accepts a node id. Without matchers,
    /// all are accepted.
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
    /// Parses a matcher. As in Envoy, a regular expression has to match the
    /// whole id, and decides about case by itself.
    fn read(matcher: StringMatcher) -> Result<Self, MatcherError> {
        let ignore_case = matcher.ignore_case;
        let fold = |text: String| fold_case(text, ignore_case);
        let pattern = match matcher.match_pattern.ok_or(MatcherError::NoPattern)? {
            MatchPattern::Exact(text) => Pattern::Exact(fold(text)),
            MatchPattern::Prefix(text) => Pattern::Prefix(fold(text)),
            MatchPattern::Suffix(text) => Pattern::Suffix(fold(text)),
            MatchPattern::Contains(text) => Pattern::Contains(fold(text)),
            MatchPattern::SafeRegex(regex) => Pattern::Regex(compile_regex(&regex.regex)?),
            MatchPattern::Custom(_) => return Err(MatcherError::Custom),
        };
        Ok(Self {
            pattern,
            ignore_case,
        })
    }

    /// Returns whether a node id matches.
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

/// Returns whether a matcher has a regular expression.
fn is_regex(matcher: &NodeMatcher) -> bool {
    let pattern = matcher.node_id.as_ref().map(|id| &id.match_pattern);
    matches!(pattern, Some(Some(MatchPattern::SafeRegex(_))))
}

/// Compiles a regular expression that has to match a whole text. A long one is
/// refused, and limits of memory bound the compiled one.
fn compile_regex(regex: &str) -> Result<Regex, MatcherError> {
    if regex.len() > REGEX_LENGTH {
        return Err(MatcherError::LongRegex);
    }
    let anchored = format!("^(?:{regex})$");
    let mut builder = RegexBuilder::new(&anchored);
    builder
        .size_limit(REGEX_MEMORY)
        .dfa_size_limit(REGEX_MEMORY);
    Ok(builder.build()?)
}

/// Returns a text in lower case, if case is ignored.
fn fold_case(text: String, ignore_case: bool) -> String {
    if ignore_case {
        text.to_lowercase()
    } else {
        text
    }
}
