//! `trunkline status`: each client of a server, and bad files. Trouble comes
//! first. With `--envoy-admin`, one client compared with its Envoy.

mod proxy;
mod table;
mod watch;

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde_json::{Value, json};
use trunkline::TypeUrl;

use self::proxy::ProxyRequest;
use super::{print, run_request};
use crate::cli::{self, StatusOutput};
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output;

/// The statuses of a client, the worst first.
const STATUSES: [&str; 3] = ["NACKED", "STALE", "SYNCED"];

/// Prints the selected clients of a server, and the files that are bad or held;
/// as JSON, all files. With `--watch`, prints them again and again; with
/// `--envoy-admin`, prints the comparison of one client with its Envoy.
///
/// # Errors
/// With `--check`: a client, a file or a collection is not in sync.
pub(super) fn run(args: &cli::Status) -> Result<ExitCode> {
    let types = args.types.iter().map(|text| kinds::parse(text));
    let types = types.collect::<std::result::Result<Vec<_>, _>>();
    let request = StatusRequest {
        args,
        nodes: args.node_ids(),
        types: types.map_err(Failure::usage)?,
        client: Client::new(&args.remote)?,
    };
    match &args.envoy_admin {
        Some(envoy) => proxy::run(&request.proxy_request(envoy)?),
        None => show_clients(&request).map(|()| ExitCode::SUCCESS),
    }
}

/// Prints the clients; with `--check`, also checks them.
fn show_clients(request: &StatusRequest<'_>) -> Result<()> {
    if request.args.watch {
        return run_request(watch::run(request));
    }
    let status = run_request(request.fetch_status())?;
    print(request.format_status(&status).as_bytes())?;
    match request.args.check {
        true => check_sync(&status, &request.nodes),
        false => Ok(()),
    }
}

/// What is asked of a server.
struct StatusRequest<'a> {
    args: &'a cli::Status,
    nodes: Vec<String>,
    types: Vec<TypeUrl>,
    client: Client,
}

/// The clients of a server that were picked, and its files.
#[derive(Clone, Debug, PartialEq)]
struct Status {
    clients: Vec<Value>,
    files: Vec<Value>,
    /// Its role in the Mesh Configuration Protocol; null, if it has none.
    mcp: Value,
}

impl StatusRequest<'_> {
    /// Fetches the status of clients, files and collections.
    async fn fetch_status(&self) -> Result<Status> {
        let clients = self.client.get("/api/v1/status").await?;
        let clients = super::parse_list(&clients, "clients")?;
        let files = self.client.get("/api/v1/files").await?;
        let mcp = self.client.get("/api/v1/mcp").await?;
        Ok(Status {
            mcp: super::parse_body(&mcp)?,
            clients: pick_clients(clients, &self.nodes, &self.types),
            files: super::parse_list(&files, "files")?,
        })
    }

    /// Makes the request for the comparison with an Envoy.
    ///
    /// # Errors
    /// The command line does not name exactly one node.
    fn proxy_request<'b>(&'b self, envoy: &'b str) -> Result<ProxyRequest<'b>> {
        let [node] = &self.nodes[..] else {
            return Err(Failure::usage(
                "--envoy-admin compares one client; name its node, as in `trunkline status \
                 sidecar-7 --envoy-admin 127.0.0.1:9901`",
            ));
        };
        Ok(ProxyRequest {
            node,
            envoy,
            types: &self.types,
            client: &self.client,
            output: self.args.output,
        })
    }

    /// Formats a status as a table or as JSON.
    fn format_status(&self, status: &Status) -> String {
        let Status {
            clients,
            files,
            mcp,
        } = status;
        match self.args.output {
            StatusOutput::Json => {
                output::to_json(&json!({"clients": clients, "files": files, "mcp": mcp}))
            }
            StatusOutput::Table => {
                let is_filtered = !self.nodes.is_empty() || !self.types.is_empty();
                summary(clients, is_filtered)
                    + &table::client_table(clients)
                    + &table::bad_file_text(files)
                    + &table::held_file_text(files)
                    + &table::rejected_collections_text(mcp)
            }
        }
    }
}

/// Selects the clients with one of these node ids, and of them the states of
/// these types. An empty list selects all. A client without any of the types is
/// left out. The order is by severity, the worst first.
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
    // The sort is stable: within a severity, the order is the server's.
    clients.sort_by_key(client_severity);
    clients
}

/// Returns the states of a client's types.
fn type_states(client: &Value) -> impl Iterator<Item = &Value> {
    client["types"].as_array().into_iter().flatten()
}

/// Returns the index of a type's status in [`STATUSES`], the worst first; the
/// length of the list for an unknown status.
fn severity(state: &Value) -> usize {
    let index = STATUSES
        .iter()
        .position(|status| state["status"] == *status);
    index.unwrap_or(STATUSES.len())
}

