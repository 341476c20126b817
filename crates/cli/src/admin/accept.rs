//! A body of resources: decoded as a file is.

use std::io::Cursor;

use bytes::Bytes;
use trunkline::checked::{Decoded, Document, Finding, Form, decode};
use trunkline::wire;

use super::error::Refusal;
use super::outcome::refusal;

/// Decodes a body and checks each resource. The document comes with warnings.
///
/// # Errors
/// There is a mistake.
pub(super) fn accept(body: Bytes, form: Form) -> Result<(Document, Vec<Finding>), Refusal> {
    let decoded = decode(&"".into(), form, Cursor::new(body), &wire::text_options());
    let decoded = decoded.map_err(|error| Refusal::bad(format!("the body: {error}")))?;
    if !decoded.errors.is_empty() {
        return Err(refusal(decoded.into_all_errors()));
    }
    let Decoded {
        document, warnings, ..
    } = decoded;
    Ok((document, warnings))
}
