//! `trunkline status`: each client of a server, and bad files. Trouble comes
//! first.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trunkline::TypeUrl;

use super::{print, run_request};
use crate::cli::{self, StatusOutput};
use crate::client::Client;
use crate::color::{Palette, Style};
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output::{self, Table};

/// The statuses of a client, the worst first.
const STATUSES: [&str; 3] = ["NACKED", "STALE", "SYNCED"];

/// Prints the clients of a server that the flags pick, and its bad files; as
/// JSON, all files.
///
/// # Errors
/// With `--check`: something is not in sync.
pub(super) fn run(args: &cli::Status) -> Result<()> {
    let types = args.types.iter().map(|text| kinds::parse(text));
    let types = types.collect::<std::result::Result<Vec<_>, _>>();
    let types = types.map_err(Failure::usage)?;
    let client = Client::new(&args.remote)?;
    let (clients, files) = run_request(async {
        let clients = client.get("/api/v1/status").await?;
        Ok((clients, client.get("/api/v1/files").await?))
    })?;
    let clients = super::parse_list(&clients, "clients")?;
    let clients = pick_clients(clients, &args.nodes, &types);
    let files = super::parse_list(&files, "files")?;

    let text = match args.output {
        StatusOutput::Json => output::to_json(&json!({"clients": clients, "files": files})),
        StatusOutput::Table => {
            let is_filtered = !args.nodes.is_empty() || !types.is_empty();
            summary(&clients, is_filtered)
                + &client_table(&clients)
                + &bad_files(&files)
                + &held_files(&files)
        }
    };
    print(text.as_bytes())?;
    match args.check {
        true => check(&clients, &files, &args.nodes),
        false => Ok(()),
    }
}

/// Picks the clients with one of these node ids, and of them the types; all, if
/// there are none. A client without any of the types is left out. Of the rest,
/// those in trouble come first.
fn pick_clients(mut clients: Vec<Value>, nodes: &[String], types: &[TypeUrl]) -> Vec<Value> {
    let is_node = |client: &Value| nodes.iter().any(|node| client["node"] == node.as_str());
    clients.retain(|client| nodes.is_empty() || is_node(client));
    if !types.is_empty() {
        for client in &mut clients {
            if let Some(states) = client["types"].as_array_mut() {
                let is_type = |state: &Value| types.iter().any(|url| state["type"] == url.as_str());
                states.retain(is_type);
            }
        }
        clients.retain(|client| type_states(client).next().is_some());
    }
    for client in &mut clients {
        if let Some(states) = client["types"].as_array_mut() {
            states.sort_by_key(severity);
        }
    }
    // Stable: clients of the same severity stay in the order of the server.
    clients.sort_by_key(client_severity);
    clients
}

/// Returns the states of a client's types.
fn type_states(client: &Value) -> impl Iterator<Item = &Value> {
    client["types"].as_array().into_iter().flatten()
}

/// Returns the place of a type's status among [`STATUSES`].
fn severity(state: &Value) -> usize {
    let known = STATUSES
        .iter()
        .position(|status| state["status"] == *status);
    known.unwrap_or(STATUSES.len())
}

/// Returns that of the worst type of a client. One without types is in sync: it
/// has asked for nothing.
fn client_severity(client: &Value) -> usize {
    let worst = type_states(client).map(severity).min();
    worst.unwrap_or(STATUSES.len() - 1)
}

/// Writes how many clients there are, and how they are: those in trouble first.
fn summary(clients: &[Value], is_filtered: bool) -> String {
    if clients.is_empty() {
        return match is_filtered {
            true => "no such clients are connected\n".to_owned(),
            false => "no clients are connected\n".to_owned(),
        };
    }
    let count = |severity| {
        let same = clients.iter().map(client_severity);
        same.filter(|other| *other == severity).count()
    };
    let mut parts = Vec::new();
    for (severity, word) in ["nacked", "stale", "in sync"].into_iter().enumerate() {
        match count(severity) {
            0 => {}
            some => parts.push(format!("{some} {word}")),
        }
    }
    let clients = match clients.len() {
        1 => "1 client".to_owned(),
        several => format!("{several} clients"),
    };
    format!("{clients}: {}\n\n", parts.join(", "))
}

