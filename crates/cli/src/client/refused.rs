//! The error responses of a server, and failures made of them.

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;

use super::detail::{Detail, DetailPrinter};
use crate::failure::Failure;
use crate::report::{Report, Severity};

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

/// Makes a failure of an error response to a request that has no file.
pub(super) fn refusal_without_file(status: StatusCode, body: &[u8]) -> Failure {
    let printer = DetailPrinter {
        report: &Report::new(),
        locate: &|detail| detail.in_file(""),
    };
    refusal(status, body, &printer)
}

/// Makes the failure of an error response. Its details are findings about the
/// body if the status is 422, and else lines that explain the message. If the
/// response has another form, the failure says that the server is not one of
/// ours.
pub(super) fn refusal(status: StatusCode, body: &[u8], printer: &DetailPrinter<'_>) -> Failure {
    let Ok(Envelope { error }) = serde_json::from_slice(body) else {
        return Failure::wrong(format!(
            "the server answers {status}; is --admin the admin address of a trunkline server?"
        ));
    };

    let details = error.details.into_iter();
    if status == StatusCode::UNPROCESSABLE_ENTITY {
        let findings = details.map(|detail| printer.show(Severity::Error, detail));
        return Failure::wrong(error.message).with_findings(findings.collect());
    }
    let lines = details.map(|detail| format!("\n  {}", printer.line(detail)));
    Failure::wrong(error.message + &lines.collect::<String>())
}
