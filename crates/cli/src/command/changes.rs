//! The output of `apply` and `delete`.

use bytes::Bytes;
use serde::Deserialize;
use trunkline::TypeUrl;

use super::{parse_body, print};
use crate::client::Detail;
use crate::failure::Result;
use crate::kinds;

/// The effect of a change.
#[derive(Deserialize)]
struct Outcome {
    changed: Vec<Changed>,
    unchanged: usize,
    revision: u64,
    warnings: Vec<Detail>,
    dry_run: bool,
}

/// The effect on one variant of a name.
#[derive(Deserialize)]
struct Changed {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    constraints: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

/// Prints one line for each change in the body of a response, and the number of
/// resources that did not change. The warnings, with their places in `file`, go
/// to standard error.
pub(super) fn print_outcome(body: &Bytes, file: &str) -> Result<()> {
    let outcome: Outcome = parse_body(body)?;
    for warning in &outcome.warnings {
        eprintln!("warning: {}", warning.in_file(file));
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
    print(text.as_bytes())
}

/// Writes the line of a change; `None` if there was no version and is none.
fn change_line(changed: &Changed) -> Option<String> {
    let type_url = TypeUrl::new(&changed.type_url);
    let (kind, name) = (kinds::short(&type_url), &changed.name);
    let variant = match &changed.constraints {
        Some(constraints) => format!(" [{constraints}]"),
        None => String::new(),
    };

    let effect = match (&changed.from, &changed.to) {
        (None, Some(to)) => format!("created {to}"),
        (Some(from), Some(to)) => format!("changed {from} -> {to}"),
        (Some(from), None) => format!("deleted {from}"),
        (None, None) => return None,
    };
    Some(format!("{kind}/{name}{variant} {effect}\n"))
}
