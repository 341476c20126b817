//! A body of resources: read and checked as `serve` checks files.

use bytes::Bytes;
use trunkline::{Name, Server, TypeUrl};
use trunkline_proto::redact::REDACTED;

use super::body::{BodyResource, Form, MOST, Read};
use super::dangling::dangling;
use super::error::{Detail, Refusal};
use super::{clash, domains};
use crate::settings::OnDangling;

/// Resources without a mistake, and warnings.
pub(super) struct Accepted {
    pub(super) given: Vec<BodyResource>,
    /// Names of which the body has the whole and no variant is left.
    pub(super) empty: Vec<(TypeUrl, Name)>,
    pub(super) warnings: Vec<Detail>,
}

/// Reads a body and checks it against the resources of the server.
pub(super) fn accept(
    server: &Server,
    body: Bytes,
    form: Form,
    on_dangling: OnDangling,
) -> Result<Accepted, Refusal> {
    let mut read = Read::new(body, form);
    let mut wrong = secrets(&read.given);
    wrong.extend(clash::within(&read.given));
    wrong.extend(domains::conflicts(&read.given));
    wrong.into_iter().for_each(|wrong| read.wrong(wrong));
    for loose in dangling(server, &read.given) {
        match on_dangling {
            OnDangling::Error => read.wrong(loose),
            OnDangling::Warn => read.warnings.push(loose),
        }
    }
    if !read.errors.is_empty() {
        let count = match read.errors.len() {
            1 => "1 mistake".to_owned(),
            MOST => format!("{MOST} mistakes or more"),
            count => format!("{count} mistakes"),
        };
        let message = format!("{count}; nothing was changed");
        return Err(Refusal::invalid(message, read.errors));
    }
    Ok(Accepted {
        given: read.given,
        empty: read.empty,
        warnings: read.warnings,
    })
}

/// A redacted secret, as `get` shows it, must not replace the secret.
fn secrets(given: &[BodyResource]) -> Vec<Detail> {
    let shown = given.iter().filter(|one| {
        let body = one.resource.body.as_deref().unwrap_or_default();
        holds(body, REDACTED.as_bytes())
    });
    let wrong = shown.map(|one| {
        one.place.wrong(format!(
            "holds {REDACTED:?}, which stands for a secret that was not shown; put the secret in"
        ))
    });
    wrong.collect()
}

fn holds(body: &[u8], part: &[u8]) -> bool {
    let first = part.first().copied().unwrap_or_default();
    let mut rest = body;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        rest = &rest[at..];
        if rest.starts_with(part) {
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
            assert!(holds(body.as_bytes(), REDACTED.as_bytes()), "{body}");
        }
        for body in ["", "[redacted", "[", "redacted]", "[reda[cted]"] {
            assert!(!holds(body.as_bytes(), REDACTED.as_bytes()), "{body}");
        }
    }
}
