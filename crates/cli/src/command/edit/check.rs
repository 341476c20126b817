//! Checks an edited text before it is sent: it must have the variants that it
//! had, and no other name.

use std::collections::BTreeSet;
use std::io::Cursor;

use trunkline::checked::{Form, decode};
use trunkline::wire;
use trunkline_proto::text::Format;

use super::fetch::{Fetched, Subject};
use super::text::Mistake;
use crate::failure::{Failure, Result};
use crate::kinds;

/// Returns the mistakes of a text, as far as they can be found without the
/// server.
///
/// # Errors
/// The text is not a document at all.
pub(super) fn find_mistakes(
    subject: &Subject,
    fetched: &Fetched,
    body: &str,
) -> Result<Vec<Mistake>> {
    let source = Cursor::new(body.to_owned());
    let form = Form::Text(Format::Yaml);
    let decoded =
        decode(&"".into(), form, source, &wire::text_options()).map_err(Failure::wrong)?;
    if !decoded.errors.is_empty() {
        return Ok(decoded.errors.iter().map(Mistake::from).collect());
    }

    let mut mistakes = Vec::new();
    let mut variants: BTreeSet<Option<String>> = BTreeSet::new();

    for item in decoded
        .document
        .items
        .iter()
        .filter(|item| !item.is_inline_host)
    {
        let (type_url, name) = (&item.type_url, &item.resource.name);
        let constraints = item.resource.constraints.as_ref().map(ToString::to_string);
        if *type_url != subject.type_url || name.as_str() != subject.name {
            mistakes.push(Mistake::new(format!(
                "{}/{name} is another resource than {}, which is edited here; to rename a \
                 resource, apply it under its new name, and delete the old one",
                kinds::short(type_url),
                subject.name_label(),
            )));
        } else if !subject.has_variant(constraints.as_deref()) {
            mistakes.push(Mistake::new(format!(
                "this is another variant than {subject}; edit all of them without --variant"
            )));
        }
        variants.insert(constraints);
    }

    // A resource for all clients replaces the other variants, so they may be
    // missing.
    let has_all = variants.contains(&None);
    for fetched_variant in fetched.versions.keys() {
        if let Some(constraints) = fetched_variant
            && !has_all
            && !variants.contains(fetched_variant)
        {
            mistakes.push(Mistake::new(format!(
                "the variant [{constraints}] is missing; to remove it, use `trunkline delete` \
                 with --variant"
            )));
        }
    }
    Ok(mistakes)
}
