//! All tests of one route, and the first one that fails.

use trunkline_proto::acceptance::Place;
use trunkline_proto::envoy::envoy::config::route::v3::RouteMatch;

use super::header::HeaderMatcher;
use super::path::PathMatcher;
use super::query::{CookieMatcher, QueryMatcher};
use crate::findings::Findings;
use crate::request::Request;
use crate::runtime::{Runtime, RuntimeFraction};

/// The tests of a route.
#[derive(Debug, Clone)]
pub(crate) struct Criteria {
    fraction: Option<RuntimeFraction>,
    pub(super) path: PathMatcher,
    headers: Box<[HeaderMatcher]>,
    query: Box<[QueryMatcher]>,
    cookies: Box<[CookieMatcher]>,
    is_grpc: bool,
}

/// The first test of a route that a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch<'t> {
    /// The random number is outside `runtime_fraction`.
    #[error("the random number is outside runtime_fraction")]
    Fraction,
    /// The path.
    #[error("the path does not match")]
    Path,
    /// A header.
    #[error("the header {0:?} does not match")]
    Header(&'t str),
    /// A query parameter.
    #[error("the query parameter {0:?} does not match")]
    QueryParameter(&'t str),
    /// A cookie.
    #[error("the cookie {0:?} does not match")]
    Cookie(&'t str),
    /// The content type is not that of gRPC.
    #[error("it is no gRPC request")]
    Grpc,
}

/// The request, prepared once for all routes that are tried.
pub(super) struct Trial<'r> {
    pub(super) request: Request<'r>,
    /// The path without query; without parameters too where a table says so.
    pub(super) path: &'r str,
    pub(super) query: Option<&'r str>,
    pub(super) random: u64,
    pub(super) runtime: &'r Runtime,
}

impl Criteria {
    /// Compiles the match of a route. Returns `None` if its path cannot be
    /// compiled.
    pub(super) fn compile(
        message: &RouteMatch,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        findings.unsupported(&place.field("tls_context"), message.tls_context.is_some());
        let has_metadata = !message.dynamic_metadata.is_empty();
        findings.unsupported(&place.field("dynamic_metadata"), has_metadata);
        findings.unsupported(
            &place.field("filter_state"),
            !message.filter_state.is_empty(),
        );

        let fraction = message.runtime_fraction.as_ref().and_then(|fraction| {
            RuntimeFraction::compile(fraction, &place.field("runtime_fraction"), findings)
        });

        let path = PathMatcher::compile(message, place, findings);
        let headers = compile_each("headers", &message.headers, place, |message, place| {
            HeaderMatcher::compile(message, place, findings)
        });
        let parameters = &message.query_parameters;
        let query = compile_each("query_parameters", parameters, place, |message, place| {
            QueryMatcher::compile(message, place, findings)
        });
        let cookies = compile_each("cookies", &message.cookies, place, |message, place| {
            CookieMatcher::compile(message, place, findings)
        });

        Some(Self {
            fraction,
            path: path?,
            headers,
            query,
            cookies,
            is_grpc: message.grpc.is_some(),
        })
    }

    /// Tests a request, and returns the first criterion that it does not meet.
    /// The fraction comes first: as in Envoy, no other criterion is tested for
    /// a request outside of it.
    pub(super) fn test(&self, trial: &Trial<'_>) -> Result<(), Mismatch<'_>> {
        if let Some(fraction) = &self.fraction
            && !fraction.includes(trial.runtime, trial.random)
        {
            return Err(Mismatch::Fraction);
        }

        if !self.path.is_match(trial.request.method, trial.path) {
            return Err(Mismatch::Path);
        }

        let mut headers = self.headers.iter();
        if let Some(matcher) = headers.find(|matcher| !matcher.is_match(&trial.request)) {
            return Err(Mismatch::Header(matcher.name()));
        }

        let mut parameters = self.query.iter();
        if let Some(matcher) = parameters.find(|matcher| !matcher.is_match(trial.query)) {
            return Err(Mismatch::QueryParameter(matcher.name()));
        }

        let mut cookies = self.cookies.iter();
        let request_headers = trial.request.headers;
        if let Some(matcher) = cookies.find(|matcher| !matcher.is_match(request_headers)) {
            return Err(Mismatch::Cookie(matcher.name()));
        }

        match self.is_grpc && !trial.request.is_grpc() {
            true => Err(Mismatch::Grpc),
            false => Ok(()),
        }
    }
}

/// Compiles each message of a list, with its place. A message that cannot be
/// compiled is left out.
pub(crate) fn compile_each<M, T>(
    field: &str,
    messages: &[M],
    place: &Place<'_>,
    mut compile: impl FnMut(&M, &Place<'_>) -> Option<T>,
) -> Box<[T]> {
    let places = messages.iter().enumerate();
    let compiled =
        places.filter_map(|(index, message)| compile(message, &place.item(field, index)));
    compiled.collect()
}
