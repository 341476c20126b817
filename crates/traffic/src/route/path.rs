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

impl PathMatcher {
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
