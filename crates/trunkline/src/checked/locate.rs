//! The places of references in a text.
//!
//! A resource in a set knows its own place, and not those of its fields. When a
//! reference dangles, the text is parsed again for it.

use trunkline_proto::text::{self, Format, Limits, Node, Position};

use super::finding::{Fault, Finding};
use super::place::saturate;

/// Moves findings about references of one text from the place of the resource
/// to that of the reference. A finding whose reference is not found stays as it
/// is.
pub fn locate_references(format: Format, text: &str, findings: &mut [Finding]) {
    if !has_references(findings) {
        return;
    }
    let Ok(documents) = text::parse(format, "", text, &Limits::default()) else {
        return;
    };
    for finding in findings.iter_mut() {
        if let Some((field, position)) = find_reference(&documents, finding) {
            finding.place.line = saturate(position.line);
            finding.place.column = saturate(position.column);
            finding.field = field.into();
        }
    }
}

/// Returns whether some of these findings are about references in a text, so
/// that [`locate_references`] has something to do.
#[must_use]
pub fn has_references(findings: &[Finding]) -> bool {
    let is_reference = |finding: &Finding| matches!(finding.fault, Fault::Dangling { .. });
    findings
        .iter()
        .any(|finding| finding.place.line > 0 && is_reference(finding))
}

/// Finds the field and the place of a dangling reference. Returns `None` for
/// other findings, and if the text has no such reference.
fn find_reference(documents: &[Node], finding: &Finding) -> Option<(String, Position)> {
    let Fault::Dangling { name, within, .. } = &finding.fault else {
        return None;
    };
    let resource = finding
        .field
        .strip_suffix(&**within)
        .unwrap_or(&finding.field);
    let resource = resource.strip_suffix('.').unwrap_or(resource);
    let path = join(resource, within);

    // A finding is in the last of the documents that begin before its line.
    let begins_before = |root: &&Node| root.at.line <= finding.place.line as usize;
    let document = documents.iter().rev().find(begins_before)?;
    text::find_text(document, &path, name.as_str())
}

/// Returns the path of a field in a document, by that of its resource, which is
/// empty if the document is the resource, and by its own in there.
pub(super) fn join(resource: &str, within: &str) -> String {
    if resource.is_empty() || within.is_empty() {
        format!("{resource}{within}")
    } else {
        format!("{resource}.{within}")
    }
}
