//! Rewrites of path and host (38, 39; facts 1.6).

use std::borrow::Cow;

use prost::Message;
use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::core::v3::TypedExtensionConfig;
use trunkline_proto::envoy::envoy::config::route::v3::{
    RouteAction, route_action::HostRewriteSpecifier,
};
use trunkline_proto::envoy::envoy::extensions::path::rewrite::uri_template::v3::UriTemplateRewriteConfig;

use super::path::PathMatcher;
use crate::findings::Findings;
use crate::pattern::{Substitution, TemplateRewrite};
use crate::request::{Request, split_query};

/// The type of the one path rewrite policy that exists.
const URI_TEMPLATE: &str = "envoy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig";

/// How the path is rewritten.
#[derive(Debug, Clone)]
pub(super) enum PathRewrite {
    None,
    Prefix(Box<str>),
    Regex(Box<Substitution>),
    Template(Box<TemplateRewrite>),
}

impl PathRewrite {
    /// Compiles the rewrite of a path, of which only one may be set. Returns
    /// `None` if there are several, or it cannot be compiled.
    pub(super) fn compile(
        message: &RouteAction,
        path: Option<&PathMatcher>,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let has_format = !message.path_rewrite.is_empty();
        findings.unsupported(&place.field("path_rewrite"), has_format);

        let has_prefix = !message.prefix_rewrite.is_empty();
        let rewrites = [
            has_prefix,
            message.regex_rewrite.is_some(),
            message.path_rewrite_policy.is_some(),
        ];
        if rewrites.iter().filter(|is_set| **is_set).count() > 1 {
            let problem = "more than one of prefix_rewrite, regex_rewrite and \
                           path_rewrite_policy is set; keep one";
            findings.add(place, Problem::Other(problem.to_owned()));
            return None;
        }

        if has_prefix {
            return Some(Self::Prefix(message.prefix_rewrite.as_str().into()));
        }
        if let Some(regex) = &message.regex_rewrite {
            let substitution =
                Substitution::compile(regex, &place.field("regex_rewrite"), findings)?;
            return Some(Self::Regex(Box::new(substitution)));
        }
        match &message.path_rewrite_policy {
            Some(policy) => {
                compile_template(policy, path, &place.field("path_rewrite_policy"), findings)
            }
            None => Some(Self::None),
        }
    }

    /// Returns the new path, with the query. Returns `None` if the path stays
    /// unchanged, in which case `x-envoy-original-path` is not added.
    pub(super) fn apply(&self, path: &str, matcher: &PathMatcher) -> Option<String> {
        let (plain_path, query) = split_query(path);
        let mut new_path = match self {
            Self::None => return None,
            Self::Prefix(prefix) => replace_prefix(plain_path, Some(matcher), prefix),
            Self::Regex(substitution) => substitution.apply(plain_path).into_owned(),
            Self::Template(template) => template.apply(plain_path)?,
        };
        // Envoy ignores a rewrite to an empty path.
        if new_path.is_empty() {
            return None;
        }
        if let Some(query) = query {
            new_path.push('?');
            new_path.push_str(query);
        }
        Some(new_path)
    }
}

/// Replaces the prefix that was matched, or the whole of a path that was
/// matched otherwise.
pub(super) fn replace_prefix(path: &str, matcher: Option<&PathMatcher>, new: &str) -> String {
    // What was matched is a prefix of the path, in bytes.
    let length = matcher.map_or(0, |matcher| matcher.matched_length(path));
    format!("{new}{}", path.get(length..).unwrap_or_default())
}

/// Compiles the rewrite of a URI template. Returns `None` if the match of the
/// route has no template, or the rewrite is invalid.
fn compile_template(
    policy: &TypedExtensionConfig,
    path: Option<&PathMatcher>,
    place: &Place<'_>,
    findings: &mut Findings,
) -> Option<PathRewrite> {
    let any = policy.typed_config.as_ref();
    let Some(any) = any.filter(|any| any.type_url.ends_with(URI_TEMPLATE)) else {
        findings.add(place, Problem::Extension(policy.name.clone()));
        return None;
    };

    let Some(PathMatcher::Template(template)) = path else {
        let problem = "needs a path_match_policy of a URI template in the match; add one";
        findings.add(place, Problem::Other(problem.to_owned()));
        return None;
    };

    let rewrite = UriTemplateRewriteConfig::decode(&*any.value)
        .map_err(|error| error.to_string())
        .and_then(|config| TemplateRewrite::new(template, &config.path_template_rewrite));
    match rewrite {
        Ok(rewrite) => Some(PathRewrite::Template(Box::new(rewrite))),
        Err(problem) => {
            findings.add(&place.field("typed_config"), Problem::Other(problem));
            None
        }
    }
}

/// How the host is rewritten.
#[derive(Debug, Clone)]
pub(super) enum HostRewrite {
    None,
    Literal(Box<str>),
    /// The first value of a header.
    Header(Box<str>),
    /// A part of the path.
    PathRegex(Box<Substitution>),
    /// The host name of the endpoint, when it is picked.
    Endpoint,
}

impl HostRewrite {
    /// Compiles the rewrite of a host. Returns `None` if it is not supported or
    /// its expression cannot be compiled.
    pub(super) fn compile(
        message: &RouteAction,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        match &message.host_rewrite_specifier {
            Some(HostRewriteSpecifier::HostRewriteLiteral(host)) if !host.is_empty() => {
                Some(Self::Literal(host.as_str().into()))
            }
            Some(HostRewriteSpecifier::HostRewriteHeader(name)) => {
                Some(Self::Header(name.to_ascii_lowercase().into()))
            }
            Some(HostRewriteSpecifier::HostRewritePathRegex(regex)) => {
                let place = place.field("host_rewrite_path_regex");
                let substitution = Substitution::compile(regex, &place, findings)?;
                Some(Self::PathRegex(Box::new(substitution)))
            }
            Some(HostRewriteSpecifier::AutoHostRewrite(auto)) if auto.value => Some(Self::Endpoint),
            Some(HostRewriteSpecifier::HostRewrite(format)) if !format.is_empty() => {
                findings.add(&place.field("host_rewrite"), Problem::Unsupported);
                None
            }
            _ => Some(Self::None),
        }
    }

    /// Returns the new host as a text of its own, for a request that does not
    /// live as long as the route; `None` if the host stays.
    pub(super) fn apply_to(&self, request: &Request<'_>) -> Option<String> {
        self.apply(request).map(Cow::into_owned)
    }

    /// Returns the new host. Returns `None` if the host stays. As in Envoy, a
    /// path that the expression does not match becomes the host unchanged.
    pub(super) fn apply<'t>(&'t self, request: &Request<'t>) -> Option<Cow<'t, str>> {
        match self {
            Self::None | Self::Endpoint => None,
            Self::Literal(host) => Some(Cow::Borrowed(host)),
            Self::Header(name) => {
                let host = str::from_utf8(request.header(name)?).ok()?;
                (!host.is_empty()).then_some(Cow::Borrowed(host))
            }
            Self::PathRegex(substitution) => Some(substitution.apply(request.bare_path())),
        }
    }
}
