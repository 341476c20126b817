//! A body of resources: decoded and checked as a file is.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use trunkline::Server;
use trunkline::checked::{Document, Form, Index, MOST_FINDINGS, decode};
use trunkline::wire;
use trunkline_proto::redact::REDACTED;

use super::dangling::find_dangling;
use super::error::{Detail, Refusal};
use crate::settings::OnDangling;

/// The contents of a body without a mistake, and warnings.
pub(super) struct Accepted {
    pub(super) document: Arc<Document>,
    pub(super) warnings: Vec<Detail>,
}

/// Decodes a body and checks it: each resource, the resources against each
/// other, and their references against the resources of the server.
///
/// # Errors
/// There is a mistake. The details are all that were found, at most
/// [`MOST_FINDINGS`].
pub(super) fn accept(
    server: &Server,
    body: Bytes,
    form: Form,
    on_dangling: OnDangling,
) -> Result<Accepted, Refusal> {
    let decoded = decode(&"".into(), form, Cursor::new(body), &wire::text_options());
    let decoded = decoded.map_err(|error| Refusal::bad(format!("the body: {error}")))?;
    let document = Arc::new(decoded.document);

    let details = |findings: Vec<_>| findings.into_iter().map(Detail::from);
    let mut errors: Vec<Detail> = details(decoded.errors).collect();
    let mut warnings: Vec<Detail> = details(decoded.warnings).collect();
    errors.extend(find_redacted(&document));
    if let Err(clash) = Index::default().insert(&(), &document) {
        errors.extend(details(clash.findings));
    }
    let dangling = find_dangling(server, &document);
    match on_dangling {
        OnDangling::Error => errors.extend(dangling),
        OnDangling::Warn => warnings.extend(dangling),
    }

    if !errors.is_empty() {
        errors.truncate(MOST_FINDINGS);
        return Err(refusal(errors));
    }
    Ok(Accepted { document, warnings })
}

/// Makes the error of a body with mistakes, which says how many there are.
fn refusal(mistakes: Vec<Detail>) -> Refusal {
    let count = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        MOST_FINDINGS => format!("{MOST_FINDINGS} mistakes or more"),
        count => format!("{count} mistakes"),
    };
    Refusal::invalid(format!("{count}; nothing was changed"), mistakes)
}

/// Finds resources with redacted secrets, as `get` shows them: these must not
/// replace the secrets.
fn find_redacted(document: &Document) -> Vec<Detail> {
    let redacted = document.items.iter().filter(|item| {
        let body = item.resource.body.as_deref().unwrap_or_default();
        contains(body, REDACTED.as_bytes())
    });
    let mistakes = redacted.map(|item| {
        let message = format!(
            "holds {REDACTED:?}, which stands for a secret that was not shown; put the secret in"
        );
        Detail::at(document, item, message)
    });
    mistakes.collect()
}

/// Returns whether a body contains a sequence of bytes, which must not be
/// empty. Its first byte is rare in a body, so few places have to be compared
/// with all of it.
fn contains(body: &[u8], sequence: &[u8]) -> bool {
    let first = sequence.first().copied().unwrap_or_default();
    let mut rest = body;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        rest = &rest[at..];
        if rest.starts_with(sequence) {
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
