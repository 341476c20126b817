//! Bodies of resources: [`accept`] decodes one as a file is decoded, and
//! [`BodyText`] keeps its text for the places of later findings.

use std::io::Cursor;

use bytes::Bytes;
use trunkline::checked::{Decoded, Document, Finding, Form, Settlement, decode, locate_references};
use trunkline::wire;
use trunkline_proto::text::Format;

use super::error::Refusal;
use super::outcome::refusal;

/// The text of a body, and its format.
pub(super) struct BodyText {
    format: Format,
    bytes: Bytes,
}

impl BodyText {
    /// Keeps the text of a body, so that findings made after decoding can be
    /// located in it. Returns `None` for a binary body, and for
    /// [`Form::ByName`]: a body has no file name. The text may not be UTF-8.
    pub(super) fn from_form(body: &Bytes, form: Form) -> Option<Self> {
        match form {
            Form::Text(format) => Some(Self {
                format,
                bytes: body.clone(),
            }),
            Form::ByName | Form::Binary | Form::Part(_) => None,
        }
    }

    /// Gives the findings about dangling references their own places in the
    /// text. Does nothing if the text is not UTF-8.
    pub(super) fn locate_references<T>(&self, settlement: &mut Settlement<T>) {
        let Ok(text) = str::from_utf8(&self.bytes) else {
            return;
        };
        for rejection in &mut settlement.rejections {
            locate_references(self.format, text, &mut rejection.findings);
        }
        locate_references(self.format, text, &mut settlement.warnings);
    }
}

/// Bytes of memory that reading a text may take. Few texts of ten thousand
/// resources take more; `trunkline apply` sends larger ones in binary parts.
pub(crate) const TEXT_MEMORY: u64 = 256 << 20;

/// Decodes a body and checks each resource. The document comes with warnings.
///
/// # Errors
/// The body cannot be decoded, or a resource in it has a mistake. Each mistake
/// is a detail of the error.
pub(super) fn accept(body: Bytes, form: Form) -> Result<(Document, Vec<Finding>), Refusal> {
    let mut options = wire::text_options();
    options.limits.memory = TEXT_MEMORY;
    let decoding = decode(&"".into(), form, Cursor::new(body), &options);
    let decoding = decoding.map_err(|error| Refusal::bad(format!("the body: {error}")))?;
    if !decoding.errors.is_empty() {
        return Err(refusal(decoding.into_all_errors()));
    }
    let Decoded {
        document, warnings, ..
    } = decoding;
    Ok((document, warnings))
}
