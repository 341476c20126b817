//! `--wait`: waits until the clients of a server have answered all that was
//! sent for a change, and says who has not, or rejects it.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use trunkline::{TypeUrl, kind};

use super::changes::Changed;
use super::{parse_body, print};
use crate::cli::{Wait, WaitFor};
use crate::client::{Client, Opening};
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output::printable;

/// How much longer than the server a command waits: then the connection is
/// lost.
const GRACE: Duration = Duration::from_secs(10);
/// The maximum of clients that are listed for one reason.
const MOST_LISTED: usize = 20;

/// A change that was made.
pub(super) struct MadeChange {
    /// The revision that it made, or that of the contents if it made none.
    pub(super) revision: u64,
    /// What it changed; `None` if that is too much to list.
    pub(super) changed: Option<Vec<Changed>>,
}

/// How far a change has come.
#[derive(Deserialize)]
struct Progress {
    counts: Counts,
    clients: Vec<Waited>,
}

#[derive(Deserialize)]
struct Counts {
    answered: usize,
    awaited: usize,
}

/// A client that is or was awaited.
#[derive(Deserialize)]
struct Waited {
    stream: u64,
    node: String,
    status: String,
    #[serde(default)]
    outstanding: Vec<Outstanding>,
    #[serde(default)]
    withheld: Vec<Resource>,
    #[serde(default)]
    rejected: Vec<Resource>,
}

/// What a client has not answered of one type.
#[derive(Deserialize)]
struct Outstanding {
    #[serde(rename = "type")]
    type_url: String,
    unanswered_ms: Option<u64>,
    names: Vec<String>,
    more: usize,
}

/// A resource that is withheld or rejected.
#[derive(Deserialize)]
struct Resource {
    #[serde(rename = "type")]
    type_url: String,
    name: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    error: String,
}

/// Waits for the clients of a change, and prints their answers. Does nothing
/// without `--wait`.
///
/// # Errors
/// A client rejects a resource of the change or has not answered in time, or
/// the server is lost.
pub(super) async fn wait_for_clients(
    client: &Client,
    args: &Wait,
    change: MadeChange,
) -> Result<()> {
    let Some(awaited) = args.wait else {
        return Ok(());
    };
    let body = request_progress(client, args, awaited, &change).await?;
    let progress: Progress = parse_body(&body)?;
    let report = Report {
        progress,
        change,
        awaited,
        timeout: args.timeout,
    };
    print(report.progress_text().as_bytes())?;
    report.check_answers()
}

/// Returns the path of the request for the progress of a change. Without a list
/// of changes, the contents may be from an earlier change, so all clients count.
fn progress_path(args: &Wait, awaited: WaitFor, change: &MadeChange) -> String {
    let changes = change.changed.as_ref();
    let is_listed = changes.is_some_and(|changes| !changes.is_empty());
    let mut path = format!(
        "/api/v1/wait?revision={}&timeout={}ms",
        change.revision,
        args.timeout.as_millis()
    );
    for (is_set, name) in [
        (!is_listed, "all"),
        (awaited == WaitFor::Removals, "removals"),
    ] {
        if is_set {
            path.push_str(&format!("&{name}=true"));
        }
    }
    path
}

/// Reads the response with the progress of a change to its end.
async fn read_progress(client: &Client, path: &str) -> Result<Bytes> {
    let mut response = match client.open(path).await? {
        Opening::Open(response) => response,
        Opening::Refused(_, failure) => return Err(failure),
    };
    let mut body = Vec::new();
    while let Some(chunk) = response.next_chunk().await {
        body.extend_from_slice(&chunk);
    }
    Ok(Bytes::from(body))
}

/// Requests the progress of a change. The server responds when all clients have
/// answered or the time is over.
///
/// # Errors
/// The server is lost, or was started again and does not know the revision.
async fn request_progress(
    client: &Client,
    args: &Wait,
    awaited: WaitFor,
    change: &MadeChange,
) -> Result<Bytes> {
    let path = progress_path(args, awaited, change);
    let exchange = tokio::time::timeout(args.timeout + GRACE, read_progress(client, &path));
    let result = exchange
        .await
        .unwrap_or_else(|_| Err(Failure::unreachable("the server has stopped responding")));
    result.map_err(|failure| {
        Failure::unreachable(format!(
            "the change was made (revision {}), but whether clients have it is not known: {failure}",
            change.revision
        ))
    })
}

