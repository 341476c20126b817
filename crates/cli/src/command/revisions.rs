//! `trunkline diff --revision`: how the contents of two revisions differ.

use serde::Deserialize;
use serde_json::Value;

use super::changes::Changed;
use super::{parse_body, print, run_request};
use crate::cli;
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::line_diff::write_diff;
use crate::output;

/// The answer of the server.
#[derive(Deserialize)]
struct Differences {
    changes: Vec<Difference>,
}

#[derive(Deserialize)]
struct Difference {
    #[serde(flatten)]
    changed: Changed,
    before: Option<Value>,
    after: Option<Value>,
}

/// Prints each resource that differs between two revisions, with the lines that
/// differ. Returns whether there is one. Without a second revision, compares
/// with the newest.
pub(super) fn print_differences(args: &cli::Diff, range: &str) -> Result<bool> {
    let invalid_range = || {
        Failure::usage(format!(
            "--revision: expected a revision such as 7, or two such as 7..9, found {range:?}"
        ))
    };
    let (from_text, to_text) = match range.split_once("..") {
        Some((from, to)) => (from, Some(to)),
        None => (range, None),
    };
    let from: u64 = from_text.parse().map_err(|_| invalid_range())?;

    let mut path = format!("/api/v1/diff?from={from}");
    if let Some(to) = to_text {
        let to: u64 = to.parse().map_err(|_| invalid_range())?;
        path.push_str(&format!("&to={to}"));
    }

    let client = Client::new(&args.remote)?;
    let body = run_request(client.get(&path))?;
    let Differences { changes } = parse_body(&body)?;

    let mut text = String::new();
    for change in &changes {
        text.push_str(&describe_difference(change)?);
    }
    print(text.as_bytes())?;
    Ok(!changes.is_empty())
}

/// Describes how a resource differs between two revisions, with the lines that
/// differ.
fn describe_difference(change: &Difference) -> Result<String> {
    let to_yaml = |value: &Option<Value>| match value {
        Some(value) => output::to_yaml(value),
        None => Ok(String::new()),
    };
    let effect = match (&change.before, &change.after) {
        (None, _) => "created",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    };
    let lines = match write_diff(&to_yaml(&change.before)?, &to_yaml(&change.after)?) {
        lines if lines.is_empty() => "  only what is not shown differs, such as a secret\n".into(),
        lines => lines,
    };
    Ok(format!("{} {effect}\n{lines}", change.changed.label()))
}
