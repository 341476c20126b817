//! `trunkline history`: who changed what, and when.

use serde::Deserialize;

use super::changes::Changed;
use super::{encode_url, parse_body, print, run_request};
use crate::cli;
use crate::client::Client;
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output::{Table, printable};

/// The answer of the server.
#[derive(Deserialize)]
struct List {
    revisions: Vec<Revision>,
}

#[derive(Deserialize)]
struct Revision {
    revision: u64,
    time: String,
    author: String,
    origin: String,
    restores: Option<u64>,
    created: u64,
    changed: u64,
    deleted: u64,
    #[serde(default)]
    changes: Vec<Changed>,
}

/// Prints a line for each revision, newest first; of one resource, its versions
/// as well.
pub(super) fn run(args: &cli::History) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let mut path = format!("/api/v1/history?limit={}", args.limit);
    if let Some(before) = args.before {
        path.push_str(&format!("&before={before}"));
    }
    let (kind, name) = read_words(&args.words)?;
    if let Some(kind) = &kind {
        path.push_str(&format!("&type={}", encode_url(kind)));
    }
    if let Some(name) = name {
        path.push_str(&format!("&name={}", encode_url(&name)));
    }
    let client = Client::new(&args.remote)?;
    let body = run_request(client.get(&path))?;
    let List { revisions } = parse_body(&body)?;
    let text = match kind {
        None => list(&revisions),
        Some(_) => list_changes(&revisions),
    };
    print(text.as_bytes())
}

/// Reads a type and a name, in one word or in two.
fn read_words(words: &[String]) -> Result<(Option<String>, Option<String>)> {
    let Some(first) = words.first() else {
        return Ok((None, None));
    };
    let (kind, name) = kinds::parse_with_name(first).map_err(Failure::usage)?;
    let second = words.get(1).map(String::as_str);
    if name.is_some() && second.is_some() {
        return Err(Failure::usage("give one name: TYPE NAME, or TYPE/NAME"));
    }
    let name = name.or(second).map(str::to_owned);
    Ok((Some(kind.to_string()), name))
}

fn list(revisions: &[Revision]) -> String {
    let mut table = Table::new(&["REVISION", "TIME", "AUTHOR", "ORIGIN", "CHANGES"]);
    for it in revisions {
        table.add_row([
            it.revision.to_string(),
            it.time.clone(),
            printable(&it.author),
            printable(&it.origin),
            it.summary(),
        ]);
    }
    table.to_text()
}

fn list_changes(revisions: &[Revision]) -> String {
    let mut table = Table::new(&["REVISION", "TIME", "AUTHOR", "RESOURCE", "CHANGE"]);
    for it in revisions {
        for change in &it.changes {
            table.add_row([
                it.revision.to_string(),
                it.time.clone(),
                printable(&it.author),
                change.label(),
                change.effect().unwrap_or_default(),
            ]);
        }
    }
    table.to_text()
}

impl Revision {
    /// Writes the number of each kind of change.
    fn summary(&self) -> String {
        let counts = [
            (self.created, "created"),
            (self.changed, "changed"),
            (self.deleted, "deleted"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<String> = counts
            .map(|(count, kind)| format!("{count} {kind}"))
            .collect();
        if let Some(revision) = self.restores {
            parts.push(format!("as of revision {revision}"));
        }
        match parts.is_empty() {
            true => "lease".to_owned(),
            false => parts.join(", "),
        }
    }
}