/// What is printed of a change.
struct Report {
    progress: Progress,
    change: MadeChange,
    awaited: WaitFor,
    timeout: Duration,
}

impl Report {
    /// Writes the number of clients that have the change, the clients that
    /// disconnected, and the removals that are withheld.
    fn progress_text(&self) -> String {
        let disconnected = self.with_status("DISCONNECTED");
        let disconnected = disconnected
            .map(|client| format!("{} disconnected before it answered", client.label()));
        let withheld = self.progress.clients.iter().flat_map(|client| {
            let withheld = client
                .withheld
                .iter()
                .filter(|resource| self.deletes(resource));
            withheld.map(|resource| {
                format!(
                    "{} keeps {} as long as it may use it: its removal is withheld",
                    client.label(),
                    resource.label()
                )
            })
        });

        let mut text =
            indent_lines(disconnected.collect(), "") + &indent_lines(withheld.collect(), "");
        let Counts { answered, awaited } = self.progress.counts;
        if awaited == 0 && self.rejections().is_empty() {
            text.push_str(&match answered {
                0 if text.is_empty() => "no client is connected that it concerns\n".to_owned(),
                0 => "no client is left that it concerns\n".to_owned(),
                1 => "1 client has it\n".to_owned(),
                count => format!("all {count} clients have it\n"),
            });
        }
        text
    }

    /// Checks the answers of the clients.
    ///
    /// # Errors
    /// A client rejects a resource of the change, or has not answered.
    fn check_answers(&self) -> Result<()> {
        let rejections = self.rejections();
        let Counts { answered, awaited } = self.progress.counts;
        let mut text = String::new();
        if !rejections.is_empty() {
            text.push_str("rejected; the clients keep what they had:\n");
            text.push_str(&indent_lines(rejections.clone(), "  "));
        }

        if awaited > 0 {
            let lines = self.with_status("AWAITED").map(Waited::describe);
            text.push_str(&format!(
                "{awaited} of {} clients {} not answered in {}s; the change stays:\n{}",
                awaited + answered,
                if awaited == 1 { "has" } else { "have" },
                self.timeout.as_secs_f64(),
                indent_lines(lines.collect(), "  ")
            ));
        }

        let text = text.trim_end();
        match (rejections.is_empty(), awaited) {
            (true, 0) => Ok(()),
            (true, _) => Err(Failure::timed_out(text)),
            (false, _) => Err(Failure::wrong(text)),
        }
    }

    /// Returns the clients that have a status.
    fn with_status(&self, status: &str) -> impl Iterator<Item = &Waited> {
        let clients = self.progress.clients.iter();
        clients.filter(move |client| client.status == status)
    }

    /// Returns a line for each resource of the change that a client rejects. If
    /// the changes are not listed, every rejected resource counts. A virtual
    /// host may have another name and version for each client, so every
    /// rejected one counts if the change has virtual hosts.
    fn rejections(&self) -> Vec<String> {
        let changes = self.changed().iter();
        let changes: HashSet<_> = changes
            .map(|change| (&change.type_url, &change.name, change.to.as_ref()))
            .collect();
        let changes_hosts = changes.iter().any(|(type_url, ..)| *type_url == kind::VHDS);
        let is_of_change = |resource: &&Resource| {
            changes.is_empty()
                || changes.contains(&(&resource.type_url, &resource.name, Some(&resource.version)))
                || (changes_hosts && resource.type_url == kind::VHDS)
        };
        let lines = self.progress.clients.iter().flat_map(|client| {
            let rejected = client.rejected.iter().filter(is_of_change);
            rejected.map(|resource| {
                let error = printable(&resource.error);
                format!("{} {}: {error}", client.label(), resource.label())
            })
        });
        lines.collect()
    }

    /// Returns whether the change deletes a resource. Returns `true` for every
    /// resource if the changes are not listed, or `--wait` asks for all
    /// removals.
    fn deletes(&self, resource: &Resource) -> bool {
        let mut changes = self.changed().iter();
        self.awaited == WaitFor::Removals
            || self.changed().is_empty()
            || changes.any(|change| {
                (&change.type_url, &change.name) == (&resource.type_url, &resource.name)
                    && change.to.is_none()
            })
    }

