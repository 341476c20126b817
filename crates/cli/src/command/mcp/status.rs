//! `trunkline mcp status`: the sinks of a source, or the collections of a
//! control plane. Trouble is shown with its reason.

use serde_json::Value;

use super::super::{parse_body, print, run_request};
use crate::cli;
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::output::{self, Table};

/// Prints the status of a source or of a sink.
///
/// # Errors
/// The server cannot be reached, or is neither.
pub(super) fn run(args: &cli::McpStatus) -> Result<()> {
    let client = Client::new(&args.remote)?;
    let body = run_request(client.get("/api/v1/mcp"))?;
    let status: Value = parse_body(&body)?;
    if status.is_null() {
        return Err(Failure::wrong(
            "this server is no source and no sink; the admin address of `mcp source` is that of \
             its --admin",
        ));
    }
    let text = match args.json {
        true => output::to_json(&status),
        false => show(&status),
    };
    print(text.as_bytes())
}

/// Writes a status as tables.
fn show(status: &Value) -> String {
    match status["role"].as_str() {
        Some("source") => show_source(status),
        _ => show_sink(status),
    }
}

/// Returns the items of a list in a status; none if there is no such list.
fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// Returns a text in a status; empty if there is none.
fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// Writes the collections of a source, its roll-out, and its sinks: a row for each,
/// or one for each collection that a sink rejects.
fn show_source(status: &Value) -> String {
    let mut collections = Table::new(&["COLLECTION", "RESOURCES"]);
    for entry in list(status, "collections") {
        collections.add_row(vec![
            text(entry, "collection"),
            entry["resources"].to_string(),
        ]);
    }

    let has_sinks = list(status, "sinks").next().is_some();
    let sinks = match has_sinks {
        true => sink_table(status).paint(str::to_owned),
        false => "no sinks are connected\n".to_owned(),
    };
    let rollout = show_rollout(&status["rollout"]);
    format!("{}\n{rollout}{sinks}", collections.paint(str::to_owned))
}

/// Makes the table of the sinks of a source. A sink that rejects nothing has one
/// row, with the collections that it is yet to accept; another has a row for
/// each collection that it rejects.
fn sink_table(status: &Value) -> Table {
    let mut sinks = Table::new(&["SINK", "ADDRESS", "STATUS", "COLLECTION", "REASON"]);
    for sink in list(status, "sinks") {
        let row = |collection: String, reason: String| {
            let status = text(sink, "status");
            vec![
                text(sink, "node"),
                text(sink, "address"),
                status,
                collection,
                reason,
            ]
        };

        let mut rejected = list(sink, "rejected").peekable();
        if rejected.peek().is_none() {
            let pending: Vec<String> = list(sink, "pending")
                .filter_map(|name| Some(name.as_str()?.to_owned()))
                .collect();
            sinks.add_row(row(pending.join(","), String::new()));
        }
        for entry in rejected {
            sinks.add_row(row(text(entry, "collection"), text(entry, "error")));
        }
    }
    sinks
}

/// Writes how far the newest contents are; nothing without canaries.
fn show_rollout(rollout: &Value) -> String {
    let line = match rollout["stage"].as_str() {
        None => return String::new(),
        Some("PROMOTED") => "promoted: every sink gets the newest contents".to_owned(),
        Some("SOAKING") => format!(
            "soaking: canaries have taken the newest contents, others get them in {}s",
            rollout["left_seconds"]
        ),
        Some("STOPPED") => format!(
            "stopped: {} rejects the newest contents, which go to no other sink: {}",
            text(rollout, "canary"),
            text(rollout, "error")
        ),
        Some(_) if rollout["canaries"] == 0 => {
            "waiting for a canary: none is connected, so no other sink gets the newest contents"
                .to_owned()
        }
        Some(_) => "on canaries: they have yet to take the newest contents".to_owned(),
    };
    format!("{line}\n\n")
}

/// Writes the source of a sink, and its collections.
fn show_sink(status: &Value) -> String {
    let source = match status["source"].as_str() {
        Some(source) => format!("source {source}\n\n"),
        None => "no source is connected\n\n".to_owned(),
    };
    source + &collections_table(list(status, "collections"))
}

/// Writes the collections of a sink.
fn collections_table<'a>(collections: impl Iterator<Item = &'a Value>) -> String {
    let mut table = Table::new(&["COLLECTION", "STATUS", "RESOURCES", "REASON"]);
    for entry in collections {
        let errors: Vec<&str> = list(entry, "errors").filter_map(Value::as_str).collect();
        table.add_row(vec![
            text(entry, "collection"),
            text(entry, "status"),
            entry["resources"].to_string(),
            errors.join("; "),
        ]);
    }
    table.paint(str::to_owned)
}
