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
    /// Returns a redirect to the URL of the request itself.
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

    /// Compiles a redirect. Returns `None` if the change of its path cannot be
    /// compiled.
    pub(super) fn compile(
        message: &RedirectAction,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let status = read_status(message, place, findings);
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

    /// Returns the status of the response.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the `location` for a request. `path` is the matcher of its path,
    /// for a rewrite of the prefix.
    pub(super) fn location(&self, request: &Request<'_>, path: Option<&PathMatcher>) -> String {
        let scheme = self.scheme.as_deref().unwrap_or(request.scheme);
        let host = match &self.host {
            Some(host) => host,
            None => self.host_of_request(request, scheme),
        };
        let mut location = format!("{scheme}://{host}");
        if let Some(port) = self.port {
            location.push_str(&format!(":{port}"));
        }
        self.push_path(request, path, &mut location);
        location
    }

    /// Returns the host of the request. Leaves the port out if the redirect has
    /// another one, or if it is the default one of a scheme that changes.
    fn host_of_request<'r>(&self, request: &Request<'r>, scheme: &str) -> &'r str {
        let Some((host, port)) = split_port(request.authority) else {
            return request.authority;
        };
        let is_default = matches!((request.scheme, port), ("http", "80") | ("https", "443"));
        let drops_port = self.port.is_some() || (scheme != request.scheme && is_default);
        match drops_port {
            true => host,
            false => request.authority,
        }
    }

    /// Appends the path of the location. The query of the request follows,
    /// unless the new path has one or the redirect strips it.
    fn push_path(&self, request: &Request<'_>, path: Option<&PathMatcher>, output: &mut String) {
        let (plain_path, query) = split_query(request.path);
        let keeps_query = match &self.path {
            PathChange::None => {
                output.push_str(plain_path);
                true
            }
            PathChange::Whole(new_path) => {
                output.push_str(new_path);
                !new_path.contains('?')
            }
            PathChange::Prefix(new_prefix) => {
                output.push_str(&replace_prefix(plain_path, path, new_prefix));
                true
            }
            PathChange::Regex(substitution) => {
                let new_path = substitution.apply(plain_path);
                output.push_str(if new_path.is_empty() {
                    plain_path
                } else {
                    &new_path
                });
                true
            }
        };

        if let Some(query) = query.filter(|_| keeps_query && !self.strips_query) {
            output.push('?');
            output.push_str(query);
        }
    }
}

/// Reads the status of a redirect. An unknown one is a finding, and the status
/// is then 301.
fn read_status(message: &RedirectAction, place: &Place<'_>, findings: &mut Findings) -> u16 {
    match RedirectResponseCode::try_from(message.response_code) {
        Ok(RedirectResponseCode::MovedPermanently) => 301,
        Ok(RedirectResponseCode::Found) => 302,
        Ok(RedirectResponseCode::SeeOther) => 303,
        Ok(RedirectResponseCode::TemporaryRedirect) => 307,
        Ok(RedirectResponseCode::PermanentRedirect) => 308,
        Err(_) => {
            findings.add(&place.field("response_code"), Problem::Unsupported);
            301
        }
    }
}

impl PathChange {
    /// Compiles the change of a path. Returns `None` if it is not supported or
    /// its expression cannot be compiled.
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

/// Splits an authority into host and port. Returns `None` if it has no port, as
/// for `[::1]`.
pub(crate) fn split_port(authority: &str) -> Option<(&str, &str)> {
    match authority.starts_with('[') {
        true => {
            let end = authority.rfind("]:")?;
            Some((&authority[..=end], &authority[end + 2..]))
        }
        false => authority.rsplit_once(':'),
    }
}
