//! Errors of the API.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// An error response: the reason, and its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) details: Vec<Detail>,
}

/// One mistake, with its place in the body if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Detail {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<usize>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
    pub(crate) message: String,
    /// A second place in the body that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) related: Option<Related>,
}

/// A second place in a body, and what is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Related {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<usize>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Detail {
    /// Makes a mistake, or a warning, without a place in the body.
    pub(crate) fn new(message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            ..Self::default()
        }
    }
}

impl Refusal {
    /// Makes an error with this status, and without details.
    pub(crate) fn new(status: StatusCode, message: impl ToString) -> Self {
        Self {
            status,
            message: message.to_string(),
            details: Vec::new(),
        }
    }

    /// Makes the error for a request that makes no sense.
    pub(crate) fn bad(message: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Makes the error for a body with mistakes, which are its details.
    pub(crate) fn invalid(message: impl ToString, details: Vec<Detail>) -> Self {
        Self {
            details,
            ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
        }
    }
}

/// In the extensions of a response that refuses a request: why, for the audit
/// log. Of details it has the first field, and not what is wrong with it, for
/// that may quote a secret.
#[derive(Clone, Debug)]
pub(super) struct RefusalReason(pub(super) String);

#[derive(Serialize)]
struct Envelope<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    message: &'a str,
    details: &'a [Detail],
}

impl IntoResponse for Refusal {
    /// Writes the error as JSON. A status of 401 names the scheme in which a
    /// token is expected, and one of 503 says when to try again.
    fn into_response(self) -> Response {
        let error = Body {
            message: &self.message,
            details: &self.details,
        };

        let mut response = (self.status, axum::Json(Envelope { error })).into_response();

        let reason = RefusalReason(match self.details.first() {
            Some(detail) if !detail.field.is_empty() => {
                format!("{}: {}", self.message, detail.field)
            }
            _ => self.message,
        });
        response.extensions_mut().insert(reason);

        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}
