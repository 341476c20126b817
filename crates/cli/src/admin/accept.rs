//! A body of resources: read and checked as `serve` checks files.

use bytes::Bytes;
use trunkline::{Name, Server, TypeUrl};
use trunkline_proto::redact::REDACTED;

use super::body::{Body, BodyResource, Form, MOST};
use super::dangling::dangling;
use super::error::{Detail, Refusal};
use super::{clash, domains};
use crate::settings::OnDangling;

/// Resources without a mistake, and warnings.
pub(super) struct Accepted {
    pub(super) resources: Vec<BodyResource>,
    /// Names of which the body has the whole and no variant is left.
    pub(super) empty: Vec<(TypeUrl, Name)>,
    pub(super) warnings: Vec<Detail>,
}

/// Reads a body and checks it: each resource, the resources against each other,
/// and their references against the resources of the server.
///
/// # Errors
/// There is a mistake; all that were found are its details.
pub(super) fn accept(
    server: &Server,
    body: Bytes,
    form: Form,
    on_dangling: OnDangling,
) -> Result<Accepted, Refusal> {
    let mut body = Body::read(body, form);
    let mut mistakes = redacted_secrets(&body.resources);
    mistakes.extend(clash::within(&body.resources));
    mistakes.extend(domains::conflicts(&body.resources));
    mistakes.into_iter().for_each(|one| body.add_error(one));
    for reference in dangling(server, &body.resources) {
        match on_dangling {
            OnDangling::Error => body.add_error(reference),
            OnDangling::Warn => body.warnings.push(reference),
        }
    }
    if !body.errors.is_empty() {
        return Err(refusal(body.errors));
    }
    Ok(Accepted {
        resources: body.resources,
        empty: body.empty,
        warnings: body.warnings,
    })
}

/// Refuses a body for its mistakes.
fn refusal(mistakes: Vec<Detail>) -> Refusal {
    let count = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        MOST => format!("{MOST} mistakes or more"),
        count => format!("{count} mistakes"),
    };
    Refusal::invalid(format!("{count}; nothing was changed"), mistakes)
}

/// Finds redacted secrets, as `get` shows them: they must not replace the
/// secrets.
fn redacted_secrets(resources: &[BodyResource]) -> Vec<Detail> {
    let redacted = resources.iter().filter(|one| {
        let body = one.resource.body.as_deref().unwrap_or_default();
        contains(body, REDACTED.as_bytes())
    });
    let mistakes = redacted.map(|one| {
        one.place.detail(format!(
            "holds {REDACTED:?}, which stands for a secret that was not shown; put the secret in"
        ))
    });
    mistakes.collect()
}

/// Returns whether a body contains a sequence of bytes, which must not be empty.
fn contains(body: &[u8], bytes: &[u8]) -> bool {
    let first = bytes.first().copied().unwrap_or_default();
    let mut rest = body;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        rest = &rest[at..];
        if rest.starts_with(bytes) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_body_is_found_wherever_it_is() {
        for body in ["[redacted]", "x[redacted]", "[[redacted]y", "[re[redacted]"] {
            assert!(contains(body.as_bytes(), REDACTED.as_bytes()), "{body}");
        }
        for body in ["", "[redacted", "[", "redacted]", "[reda[cted]"] {
            assert!(!contains(body.as_bytes(), REDACTED.as_bytes()), "{body}");
        }
    }
}