/// Returns the severity of the worst type of a client. A client without types is
/// in sync: it has asked for nothing.
fn client_severity(client: &Value) -> usize {
    let worst_severity = type_states(client).map(severity).min();
    worst_severity.unwrap_or(STATUSES.len() - 1)
}

/// Returns the number of clients, and of those the numbers that are NACKed,
/// stale and in sync.
fn summary(clients: &[Value], is_filtered: bool) -> String {
    if clients.is_empty() {
        return match is_filtered {
            true => "no such clients are connected\n".to_owned(),
            false => "no clients are connected\n".to_owned(),
        };
    }

    let count = |severity| {
        let severities = clients.iter().map(client_severity);
        severities
            .filter(|client_severity| *client_severity == severity)
            .count()
    };

    let mut parts = Vec::new();
    for (severity, word) in ["nacked", "stale", "in sync"].into_iter().enumerate() {
        match count(severity) {
            0 => {}
            number => parts.push(format!("{number} {word}")),
        }
    }
    let total = match clients.len() {
        1 => "1 client".to_owned(),
        number => format!("{number} clients"),
    };
    format!("{total}: {}\n\n", parts.join(", "))
}

/// Checks that all clients are in sync, all `nodes` connected, all files good,
/// and no collection rejected.
///
/// # Errors
/// One of these does not hold. The failure has the number of each kind of
/// trouble.
fn check_sync(status: &Status, nodes: &[String]) -> Result<()> {
    let Status {
        clients,
        files,
        mcp,
    } = status;
    let is_in_sync = |client: &&Value| STATUSES[client_severity(client).min(2)] == "SYNCED";
    let unsynced_count = clients.len() - clients.iter().filter(is_in_sync).count();
    let node_ids = clients.iter().filter_map(|client| client["node"].as_str());
    let connected_nodes: BTreeSet<&str> = node_ids.collect();
    let is_missing = |node: &&String| !connected_nodes.contains(node.as_str());
    let missing_count = nodes.iter().filter(is_missing).count();

    let count_files = |status: &str| {
        let files = files.iter();
        files.filter(|file| file["status"] == *status).count()
    };
    let rejection_count = table::collection_rejections(mcp).count();

    let counts = [
        (unsynced_count, "not in sync", "client"),
        (missing_count, "not connected", "node"),
        (count_files("BAD"), "bad", "file"),
        (count_files("HELD"), "held", "file"),
        (rejection_count, "rejected", "collection"),
    ];
    let problems = counts.into_iter().filter(|(count, ..)| *count > 0);
    let problems = problems.map(|(count, condition, noun)| match count {
        1 => format!("1 {noun} is {condition}"),
        number => format!("{number} {noun}s are {condition}"),
    });

    let problems: Vec<String> = problems.collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::wrong(problems.join(", "))),
    }
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

    fn status_of(clients: Vec<Value>, files: Vec<Value>) -> Status {
        Status {
            clients,
            files,
            mcp: Value::Null,
        }
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
        let status = status_of(picked, Vec::new());
        let failure = check_sync(&status, &[]).unwrap_err().to_string();
        assert_eq!(failure, "2 clients are not in sync");
    }

    #[test]
    fn nodes_and_types_are_picked() {
        let (node, types) = ("slow".to_owned(), [kinds::type_url("cds")]);
        let picked = pick_clients(clients(), &[node], &types);
        assert_eq!(summary(&picked, true), "1 client: 1 in sync\n\n");
        assert!(check_sync(&status_of(picked, Vec::new()), &[]).is_ok());
        let none = pick_clients(clients(), &["gone".to_owned()], &[]);
        assert_eq!(summary(&none, true), "no such clients are connected\n");
    }

    #[test]
    fn a_check_counts_nodes_that_are_missing_and_files() {
        let file = |status: &str| json!({"status": status});
        let files = [file("GOOD"), file("BAD"), file("HELD")];
        let mut status = status_of(Vec::new(), files.to_vec());
        status.mcp = json!({"role": "sink", "collections": [
            {"collection": "a/b", "status": "NACKED", "errors": ["ns/a: name: needed"]},
            {"collection": "a/c", "status": "SYNCED", "errors": []},
        ]});
        let failure = check_sync(&status, &["gone".to_owned()]).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "1 node is not connected, 1 file is bad, 1 file is held, 1 collection is rejected"
        );
        let expected = "\n1 collection is rejected; its last good state stays:\n\
                        a/b\n  ns/a: name: needed\n";
        assert_eq!(table::rejected_collections_text(&status.mcp), expected);
    }
}
