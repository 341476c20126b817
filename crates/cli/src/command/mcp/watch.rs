//! `trunkline mcp watch`: what a source sends, as a sink that accepts all of it
//! sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use trunkline::mcp::{
    Delivery, McpResource, McpSink, Rejected, SinkNode, SinkOptions, Verdict, Wire, read_resource,
};
use trunkline::{Change, Name, TypeUrl, Version};
use trunkline_proto::{redact, text};

use crate::cli::{self, McpOutput};
use crate::failure::{Failure, Result};
use crate::settings::{parse_collection, parse_pair};

/// Prints what the source sends: until it is stopped, or with `--once` until
/// each collection has come.
///
/// # Errors
/// A flag is wrong; or with `--once`, a collection has not come in time.
pub(super) fn run(args: &cli::McpWatch) -> Result<()> {
    let collections = args.collections.iter().map(|word| parse_collection(word));
    let annotations = args.annotations.iter().map(|text| {
        let pair = parse_pair(text);
        pair.map_err(|bad| Failure::usage(format!("--annotation: {bad}")))
    });
    let options = SinkOptions {
        node: SinkNode {
            id: args.node.clone(),
            annotations: annotations.collect::<Result<_>>()?,
        },
        incremental: args.incremental,
        wire: match (args.xds, args.incremental) {
            (false, _) => Wire::Mcp,
            (true, false) => Wire::Xds,
            (true, true) => Wire::DeltaXds,
        },
        ..SinkOptions::of("", collections)
    };
    super::super::run_request(watch(args, options))
}

async fn watch(args: &cli::McpWatch, options: SinkOptions) -> Result<()> {
    let awaited: BTreeSet<TypeUrl> = options.collections.iter().cloned().collect();
    let (tell, mut told) = mpsc::channel(1);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let output = args.output;
    let sink = McpSink::new(options, move |delivery: Delivery| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let collection = delivery.collection.clone();
        let verdict = match seen.record(delivery, output) {
            Ok(lines) => match super::super::print(lines.as_bytes()) {
                Ok(()) => Verdict::Accept,
                Err(failure) => Verdict::Reject(vec![Rejected {
                    name: None,
                    reason: failure.to_string(),
                }]),
            },
            Err(rejected) => Verdict::Reject(vec![rejected]),
        };
        // It is full, or nobody waits.
        let _ = tell.try_send(collection);
        verdict
    });
    let certificate = args.tls_cert.as_ref().zip(args.tls_key.as_ref());
    let source = args.server.control_plane(args.tls_ca.as_ref(), certificate);
    let dialling = sink.clone().dial(source);
    if !args.once {
        dialling.await;
        return Ok(());
    }

    let all = async {
        let has_all = || {
            let status = sink.status();
            awaited
                .iter()
                .all(|name| status.collections[name].accepted > 0)
        };
        while !has_all() {
            // An ACK follows the line at once, but not in the same moment.
            let wait = std::time::Duration::from_millis(20);
            let _ = tokio::time::timeout(wait, told.recv()).await;
        }
    };
    tokio::select! {
        () = dialling => Ok(()),
        done = tokio::time::timeout(args.timeout, all) => done.map_err(|_| {
            let status = sink.status();
            let missing = awaited.iter().filter(|name| status.collections[*name].accepted == 0);
            let missing: Vec<&str> = missing.map(TypeUrl::as_str).collect();
            Failure::unreachable(format!(
                "{} sent nothing of {} in time; --server is the address of a source",
                args.server,
                missing.join(", ")
            ))
        }),
    }
}

/// The versions of all resources that were seen: of a full state, only what is
/// different is told.
#[derive(Debug, Default)]
struct Seen {
    versions: BTreeMap<TypeUrl, BTreeMap<Name, Version>>,
}

impl Seen {
    /// Records the versions of a delivery, and returns a line for each resource
    /// that it changes. A first delivery without resources has a line, too.
    ///
    /// # Errors
    /// A resource cannot be shown. Then the delivery is rejected.
    fn record(
        &mut self,
        delivery: Delivery,
        output: McpOutput,
    ) -> std::result::Result<String, Rejected> {
        let is_first = !self.versions.contains_key(&delivery.collection);
        let known = self
            .versions
            .entry(delivery.collection.clone())
            .or_default();
        let collection = delivery.collection.as_str();
        let mut lines = String::new();
        let mut upsert = |known: &mut BTreeMap<Name, Version>, resource: &trunkline::Resource| {
            let before = known.insert(resource.name.clone(), resource.version.clone());
            let word = match before {
                Some(before) if before == resource.version => return Ok(()),
                Some(_) => "changed",
                None => "added",
            };
            let line = show(collection, word, resource, output)?;
            lines.push_str(&line);
            Ok(())
        };
        let mut gone = Vec::new();
        for change in &delivery.changes {
            match change {
                Change::ReplaceAll(_, all) => {
                    let listed: BTreeSet<&Name> = all.iter().map(|one| &one.name).collect();
                    let left = known.keys().filter(|name| !listed.contains(name));
                    gone.extend(left.cloned());
                    for resource in all {
                        upsert(known, resource)?;
                    }
                }
                Change::Upsert(_, resource) => upsert(known, resource)?,
                Change::Remove(_, name) => gone.push(name.clone()),
                _ => {}
            }
        }
        for name in gone {
            if known.remove(&name).is_some() {
                lines.push_str(&line(collection, "removed", name.as_str(), "", output));
            }
        }
        if is_first && known.is_empty() {
            lines.push_str(&line(collection, "empty", "", "", output));
        }
        Ok(lines)
    }
}

/// Writes a line about a name.
fn line(collection: &str, word: &str, name: &str, version: &str, output: McpOutput) -> String {
    match output {
        McpOutput::Table => {
            let version = match version {
                "" => String::new(),
                version => format!(" version {version}"),
            };
            let space = if name.is_empty() { "" } else { " " };
            format!("{word} {collection}{space}{name}{version}\n")
        }
        McpOutput::Json => {
            let shown = json!({"event": word, "collection": collection, "name": name});
            format!("{shown}\n")
        }
    }
}

/// Writes a line about a resource; as JSON with its metadata and its contents,
/// without secrets.
fn show(
    collection: &str,
    word: &str,
    resource: &trunkline::Resource,
    output: McpOutput,
) -> std::result::Result<String, Rejected> {
    let (name, version) = (resource.name.as_str(), resource.version.as_str());
    if output == McpOutput::Table {
        return Ok(line(collection, word, name, version, output));
    }
    let read = read_resource(resource).map_err(|error| Rejected {
        name: Some(resource.name.clone()),
        reason: error.to_string(),
    })?;
    let McpResource { metadata, body } = read;
    let metadata = metadata.unwrap_or_default();
    let body = body.unwrap_or_default();
    let shown = json!({
        "event": word,
        "collection": collection,
        "name": name,
        "version": version,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
        "type": body.type_url,
        "body": show_body(&body.type_url, &body.value),
    });
    Ok(format!("{shown}\n"))
}

/// Returns the contents of a body, if its type is known; else the number of its
/// bytes.
fn show_body(type_url: &str, body: &bytes::Bytes) -> Value {
    let decoded = redact::redact(type_url, body.clone()).ok();
    let text = decoded.map(|message| text::to_node(&message, None).to_json());
    let value = text.and_then(|text| serde_json::from_str(&text).ok());
    value.unwrap_or_else(|| json!({"bytes": body.len()}))
}
