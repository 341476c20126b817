//! The path of a request against a route (34; facts 1.2).
//!
//! All of it looks at the path without the query. A fragment never arrives
//! here: the connection manager refuses it.

use prost::Message;
use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::core::v3::TypedExtensionConfig;
use trunkline_proto::envoy::envoy::config::route::v3::{RouteMatch, route_match::PathSpecifier};
use trunkline_proto::envoy::envoy::extensions::path::r#match::uri_template::v3::UriTemplateMatchConfig;

use crate::findings::Findings;
use crate::pattern::{Case, Regex, Template};

/// The type of the one path match policy that exists.
const URI_TEMPLATE: &str = "envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig";

/// A test of a path.
#[derive(Debug, Clone)]
pub(crate) enum PathMatcher {
    Prefix(Box<str>, Case),
    Exact(Box<str>, Case),
    /// A prefix that ends where a segment does.
    SeparatedPrefix(Box<str>, Case),
    Regex(Box<Regex>),
    Template(Box<Template>),
    /// Any CONNECT.
    Connect,
}

/// The first bytes of paths that a route may match. They are compared first:
/// most routes are passed over by them.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathHead {
    bytes: u64,
    mask: u64,
}

impl PathHead {
    /// Returns the first eight bytes of a path as a number, to be compared with
    /// heads. A shorter path ends in zeros.
    pub(super) fn word(path: &str) -> u64 {
        let path = path.as_bytes();
        if let Some(word) = path.first_chunk() {
            return u64::from_le_bytes(*word);
        }
        let mut word = [0; 8];
        word[..path.len()].copy_from_slice(path);
        u64::from_le_bytes(word)
    }

    /// Returns whether a path with these first bytes may match. If not, the path
    /// does not match; if so, the matcher decides.
    pub(super) fn admits(self, word: u64) -> bool {
        word & self.mask == self.bytes
    }
}

impl PathMatcher {
    /// Returns the head that all paths that match have. A matcher whose paths do
    /// not begin with a fixed text has one that admits every path.
    pub(super) fn head(&self) -> PathHead {
        let text = match self {
            Self::Prefix(text, Case::Sensitive)
            | Self::Exact(text, Case::Sensitive)
            | Self::SeparatedPrefix(text, Case::Sensitive) => text,
            _ => "",
        };
        let mask = match text.len() {
            0 => 0,
            length => u64::MAX >> (64 - 8 * length.min(8)),
        };
        PathHead {
            bytes: PathHead::word(text),
            mask,
        }
    }

    /// Compiles the path specifier of a route match. Returns `None` if it is
    /// missing or cannot be compiled.
    pub(super) fn compile(
        message: &RouteMatch,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let case = match message.case_sensitive.is_none_or(|flag| flag.value) {
            true => Case::Sensitive,
            false => Case::Ignored,
        };

        match &message.path_specifier {
            Some(PathSpecifier::Prefix(text)) => Some(Self::Prefix(text.as_str().into(), case)),
            Some(PathSpecifier::Path(text)) => Some(Self::Exact(text.as_str().into(), case)),
            Some(PathSpecifier::PathSeparatedPrefix(text)) => {
                let place = place.field("path_separated_prefix");
                compile_separated_prefix(text, case, &place, findings)
            }
            Some(PathSpecifier::SafeRegex(regex)) => {
                let regex = Regex::compile(regex, &place.field("safe_regex"), findings)?;
                Some(Self::Regex(Box::new(regex)))
            }
            Some(PathSpecifier::ConnectMatcher(_)) => Some(Self::Connect),
            Some(PathSpecifier::PathMatchPolicy(policy)) => {
                compile_template(policy, &place.field("path_match_policy"), findings)
            }
            None => {
                findings.add(place, Problem::Missing);
                None
            }
        }
    }

