//! The lines of the audit log, each a JSON object.

use std::time::SystemTime;

use serde::Serialize;
use trunkline::Changed;

use crate::admin::timestamp;

/// The maximum of bytes of a request or a reason in a line.
const MOST_TEXT: usize = 512;

/// A line: when, what happened, who did it.
#[derive(Serialize)]
struct Line<'a, T> {
    time: &'a str,
    event: &'a str,
    who: &'a str,
    #[serde(flatten)]
    rest: T,
}

/// A resource, before and after a change.
#[derive(Serialize)]
struct ChangedResource<'a> {
    #[serde(rename = "type")]
    type_url: &'a str,
    name: &'a str,
    constraints: Option<String>,
    from: Option<&'a str>,
    to: Option<&'a str>,
}

/// A request for a change, and why it was refused.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RefusedRequest<'a> {
    /// Its method and path, with the query.
    pub(crate) request: &'a str,
    pub(crate) status: u16,
    pub(crate) reason: &'a str,
    /// The number of refusals before it that are not recorded.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) suppressed: u64,
}

/// Returns whether a number is left out of the line.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct Reason<'a> {
    reason: &'a str,
}

#[derive(Serialize)]
struct Request<'a> {
    request: &'a str,
}

/// Returns a line `change` for each resource of a change.
pub(super) fn change_lines(who: &str, changed: &[Changed]) -> Vec<u8> {
    let now = timestamp(SystemTime::now());
    let mut lines = Vec::new();
    for change in changed {
        let resource = ChangedResource {
            type_url: change.type_url.as_str(),
            name: change.name.as_str(),
            constraints: change.constraints.as_ref().map(ToString::to_string),
            from: change.from.as_ref().map(|version| version.as_str()),
            to: change.to.as_ref().map(|version| version.as_str()),
        };
        append_line(&mut lines, &now, "change", who, resource);
    }
    lines
}

/// Returns the line `withdrawn`: the change that is recorded before it was not
/// made.
pub(super) fn withdrawal_line(who: &str, reason: &str) -> Vec<u8> {
    let reason = shorten(reason);
    write_line("withdrawn", who, Reason { reason })
}

/// Returns the line `refused` for a request. Long texts in it are shortened.
pub(super) fn refusal_line(who: &str, refusal: &RefusedRequest<'_>) -> Vec<u8> {
    let refusal = RefusedRequest {
        request: shorten(refusal.request),
        reason: shorten(refusal.reason),
        ..refusal.clone()
    };
    write_line("refused", shorten(who), refusal)
}

/// Returns the line `confirmed`: a change that was held may be made.
pub(super) fn confirmation_line(who: &str, request: &str) -> Vec<u8> {
    let request = shorten(request);
    write_line("confirmed", who, Request { request })
}

/// Returns one line of the audit, as of now. `event_fields` are the fields after
/// the common ones.
fn write_line(event: &str, who: &str, event_fields: impl Serialize) -> Vec<u8> {
    let mut lines = Vec::new();
    let now = timestamp(SystemTime::now());
    append_line(&mut lines, &now, event, who, event_fields);
    lines
}

/// Appends one line of the audit as JSON. `event_fields` are the fields after the
/// common ones.
fn append_line(
    lines: &mut Vec<u8>,
    time: &str,
    event: &str,
    who: &str,
    event_fields: impl Serialize,
) {
    let line = Line {
        time,
        event,
        who,
        rest: event_fields,
    };
    // Writing texts and numbers to memory does not fail.
    let _ = serde_json::to_writer(&mut *lines, &line);
    lines.push(b'\n');
}

/// Cuts a text off after [`MOST_TEXT`] bytes, between two characters.
fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_TEXT)]
}
