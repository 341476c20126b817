//! A body of resources: decoded as a file is.

use std::io::Cursor;

use bytes::Bytes;
use trunkline::checked::{Decoded, Document, Fault, Finding, Form, decode};
use trunkline::wire;
use trunkline_proto::redact::REDACTED;

use super::error::Refusal;
use super::outcome::refusal;

/// Decodes a body and checks each resource. The document comes with warnings.
///
/// # Errors
/// There is a mistake.
pub(super) fn accept(body: Bytes, form: Form) -> Result<(Document, Vec<Finding>), Refusal> {
    let decoded = decode(&"".into(), form, Cursor::new(body), &wire::text_options());
    let mut decoded = decoded.map_err(|error| Refusal::bad(format!("the body: {error}")))?;
    let redacted = find_redacted(&decoded.document);
    decoded.errors.extend(redacted);

    if !decoded.errors.is_empty() {
        return Err(refusal(decoded.into_all_errors()));
    }
    let Decoded {
        document, warnings, ..
    } = decoded;
    Ok((document, warnings))
}

/// Finds resources with redacted secrets, as `get` shows them: these must not
/// replace the secrets.
fn find_redacted(document: &Document) -> Vec<Finding> {
    let redacted = document.items.iter().filter(|item| {
        let body = item.resource.body.as_deref().unwrap_or_default();
        contains(body, REDACTED.as_bytes())
    });
    let mistakes = redacted.map(|item| document.finding(item, Fault::Redacted));
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
