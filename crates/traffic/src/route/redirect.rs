//! Redirects: the `location` of a request (37; facts 1.6).

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::{
    RedirectAction,
    redirect_action::{PathRewriteSpecifier, RedirectResponseCode, SchemeRewriteSpecifier},
};

use super::path::PathMatcher;
use super::rewrite::replace_prefix;
use crate::findings::Findings;
use crate::pattern::Substitution;
use crate::request::{Request, split_query};

/// A redirect.
#[derive(Debug, Clone)]
pub struct Redirect {
    status: u16,
    scheme: Option<Box<str>>,
    host: Option<Box<str>>,
    port: Option<u16>,
    path: PathChange,
    strips_query: bool,
}

#[derive(Debug, Clone)]
enum PathChange {
    None,
    /// Another path, which may have a query of its own.
    Whole(Box<str>),
    Prefix(Box<str>),
    Regex(Box<Substitution>),
}

impl Redirect {
    /// A redirect to where the request came.
    pub(super) fn to_itself() -> Self {
        Self {
            status: 301,
            scheme: None,
            host: None,
            port: None,
            path: PathChange::None,
            strips_query: false,
        }
    }

    pub(super) fn compile(
        message: &RedirectAction,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let status = match RedirectResponseCode::try_from(message.response_code) {
            Ok(RedirectResponseCode::MovedPermanently) => 301,
            Ok(RedirectResponseCode::Found) => 302,
            Ok(RedirectResponseCode::SeeOther) => 303,
            Ok(RedirectResponseCode::TemporaryRedirect) => 307,
            Ok(RedirectResponseCode::PermanentRedirect) => 308,
            Err(_) => {
                findings.add(&place.field("response_code"), Problem::Unsupported);
                301
            }
        };
        let scheme = match &message.scheme_rewrite_specifier {
            Some(SchemeRewriteSpecifier::HttpsRedirect(true)) => Some("https".into()),
            Some(SchemeRewriteSpecifier::SchemeRedirect(scheme)) if !scheme.is_empty() => {
                Some(scheme.as_str().into())
            }
            _ => None,
        };
        let port = u16::try_from(message.port_redirect).unwrap_or_else(|_| {
            let problem = "must be a port, at most 65535";
            findings.add(
                &place.field("port_redirect"),
                Problem::Other(problem.to_owned()),
            );
            0
        });
        Some(Self {
            status,
            scheme,
            host: (!message.host_redirect.is_empty())
                .then(|| message.host_redirect.as_str().into()),
            port: (port != 0).then_some(port),
            path: PathChange::compile(message, place, findings)?,
            strips_query: message.strip_query,
        })
    }

    /// The status of the response.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the `location` of a request that a path was matched of.
    pub(super) fn location(&self, request: &Request<'_>, path: Option<&PathMatcher>) -> String {
        let scheme = self.scheme.as_deref().unwrap_or(request.scheme);
        let host = match &self.host {
            Some(host) => host,
            None => self.kept_host(request, scheme),
        };
        let mut location = format!("{scheme}://{host}");
        if let Some(port) = self.port {
            location.push_str(&format!(":{port}"));
        }
        self.push_path(request, path, &mut location);
        location
    }

    /// Returns the host of the request, without a port that another replaces or
    /// that was the default one of a scheme that changes.
    fn kept_host<'r>(&self, request: &Request<'r>, scheme: &str) -> &'r str {
        let Some((host, port)) = split_port(request.authority) else {
            return request.authority;
        };
        let is_default = matches!((request.scheme, port), ("http", "80") | ("https", "443"));
        let drops = self.port.is_some() || (scheme != request.scheme && is_default);
        match drops {
            true => host,
            false => request.authority,
        }
    }

    fn push_path(&self, request: &Request<'_>, path: Option<&PathMatcher>, output: &mut String) {
        let (bare, query) = split_query(request.path);
        let keeps_query = match &self.path {
            PathChange::None => {
                output.push_str(bare);
                true
            }
            PathChange::Whole(new) => {
                output.push_str(new);
                !new.contains('?')
            }
            PathChange::Prefix(new) => {
                output.push_str(&replace_prefix(bare, path, new));
                true
            }
            PathChange::Regex(substitution) => {
                let new = substitution.apply(bare);
                output.push_str(if new.is_empty() { bare } else { &new });
                true
            }
        };
        if let Some(query) = query.filter(|_| keeps_query && !self.strips_query) {
            output.push('?');
            output.push_str(query);
        }
    }
}

impl PathChange {
    fn compile(
        message: &RedirectAction,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        match &message.path_rewrite_specifier {
            Some(PathRewriteSpecifier::PathRedirect(path)) if !path.is_empty() => {
                Some(Self::Whole(path.as_str().into()))
            }
            Some(PathRewriteSpecifier::PrefixRewrite(prefix)) if !prefix.is_empty() => {
                Some(Self::Prefix(prefix.as_str().into()))
            }
            Some(PathRewriteSpecifier::RegexRewrite(regex)) => {
                let place = place.field("regex_rewrite");
                let substitution = Substitution::compile(regex, &place, findings)?;
                Some(Self::Regex(Box::new(substitution)))
            }
            Some(PathRewriteSpecifier::PathRewrite(text)) if !text.is_empty() => {
                findings.add(&place.field("path_rewrite"), Problem::Unsupported);
                None
            }
            _ => Some(Self::None),
        }
    }
}

/// Splits a host and its port; `[::1]` has none.
pub(crate) fn split_port(authority: &str) -> Option<(&str, &str)> {
    match authority.starts_with('[') {
        true => {
            let end = authority.rfind("]:")?;
            Some((&authority[..=end], &authority[end + 2..]))
        }
        false => authority.rsplit_once(':'),
    }
}
