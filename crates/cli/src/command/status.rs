//! `trunkline status`: each client of a server, and bad files.

use serde_json::{Value, json};
use trunkline::TypeUrl;

use super::{print, run_request};
use crate::cli::{self, StatusOutput};
use crate::client::Client;
use crate::failure::Result;
use crate::kinds;
use crate::output::{self, Table};

/// Prints the clients of a server, and its bad files; as JSON, all files.
pub(super) fn run(args: &cli::Status) -> Result<()> {
    let client = Client::new(&args.remote)?;
    let (clients, files) = run_request(async {
        let clients = client.get("/api/v1/status").await?;
        Ok((clients, client.get("/api/v1/files").await?))
    })?;
    let clients = super::parse_list(&clients, "clients")?;
    let files = super::parse_list(&files, "files")?;
    let text = match args.output {
        StatusOutput::Json => output::to_json(&json!({"clients": clients, "files": files})),
        StatusOutput::Table => client_table(&clients) + &bad_files(&files) + &held_files(&files),
    };
    print(text.as_bytes())
}

/// Writes a table with a line for each type of each client; a sentence, if
/// there is no client.
fn client_table(clients: &[Value]) -> String {
    if clients.is_empty() {
        return "no clients are connected\n".to_owned();
    }
    let mut table = Table::new(&[
        "NODE", "STREAM", "TYPE", "STATUS", "SENT", "ACKED", "SUBS", "REASON",
    ]);
    for client in clients {
        for state in client["types"].as_array().into_iter().flatten() {
            table.add_row(type_row(client, state));
        }
    }
    table.to_text()
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