    /// Returns what was changed; nothing, if that is not listed.
    fn changed(&self) -> &[Changed] {
        self.change.changed.as_deref().unwrap_or_default()
    }
}

impl Waited {
    /// Writes the node and the stream of the client.
    fn label(&self) -> String {
        format!("{} (stream {})", printable(&self.node), self.stream)
    }

    /// Describes what the client has not answered; without such, the removals
    /// that it withholds.
    fn describe(&self) -> String {
        let mut parts: Vec<String> = self.outstanding.iter().map(Outstanding::describe).collect();
        if parts.is_empty() {
            let withheld = self.withheld.iter().map(Resource::label);
            let withheld: Vec<String> = withheld.collect();
            parts.push(format!(
                "the removal of {} is withheld",
                withheld.join(", ")
            ));
        }
        format!("{}: {}", self.label(), parts.join("; "))
    }
}

impl Outstanding {
    /// Describes the type and the names, and the time since they were sent.
    fn describe(&self) -> String {
        let kind = short(&self.type_url);
        let mut names = self.names.iter().map(|name| printable(name));
        let mut names: Vec<String> = names.by_ref().collect();
        if self.more > 0 {
            names.push(format!("{} more", self.more));
        }
        let names = match names.is_empty() {
            true => String::new(),
            false => format!(" {}", names.join(", ")),
        };
        match self.unanswered_ms {
            Some(ms) => format!("{kind}{names} sent {:.1}s ago", ms as f64 / 1000.0),
            None => format!("{kind}{names} not sent yet"),
        }
    }
}

impl Resource {
    /// Writes the type and the name, such as `cds/backend`.
    fn label(&self) -> String {
        format!("{}/{}", short(&self.type_url), printable(&self.name))
    }
}

/// Returns the short name of a type.
fn short(type_url: &str) -> String {
    kinds::short(&TypeUrl::new(type_url)).to_owned()
}

/// Writes lines with an indentation, at most [`MOST_LISTED`] of them.
fn indent_lines(lines: Vec<String>, indent: &str) -> String {
    let hidden_count = lines.len().saturating_sub(MOST_LISTED);
    let shown = lines.iter().take(MOST_LISTED);
    let mut text: String = shown.map(|line| format!("{indent}{line}\n")).collect();
    if hidden_count > 0 {
        text.push_str(&format!("{indent}and {hidden_count} more\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(clients: serde_json::Value, answered: usize) -> Report {
        let counts = json!({"answered": answered, "awaited": 0});
        let progress = json!({"counts": counts, "clients": clients});
        let changed = json!({"type": kind::CDS, "name": "backend", "to": "2"});
        Report {
            progress: serde_json::from_value(progress).unwrap(),
            change: MadeChange {
                revision: 1,
                changed: Some(vec![serde_json::from_value(changed).unwrap()]),
            },
            awaited: WaitFor::Answers,
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_client_that_is_gone_is_named_and_not_waited_for() {
        let gone = json!([{"stream": 4, "node": "n", "status": "DISCONNECTED"}]);
        let said = "n (stream 4) disconnected before it answered\n";
        let alone = report(gone.clone(), 0);
        let expected = format!("{said}no client is left that it concerns\n");
        assert_eq!(alone.progress_text(), expected);
        assert!(alone.check_answers().is_ok());
        let others = report(gone, 2).progress_text();
        assert_eq!(others, format!("{said}all 2 clients have it\n"));
    }

    #[test]
    fn another_version_that_a_client_rejects_is_not_of_the_change() {
        let rejects = |version: &str| {
            let rejected =
                json!({"type": kind::CDS, "name": "backend", "version": version, "error": "no"});
            let client = json!({"stream": 1, "node": "n", "status": "ANSWERED",
                "rejected": [rejected]});
            report(json!([client]), 1).check_answers()
        };
        assert!(rejects("1").is_ok());
        let failure = rejects("2").unwrap_err().to_string();
        let expected = "rejected; the clients keep what they had:\n  n (stream 1) cds/backend: no";
        assert_eq!(failure, expected);
    }
}
