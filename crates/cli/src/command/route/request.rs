//! A request as it is given on the command line or in a table.

use trunkline_traffic::Request;
use trunkline_traffic::headers::Headers;

use crate::failure::{Failure, Result};

/// A request.
#[derive(Debug)]
pub(super) struct RequestSpec {
    method: String,
    scheme: String,
    authority: String,
    path: String,
    headers: Headers,
}

impl RequestSpec {
    /// Parses a method, a URL and lines of headers. A header `host` replaces
    /// the authority of the URL.
    ///
    /// # Errors
    /// The URL has no host or another scheme than HTTP, or a header has no
    /// colon.
    pub(super) fn parse(method: &str, url: &str, lines: &[String]) -> Result<Self> {
        let (scheme, after_scheme) = match url.split_once("://") {
            Some((scheme @ ("http" | "https"), after_scheme)) => (scheme, after_scheme),
            _ => return Err(wrong_url(url)),
        };
        let authority_end = after_scheme.find(['/', '?']).unwrap_or(after_scheme.len());
        let (authority, path) = after_scheme.split_at(authority_end);
        if authority.is_empty() {
            return Err(wrong_url(url));
        }

        let mut request = Self {
            method: method.to_owned(),
            scheme: scheme.to_owned(),
            authority: authority.to_owned(),
            path: match path.strip_prefix('?') {
                Some(query) => format!("/?{query}"),
                None if path.is_empty() => "/".to_owned(),
                None => path.to_owned(),
            },
            headers: Headers::new(),
        };

        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(|| {
                Failure::usage(format!("{line:?} is no header; write it as NAME: VALUE"))
            })?;
            match name.eq_ignore_ascii_case("host") {
                true => value.trim().clone_into(&mut request.authority),
                false => request.headers.append(name.to_owned(), value.to_owned()),
            }
        }
        Ok(request)
    }

    /// Returns the request as the crate of traffic takes it.
    pub(super) fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            scheme: &self.scheme,
            authority: &self.authority,
            path: &self.path,
            headers: &self.headers,
        }
    }
}

/// Makes the failure of a text that is not the URL of a request.
fn wrong_url(url: &str) -> Failure {
    Failure::usage(format!(
        "{url:?} is no URL of a request; write it as http://host/path"
    ))
}
