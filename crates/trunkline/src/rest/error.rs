//! Errors of polls. All of them are the client's to mend.

use http::StatusCode;
use serde_json::json;

/// Why a poll is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestError {
    /// The body is larger than it may be.
    #[error("the request has more than {limit} bytes; ask for fewer resources")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It is not the JSON of a `DiscoveryRequest`.
    #[error("the request is not a DiscoveryRequest in JSON: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A text in it is longer than it may be.
    #[error("{field} has more than {limit} bytes")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// The limit.
        limit: usize,
    },
    /// It requests another type than that of its path.
    #[error(
        "type_url is {found:?}, but this path gives {expected}; leave it out or use the path of that type"
    )]
    WrongType {
        /// The type of the path.
        expected: &'static str,
        /// The type in the request.
        found: String,
    },
}

impl RestError {
    /// Returns the status of the HTTP response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Malformed(_) | Self::TooLong { .. } | Self::WrongType { .. } => {
                StatusCode::BAD_REQUEST
            }
        }
    }

    /// Returns the body of the HTTP response, as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        json!({"code": self.status().as_u16(), "message": self.to_string()}).to_string()
    }
}
