//! The names that a peer's certificate may have: `match_typed_subject_alt_names`
//! of a validation context, and `match_subject_alt_names`, which gRPC reads.

use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::SubjectAltNameMatcher;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::subject_alt_name_matcher::SanType;
use trunkline_proto::envoy::envoy::r#type::matcher::v3::StringMatcher;
use trunkline_proto::envoy::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use webpki::EndEntityCert;

use super::SecretError;

/// Matchers, any of which is enough (C60). Without one, names are not matched
/// here.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Matcher>);

#[derive(Debug)]
struct Matcher {
    kind: Kind,
    pattern: Pattern,
    ignore_case: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Dns,
    Uri,
    /// Either of them.
    Any,
}

#[derive(Debug)]
enum Pattern {
    Exact(String),
    Prefix(String),
    Suffix(String),
    Contains(String),
}

impl Names {
    /// Reads matchers: `typed` ones say the kind of a name, and `untyped` ones mean
    /// DNS names and URIs.
    ///
    /// # Errors
    /// A matcher is for another kind of name, or has a pattern that is not
    /// supported. Without it, more or fewer peers would be trusted.
    pub(super) fn read(
        typed: &[SubjectAltNameMatcher],
        untyped: &[StringMatcher],
    ) -> Result<Self, SecretError> {
        let typed = typed.iter().map(Matcher::read);
        let untyped = untyped.iter().map(|text| Matcher::new(Kind::Any, text));
        typed.chain(untyped).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether there is no matcher.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether one of the certificate's DNS names or URIs matches. Without
    /// a matcher none does.
    pub(super) fn accept(&self, certificate: &EndEntityCert<'_>) -> bool {
        self.0.iter().any(|matcher| {
            let by_dns = || {
                certificate
                    .valid_dns_names()
                    .any(|name| matcher.matches(name))
            };
            let by_uri = || {
                certificate
                    .valid_uri_names()
                    .any(|name| matcher.matches(name))
            };
            match matcher.kind {
                Kind::Dns => by_dns(),
                Kind::Uri => by_uri(),
                Kind::Any => by_dns() || by_uri(),
            }
        })
    }
}

impl Matcher {
    /// Reads a matcher that says the kind of a name.
    fn read(matcher: &SubjectAltNameMatcher) -> Result<Self, SecretError> {
        let kind = match matcher.san_type() {
            SanType::Dns => Kind::Dns,
            SanType::Uri => Kind::Uri,
            _ => return Err(SecretError::Unsupported("names that are no DNS or URI")),
        };
        let text = matcher.matcher.as_ref();
        Self::new(
            kind,
            text.ok_or(SecretError::Lacks("the matcher of a name"))?,
        )
    }

    /// Reads a matcher of names of this kind.
    fn new(kind: Kind, text: &StringMatcher) -> Result<Self, SecretError> {
        let pattern = Pattern::read(text)?;

        let ignore_case = text.ignore_case;
        Ok(Self {
            kind,
            pattern: if ignore_case {
                pattern.lowercase()
            } else {
                pattern
            },
            ignore_case,
        })
    }

    /// Returns whether a name matches, in lower case if case is ignored.
    fn matches(&self, name: &str) -> bool {
        if self.ignore_case {
            self.pattern.matches(&name.to_ascii_lowercase())
        } else {
            self.pattern.matches(name)
        }
    }
}

impl Pattern {
    /// Reads a pattern. One that is a regex, or none, is an error.
    fn read(matcher: &StringMatcher) -> Result<Self, SecretError> {
        match &matcher.match_pattern {
            Some(MatchPattern::Exact(text)) => Ok(Self::Exact(text.clone())),
            Some(MatchPattern::Prefix(text)) => Ok(Self::Prefix(text.clone())),
            Some(MatchPattern::Suffix(text)) => Ok(Self::Suffix(text.clone())),
            Some(MatchPattern::Contains(text)) => Ok(Self::Contains(text.clone())),
            Some(_) => Err(SecretError::Unsupported("names by regex")),
            None => Err(SecretError::Lacks("the pattern of a name")),
        }
    }

    /// Returns the pattern in lower case.
    fn lowercase(self) -> Self {
        match self {
            Self::Exact(text) => Self::Exact(text.to_ascii_lowercase()),
            Self::Prefix(text) => Self::Prefix(text.to_ascii_lowercase()),
            Self::Suffix(text) => Self::Suffix(text.to_ascii_lowercase()),
            Self::Contains(text) => Self::Contains(text.to_ascii_lowercase()),
        }
    }

    /// Returns whether a text matches, case included.
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(text) => name == text,
            Self::Prefix(text) => name.starts_with(text.as_str()),
            Self::Suffix(text) => name.ends_with(text.as_str()),
            Self::Contains(text) => name.contains(text.as_str()),
        }
    }
}
