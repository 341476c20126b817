//! Checks an edited text before it is sent: it must have the variants that it
//! had, and no other name.

use std::collections::BTreeSet;
use std::io::Cursor;

use trunkline::checked::{Form, Item, decode};
use trunkline::wire;
use trunkline_proto::text::Format;

use super::fetch::{Original, Subject};
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
    original: &Original,
    body: &str,
) -> Result<Vec<Mistake>> {
    let source = Cursor::new(body.to_owned());
    let form = Form::Text(Format::Yaml);
    let decoding =
        decode(&"".into(), form, source, &wire::text_options()).map_err(Failure::wrong)?;
    if !decoding.errors.is_empty() {
        return Ok(decoding.errors.iter().map(Mistake::from).collect());
    }

    let items = decoding.document.items.iter();
    let items = items.filter(|item| !item.is_inline_host);
    let mut mistakes = Vec::new();
    let mut variants: BTreeSet<Option<String>> = BTreeSet::new();
    for item in items {
        let constraints = item.resource.constraints.as_ref().map(ToString::to_string);
        mistakes.extend(find_other_subject(subject, item, constraints.as_deref()));
        variants.insert(constraints);
    }
    mistakes.extend(find_missing_variants(original, &variants));
    Ok(mistakes)
}

/// Returns the mistake of an item that is another resource, or another variant,
/// than the one that is edited. Returns `None` for the edited one.
fn find_other_subject(
    subject: &Subject,
    item: &Item,
    constraints: Option<&str>,
) -> Option<Mistake> {
    let (type_url, name) = (&item.type_url, &item.resource.name);
    if *type_url != subject.type_url || name.as_str() != subject.name {
        return Some(Mistake::new(format!(
            "{}/{name} is another resource than {}, which is edited here; to rename a \
             resource, apply it under its new name, and delete the old one",
            kinds::short(type_url),
            subject.name_label(),
        )));
    }
    if !subject.has_variant(constraints) {
        return Some(Mistake::new(format!(
            "this is another variant than {subject}; edit all of them without --variant"
        )));
    }
    None
}

/// Returns a mistake for each original variant that the text lacks. A resource
/// for all clients replaces the other variants, so they may be missing then.
fn find_missing_variants(original: &Original, variants: &BTreeSet<Option<String>>) -> Vec<Mistake> {
    if variants.contains(&None) {
        return Vec::new();
    }
    let missing_variants = original
        .versions
        .keys()
        .filter(|key| !variants.contains(*key));
    let mistakes = missing_variants.flatten().map(|constraints| {
        Mistake::new(format!(
            "the variant [{constraints}] is missing; to remove it, use `trunkline delete` \
             with --variant"
        ))
    });
    mistakes.collect()
}
