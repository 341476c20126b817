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

/// Prints a line for each revision, the newest first. If the command line names
/// a type or a resource, prints the changes of such resources.
pub(super) fn run(args: &cli::History) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let mut path = format!("/api/v1/history?limit={}", args.limit);
    if let Some(end_revision) = args.before {
        path.push_str(&format!("&before={end_revision}"));
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
        None => revision_table(&revisions),
        Some(_) => change_table(&revisions),
    };
    print(text.as_bytes())
}

/// Parses a type and a name, in one word or in two. Both are `None` without
/// words.
fn read_words(words: &[String]) -> Result<(Option<String>, Option<String>)> {
    let Some(first_word) = words.first() else {
        return Ok((None, None));
    };
    let (kind, name) = kinds::parse_with_name(first_word).map_err(Failure::usage)?;
    let second_word = words.get(1).map(String::as_str);
    if name.is_some() && second_word.is_some() {
        return Err(Failure::usage("give one name: TYPE NAME, or TYPE/NAME"));
    }
    let name = name.or(second_word).map(str::to_owned);
    Ok((Some(kind.to_string()), name))
}

/// Writes a table with a line for each revision.
fn revision_table(revisions: &[Revision]) -> String {
    let mut table = Table::new(&["REVISION", "TIME", "AUTHOR", "ORIGIN", "CHANGES"]);
    for revision in revisions {
        table.add_row([
            revision.revision.to_string(),
            revision.time.clone(),
            printable(&revision.author),
            printable(&revision.origin),
            revision.summary(),
        ]);
    }
    table.to_text()
}

/// Writes a table with a line for each change of each revision.
fn change_table(revisions: &[Revision]) -> String {
    let mut table = Table::new(&["REVISION", "TIME", "AUTHOR", "RESOURCE", "CHANGE"]);
    for revision in revisions {
        for change in &revision.changes {
            table.add_row([
                revision.revision.to_string(),
                revision.time.clone(),
                printable(&revision.author),
                change.label(),
                change.effect().unwrap_or_default(),
            ]);
        }
    }
    table.to_text()
}

impl Revision {
    /// Returns the numbers of changes by effect, and the revision that was
    /// restored. A revision without changes records a lease.
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