/// Checks that all clients are in sync, all `nodes` connected, and all files
/// good.
///
/// # Errors
/// It is not so; the failure counts what is wrong.
fn check(clients: &[Value], files: &[Value], nodes: &[String]) -> Result<()> {
    let is_in_sync = |client: &&Value| STATUSES[client_severity(client).min(2)] == "SYNCED";
    let troubled = clients.len() - clients.iter().filter(is_in_sync).count();
    let connected: BTreeSet<&str> = clients.iter().filter_map(|c| c["node"].as_str()).collect();
    let missing = nodes
        .iter()
        .filter(|node| !connected.contains(node.as_str()));
    let of_status = |status: &str| {
        files
            .iter()
            .filter(|file| file["status"] == *status)
            .count()
    };

    let counts = [
        (troubled, "not in sync", "client"),
        (missing.count(), "not connected", "node"),
        (of_status("BAD"), "bad", "file"),
        (of_status("HELD"), "held", "file"),
    ];
    let wrong = counts.into_iter().filter(|(count, ..)| *count > 0);
    let wrong = wrong.map(|(count, what, noun)| match count {
        1 => format!("1 {noun} is {what}"),
        several => format!("{several} {noun}s are {what}"),
    });
    let wrong: Vec<String> = wrong.collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::wrong(wrong.join(", "))),
    }
}

/// Writes a table with a line for each type of each client; nothing, if there is
/// no client.
fn client_table(clients: &[Value]) -> String {
    if clients.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        "NODE", "STREAM", "TYPE", "STATUS", "SENT", "ACKED", "SUBS", "REASON",
    ]);
    for client in clients {
        for state in type_states(client) {
            table.add_row(type_row(client, state));
        }
    }
    table.paint(|cell| paint_status(cell, Palette::of_stdout()))
}

/// Returns a cell of the table, a status in its colour.
fn paint_status(cell: &str, palette: Palette) -> String {
    let style = match cell {
        "NACKED" => Style::Bad,
        "STALE" => Style::Doubtful,
        "SYNCED" => Style::Good,
        other => return other.to_owned(),
    };
    palette.paint(style, cell)
}

/// Makes the row of a type on the stream of a client.
fn type_row(client: &Value, state: &Value) -> Vec<String> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let type_url = TypeUrl::new(text(state, "type"));
    vec![
        text(client, "node"),
        client["stream"].to_string(),
        kinds::short(&type_url).to_owned(),
        text(state, "status"),
        text(state, "sent_version"),
        text(state, "acked_version"),
        count_subscriptions(state),
        reason(state),
    ]
}

/// Writes the number of subscriptions, of which the wildcard is one: `3`, `*`
/// or `*+2`.
fn count_subscriptions(state: &Value) -> String {
    let count = state["subscriptions"].as_u64().unwrap_or_default();
    match (state["wildcard"] == true, count) {
        (false, names) => names.to_string(),
        (true, 0 | 1) => "*".to_owned(),
        (true, more) => format!("*+{}", more - 1),
    }
}

/// Writes why a client is not in sync: a response that is too large for gRPC
/// clients, or else the error of its NACK, after the names that it rejects.
/// Otherwise the text is empty.
fn reason(state: &Value) -> String {
    if let Some(bytes) = state["oversized_bytes"].as_u64() {
        return format!("a response of {bytes} bytes; gRPC clients take 4194304 by default");
    }
    if state["status"] != "NACKED" {
        return String::new();
    }

    let rejected = state["rejected"].as_array().into_iter().flatten();
    let names: Vec<&str> = rejected.filter_map(|r| r["name"].as_str()).collect();
    let error = state["error"].as_str().unwrap_or_default();
    match names.is_empty() {
        true => error.to_owned(),
        false => format!("{}: {error}", names.join(", ")),
    }
}

