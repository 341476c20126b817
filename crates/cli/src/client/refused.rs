//! The error responses of a server, and failures made of them.

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;

use crate::failure::Failure;

/// The body of an error response.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope {
    pub(super) error: Refused,
}

/// Why a server refuses a request.
#[derive(Debug, Deserialize)]
pub(crate) struct Refused {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) details: Vec<Detail>,
}

/// The response to a call.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The body of a good response.
    Good(Bytes),
    /// The server refuses the request, with this status.
    Refused(StatusCode, Refused),
}

/// One mistake, with its place in the request's body.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Detail {
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    #[serde(default)]
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Detail {
    /// Writes the mistake as a compiler would: place, field, message. Without a
    /// line and a field, the file is not named.
    pub(crate) fn in_file(&self, file: &str) -> String {
        let mut text = match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            // In a binary file.
            _ if !self.field.is_empty() => format!("{file}: "),
            _ => String::new(),
        };
        if !self.field.is_empty() {
            text.push_str(&format!("{}: ", self.field));
        }
        text + &self.message
    }
}

/// Writes a mistake of a request that has no file.
pub(super) fn without_file(detail: Detail) -> String {
    detail.in_file("")
}

/// Makes a failure of an error response, with a line for each of its details,
/// which `describe` writes. A response in another form means that the server is
/// not one of ours, and the failure says so.
pub(super) fn refusal(
    status: StatusCode,
    body: &[u8],
    describe: &dyn Fn(Detail) -> String,
) -> Failure {
    let Ok(Envelope { error }) = serde_json::from_slice(body) else {
        return Failure::wrong(format!(
            "the server answers {status}; is --admin the admin address of a trunkline server?"
        ));
    };

    let mut text = error.message;
    for detail in error.details {
        text.push_str("\n  ");
        text.push_str(&describe(detail));
    }
    Failure::wrong(text)
}
