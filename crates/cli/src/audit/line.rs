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

/// Writes a line `change` for each resource of a change.
pub(super) fn of_change(who: &str, changed: &[Changed]) -> Vec<u8> {
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
        write(&mut lines, &now, "change", who, resource);
    }
    lines
}

/// Writes a line `withdrawn`: the change that is recorded before it was not
/// made.
pub(super) fn of_withdrawal(who: &str, reason: &str) -> Vec<u8> {
    let reason = shorten(reason);
    of_one("withdrawn", who, Reason { reason })
}

/// Writes a line `refused`.
pub(super) fn of_refusal(who: &str, refused: &RefusedRequest<'_>) -> Vec<u8> {
    let refused = RefusedRequest {
        request: shorten(refused.request),
        reason: shorten(refused.reason),
        ..refused.clone()
    };
    of_one("refused", shorten(who), refused)
}

/// Writes a line `confirmed`: a change that was held may be made.
pub(super) fn of_confirmation(who: &str, request: &str) -> Vec<u8> {
    let request = shorten(request);
    of_one("confirmed", who, Request { request })
}

fn of_one(event: &str, who: &str, rest: impl Serialize) -> Vec<u8> {
    let mut lines = Vec::new();
    let now = timestamp(SystemTime::now());
    write(&mut lines, &now, event, who, rest);
    lines
}

fn write(lines: &mut Vec<u8>, time: &str, event: &str, who: &str, rest: impl Serialize) {
    let line = Line {
        time,
        event,
        who,
        rest,
    };
    // Writing texts and numbers to memory does not fail.
    let _ = serde_json::to_writer(&mut *lines, &line);
    lines.push(b'\n');
}

/// Cuts a text off after [`MOST_TEXT`] bytes, between two characters.
fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_TEXT)]
}
