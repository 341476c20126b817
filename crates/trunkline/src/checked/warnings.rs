//! The warnings about accepted edits: references that they leave dangling, and
//! values that no variant of a name serves.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use trunkline_core::facts::Reference;
use trunkline_core::name::Name;
use trunkline_core::resource::TypeUrl;

use super::coverage::{Coverage, TypedResource};
use super::effort::Effort;
use super::finding::{Finding, MOST_FINDINGS};
use super::settle::Settling;

/// Tells the coverage of the variants that the accepted edits add and remove,
/// and returns the warnings about these edits. A rehearsal is undone after
/// that, in the index and in the coverage. `lost` is as in
/// [`collect_warnings`].
pub(super) fn update_coverage(
    settling: &mut Settling<'_>,
    coverage: &mut Coverage,
    lost: Option<&HashSet<Reference>>,
    is_rehearsed: bool,
) -> Vec<Finding> {
    let variants = ChangedVariants::of(settling);
    let uncovered = coverage.update(settling.index, &variants.added, &variants.removed);
    let warnings = collect_warnings(settling, lost, coverage, &uncovered);
    if is_rehearsed {
        settling.undo();
        coverage.update(settling.index, &variants.removed, &variants.added);
    }
    warnings
}

/// Returns warnings about references that dangle because of the accepted edits:
/// those of resources that they write, and those to resources that they remove.
fn collect_reference_warnings(settling: &Settling<'_>, lost: &HashSet<Reference>) -> Vec<Finding> {
    let mut effort = Effort::default();
    let dangling = settling.dangling(lost).take(MOST_FINDINGS);
    let findings = dangling.map(|reference| {
        if lost.contains(&reference.target) {
            Finding::whole(&Arc::default(), reference.still_needed)
        } else {
            settling.index.describe_dangling(&reference, &mut effort)
        }
    });
    findings.collect()
}

/// Collects the warnings about accepted edits, at most [`MOST_FINDINGS`]: those
/// about references, those of the edits themselves, and values that no variant
/// of an uncovered name serves. `lost` has the names that the edits remove and
/// that are referred to; `None` means that references are not checked.
fn collect_warnings(
    settling: &Settling<'_>,
    lost: Option<&HashSet<Reference>>,
    coverage: &Coverage,
    uncovered: &BTreeSet<(TypeUrl, Name)>,
) -> Vec<Finding> {
    let references = lost.map(|lost| collect_reference_warnings(settling, lost));
    let mut warnings = references.unwrap_or_default();
    for (_, edit) in settling.accepted() {
        warnings.extend(edit.warnings.iter().cloned());
    }
    for (type_url, name) in uncovered {
        warnings.extend_from_slice(coverage.of_name(type_url, name));
    }
    warnings.truncate(MOST_FINDINGS);
    warnings
}

/// The variants with constraints that a settlement adds and removes.
struct ChangedVariants {
    added: Vec<TypedResource>,
    removed: Vec<TypedResource>,
}

impl ChangedVariants {
    /// Returns the variants that the accepted edits add and remove.
    fn of(settling: &Settling<'_>) -> Self {
        let added = settling.added_items();
        let added = added.filter(|item| item.resource.constraints.is_some());
        let removed = settling.removed_items();
        let removed = removed.filter(|item| item.resource.constraints.is_some());
        Self {
            added: added
                .map(|item| (item.type_url.clone(), Arc::clone(item.resource)))
                .collect(),
            removed: removed
                .map(|item| (item.type_url.clone(), Arc::clone(&item.resource)))
                .collect(),
        }
    }
}