/// Writes each bad file with its errors; nothing, if there is none.
fn bad_files(files: &[Value]) -> String {
    let bad = files.iter().filter(|file| file["status"] == "BAD");
    let bad: Vec<&Value> = bad.collect();
    let count = match bad.len() {
        0 => return String::new(),
        1 => "1 file is".to_owned(),
        several => format!("{several} files are"),
    };

    let text = format!("\n{count} bad; the last good contents stay:\n");
    text + &list_files(bad)
}

/// Writes each file whose change is held, with the reason; nothing, if there is
/// none.
fn held_files(files: &[Value]) -> String {
    let held = files.iter().filter(|file| file["status"] == "HELD");
    let held: Vec<&Value> = held.collect();
    match held.is_empty() {
        true => String::new(),
        false => {
            let text = "\nheld until it is confirmed; the contents before it stay:\n".to_owned();
            text + &list_files(held)
        }
    }
}

/// Writes files with their errors.
fn list_files(files: Vec<&Value>) -> String {
    let mut text = String::new();
    for file in files {
        let since = file["since"].as_str().unwrap_or_default();
        let path = file["path"].as_str().unwrap_or_default();
        text.push_str(&format!("{path} (since {since})\n"));
        for error in file["errors"].as_array().into_iter().flatten() {
            text.push_str(&format!("  {}\n", error.as_str().unwrap_or_default()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(node: &str, states: &[(&str, &str)]) -> Value {
        let types = states.iter();
        let types = types.map(|(kind, status)| {
            let type_url = kinds::type_url(kind);
            json!({"type": type_url.as_str(), "status": status})
        });
        json!({"node": node, "stream": 1, "types": types.collect::<Vec<_>>()})
    }

    fn clients() -> Vec<Value> {
        vec![
            client("good", &[("cds", "SYNCED")]),
            client("slow", &[("cds", "SYNCED"), ("eds", "STALE")]),
            client("new", &[]),
            client("bad", &[("lds", "SYNCED"), ("cds", "NACKED")]),
        ]
    }

    #[test]
    fn trouble_comes_first() {
        let picked = pick_clients(clients(), &[], &[]);
        let nodes: Vec<_> = picked.iter().map(|c| c["node"].as_str().unwrap()).collect();
        assert_eq!(nodes, ["bad", "slow", "good", "new"]);
        assert_eq!(picked[0]["types"][0]["status"], "NACKED");
        let line = summary(&picked, false);
        assert_eq!(line, "4 clients: 1 nacked, 1 stale, 2 in sync\n\n");
        let failure = check(&picked, &[], &[]).unwrap_err().to_string();
        assert_eq!(failure, "2 clients are not in sync");
    }

    #[test]
    fn a_status_has_its_colour() {
        let painted = |cell| paint_status(cell, Palette::ALL);
        assert_eq!(painted("NACKED"), "\x1b[1;31mNACKED\x1b[0m");
        assert_eq!(painted("STALE"), "\x1b[1;33mSTALE\x1b[0m");
        assert_eq!(painted("SYNCED"), "\x1b[32mSYNCED\x1b[0m");
        assert_eq!(painted("NODE"), "NODE");
        assert_eq!(paint_status("NACKED", Palette::NONE), "NACKED");
    }

    #[test]
    fn nodes_and_types_are_picked() {
        let (node, types) = ("slow".to_owned(), [kinds::type_url("cds")]);
        let picked = pick_clients(clients(), &[node], &types);
        assert_eq!(summary(&picked, true), "1 client: 1 in sync\n\n");
        assert!(check(&picked, &[], &[]).is_ok());
        let none = pick_clients(clients(), &["gone".to_owned()], &[]);
        assert_eq!(summary(&none, true), "no such clients are connected\n");
    }

    #[test]
    fn a_check_counts_nodes_that_are_missing_and_files() {
        let file = |status: &str| json!({"status": status});
        let files = [file("GOOD"), file("BAD"), file("HELD")];
        let failure = check(&[], &files, &["gone".to_owned()]).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "1 node is not connected, 1 file is bad, 1 file is held"
        );
    }
}
