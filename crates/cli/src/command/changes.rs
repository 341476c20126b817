//! The output of `apply` and `delete`.

use bytes::Bytes;
use serde::Deserialize;
use trunkline::TypeUrl;

use super::print;
use crate::client::Detail;
use crate::failure::{Failure, Result};
use crate::kinds;

#[derive(Deserialize)]
struct Outcome {
    changed: Vec<One>,
    unchanged: usize,
    warnings: Vec<Detail>,
    dry_run: bool,
}

#[derive(Deserialize)]
struct One {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    constraints: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

/// Prints one line for each change; warnings go to standard error.
pub(super) fn show(answer: &Bytes, file: &str) -> Result<()> {
    let outcome: Outcome = serde_json::from_slice(answer)
        .map_err(|error| Failure::wrong(format!("the answer is not understood: {error}")))?;
    for warning in &outcome.warnings {
        eprintln!("warning: {}", warning.in_file(file));
    }
    let mut text = String::new();
    for one in &outcome.changed {
        let type_url = TypeUrl::new(&one.type_url);
        let (kind, name) = (kinds::short(&type_url), &one.name);
        let variant = match &one.constraints {
            Some(constraints) => format!(" [{constraints}]"),
            None => String::new(),
        };
        let what = match (&one.from, &one.to) {
            (None, Some(to)) => format!("created {to}"),
            (Some(from), Some(to)) => format!("changed {from} -> {to}"),
            (Some(from), None) => format!("deleted {from}"),
            (None, None) => continue,
        };
        text.push_str(&format!("{kind}/{name}{variant} {what}\n"));
    }
    if outcome.unchanged > 0 {
        text.push_str(&format!("{} unchanged\n", outcome.unchanged));
    }
    if outcome.dry_run {
        text.push_str("nothing was changed: this was a dry run\n");
    }
    print(text.as_bytes())
}