    /// Returns whether a path without query matches. Only a matcher of CONNECT
    /// looks at the method.
    pub(crate) fn is_match(&self, method: &str, path: &str) -> bool {
        let bytes = path.as_bytes();
        match self {
            Self::Prefix(prefix, case) => starts_with(bytes, prefix, *case),
            Self::Exact(text, case) => {
                text.len() == bytes.len() && case.is_equal(bytes, text.as_bytes())
            }
            Self::SeparatedPrefix(prefix, case) => {
                let next_byte = bytes.get(prefix.len());
                starts_with(bytes, prefix, *case) && next_byte.is_none_or(|byte| *byte == b'/')
            }
            Self::Regex(regex) => regex.is_match(bytes),
            Self::Template(template) => template.is_match(path),
            Self::Connect => method == "CONNECT",
        }
    }

    /// Returns the number of bytes that a prefix rewrite replaces: the prefix,
    /// or all of a path that was matched as a whole.
    pub(super) fn matched_length(&self, path: &str) -> usize {
        match self {
            Self::Prefix(prefix, _) | Self::SeparatedPrefix(prefix, _) => prefix.len(),
            _ => path.len(),
        }
    }
}

fn starts_with(path: &[u8], prefix: &str, case: Case) -> bool {
    let start = path.get(..prefix.len());
    start.is_some_and(|start| case.is_equal(start, prefix.as_bytes()))
}

/// Compiles a prefix of whole segments. Returns `None` if it ends with a slash
/// or contains a query or a fragment, as Envoy requires.
fn compile_separated_prefix(
    text: &str,
    case: Case,
    place: &Place<'_>,
    findings: &mut Findings,
) -> Option<PathMatcher> {
    if text.ends_with('/') || text.contains(['?', '#']) {
        let problem = "must neither end with `/` nor have a `?` or `#`; remove it";
        findings.add(place, Problem::Other(problem.to_owned()));
        return None;
    }
    Some(PathMatcher::SeparatedPrefix(text.into(), case))
}

/// Compiles a URI template. Returns `None` if the policy is another extension,
/// or the template is invalid.
fn compile_template(
    policy: &TypedExtensionConfig,
    place: &Place<'_>,
    findings: &mut Findings,
) -> Option<PathMatcher> {
    let any = policy.typed_config.as_ref();
    let Some(any) = any.filter(|any| any.type_url.ends_with(URI_TEMPLATE)) else {
        findings.add(place, Problem::Extension(policy.name.clone()));
        return None;
    };

    let template = UriTemplateMatchConfig::decode(&*any.value)
        .map_err(|error| error.to_string())
        .and_then(|config| Template::new(&config.path_template));
    match template {
        Ok(template) => Some(PathMatcher::Template(Box::new(template))),
        Err(problem) => {
            findings.add(&place.field("typed_config"), Problem::Other(problem));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_route_admits_what_its_path_matches() {
        let texts = [
            "",
            "/",
            "/a",
            "/ab/cd/",
            "/ab/cd/e",
            "/ab/cd/ef",
            "/ab/cd/eg",
        ];
        for text in texts {
            let matchers: [fn(Box<str>, Case) -> PathMatcher; 3] = [
                PathMatcher::Prefix,
                PathMatcher::Exact,
                PathMatcher::SeparatedPrefix,
            ];
            for matcher in matchers {
                let sensitive = matcher(text.into(), Case::Sensitive);
                let ignoring = matcher(text.to_ascii_uppercase().into(), Case::Ignored);
                for path in texts {
                    let word = PathHead::word(path);
                    let admitted = sensitive.head().admits(word);
                    let common = text.len().min(8);
                    let same = path.as_bytes().get(..common) == Some(&text.as_bytes()[..common]);
                    assert_eq!(admitted, same, "{text:?} {path:?}");
                    assert!(admitted || !sensitive.is_match("GET", path));
                    assert!(ignoring.head().admits(word));
                }
            }
        }
        assert!(PathMatcher::Connect.head().admits(PathHead::word("/a")));
    }
}
