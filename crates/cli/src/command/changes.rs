//! The output of `apply` and `delete`.

use bytes::Bytes;
use serde::Deserialize;
use trunkline::TypeUrl;

use super::wait::MadeChange;
use super::{parse_body, print};
use crate::client::{Detail, DetailPrinter};
use crate::failure::Result;
use crate::kinds;
use crate::report::{Report, Severity};

/// The effect of a change.
#[derive(Deserialize)]
pub(super) struct Outcome {
    pub(super) changed: Vec<Changed>,
    unchanged: usize,
    revision: u64,
    pub(super) warnings: Vec<Detail>,
    dry_run: bool,
}

/// The effect on one variant of a name.
#[derive(Deserialize)]
pub(super) struct Changed {
    #[serde(rename = "type")]
    pub(super) type_url: String,
    pub(super) name: String,
    pub(super) constraints: Option<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
}

/// Prints one line for each change in the body of a response, and the number of
/// resources that did not change. Warnings go to standard error, where
/// `printer` shows their places. Returns the changes and the revision.
pub(super) fn print_outcome(body: &Bytes, printer: &DetailPrinter<'_>) -> Result<MadeChange> {
    let outcome: Outcome = parse_body(body)?;
    for warning in outcome.warnings {
        eprint!("{}", printer.show(Severity::Warning, warning));
    }

    let mut text: String = outcome.changed.iter().filter_map(change_line).collect();
    if outcome.unchanged > 0 {
        text.push_str(&format!("{} unchanged\n", outcome.unchanged));
    }
    if outcome.dry_run {
        text.push_str("nothing was changed: this was a dry run\n");
    } else if !outcome.changed.is_empty() {
        text.push_str(&format!("revision {}\n", outcome.revision));
    }

    print(text.as_bytes())?;
    Ok(MadeChange {
        revision: outcome.revision,
        changed: Some(outcome.changed),
    })
}

/// Prints the outcome of a change that was not made of a file.
pub(super) fn print_outcome_without_file(body: &Bytes) -> Result<MadeChange> {
    let printer = DetailPrinter {
        report: &Report::new(),
        locate: &|detail| detail.in_file(""),
    };
    print_outcome(body, &printer)
}

/// Writes the line of a change; `None` if there was no version and is none.
fn change_line(changed: &Changed) -> Option<String> {
    Some(format!("{} {}\n", changed.label(), changed.effect()?))
}

impl Changed {
    /// Describes the effect with its versions. Returns `None` if the change has
    /// no version at all.
    pub(super) fn effect(&self) -> Option<String> {
        match (&self.from, &self.to) {
            (None, Some(to)) => Some(format!("created {to}")),
            (Some(from), Some(to)) => Some(format!("changed {from} -> {to}")),
            (Some(from), None) => Some(format!("deleted {from}")),
            (None, None) => None,
        }
    }

    /// Returns the type and the name, and the constraints of the variant if it
    /// has some.
    pub(super) fn label(&self) -> String {
        let type_url = TypeUrl::new(&self.type_url);
        let (kind, name) = (kinds::short(&type_url), &self.name);
        match &self.constraints {
            Some(constraints) => format!("{kind}/{name} [{constraints}]"),
            None => format!("{kind}/{name}"),
        }
    }
}
