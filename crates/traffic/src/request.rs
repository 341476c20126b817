//! A request as routing sees it.

use crate::headers::Headers;

/// The head of a request. `path` is the `:path` of HTTP/2, query included.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// The method.
    pub method: &'r str,
    /// The scheme: `x-forwarded-proto` where that is trusted.
    pub scheme: &'r str,
    /// The host, with its port if the client sent one.
    pub authority: &'r str,
    /// The path and the query.
    pub path: &'r str,
    /// All other headers.
    pub headers: &'r Headers,
}

impl<'r> Request<'r> {
    /// Returns the path without the query.
    #[must_use]
    pub fn bare_path(&self) -> &'r str {
        split_query(self.path).0
    }

    /// Returns the query without its `?`, if there is one.
    #[must_use]
    pub fn query(&self) -> Option<&'r str> {
        split_query(self.path).1
    }

    /// Returns the first value of a header, or of a pseudo-header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'r [u8]> {
        match self.pseudo(name) {
            Some(value) => Some(value.as_bytes()),
            None => self.headers.get(name),
        }
    }

    /// Returns the value of a name that is a field of this type. Envoy knows
    /// `host` as another name of `:authority`.
    pub(crate) fn pseudo(&self, name: &str) -> Option<&'r str> {
        match name {
            ":method" => Some(self.method),
            ":scheme" => Some(self.scheme),
            ":authority" | "host" => Some(self.authority),
            ":path" => Some(self.path),
            _ => None,
        }
    }

    /// Returns whether this is a gRPC request by its content type.
    #[must_use]
    pub fn is_grpc(&self) -> bool {
        let content_type = self.headers.get("content-type");
        content_type
            .and_then(|value| value.strip_prefix(b"application/grpc"))
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'+')
    }

    /// Returns whether an earlier filter found the client to be inside the
    /// mesh.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.headers.get("x-envoy-internal") == Some(b"true")
    }
}

/// Splits a path at its `?`.
pub(crate) fn split_query(path: &str) -> (&str, Option<&str>) {
    match memchr::memchr(b'?', path.as_bytes()) {
        Some(question_mark) => (&path[..question_mark], Some(&path[question_mark + 1..])),
        None => (path, None),
    }
}
