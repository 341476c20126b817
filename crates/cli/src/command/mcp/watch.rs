//! `trunkline mcp watch`: what a source sends, as a sink that accepts all of it
//! sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

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

/// Dials the source, and prints what it sends: for ever, or with `--once` until
/// each collection has come.
async fn watch(args: &cli::McpWatch, options: SinkOptions) -> Result<()> {
    let collections: BTreeSet<TypeUrl> = options.collections.iter().cloned().collect();
    let (sender, mut deliveries) = mpsc::channel(1);
    let versions = Mutex::new(PrintedVersions::default());
    let output = args.output;
    let sink = McpSink::new(options, move |delivery: Delivery| {
        let collection = delivery.collection.clone();
        let verdict = print_delivery(&versions, delivery, output);
        // It is full, or nobody waits.
        let _ = sender.try_send(collection);
        verdict
    });

    let certificate = args.tls_cert.as_ref().zip(args.tls_key.as_ref());
    let source = args.server.control_plane(args.tls_ca.as_ref(), certificate);
    let dialling = sink.clone().dial(source);
    if !args.once {
        dialling.await;
        return Ok(());
    }

    let all_collections = async {
        while !missing_collections(&sink, &collections).is_empty() {
            // An ACK follows the line at once, but not in the same moment.
            let wait = std::time::Duration::from_millis(20);
            let _ = tokio::time::timeout(wait, deliveries.recv()).await;
        }
    };
    tokio::select! {
        () = dialling => Ok(()),
        result = tokio::time::timeout(args.timeout, all_collections) => result.map_err(|_| {
            Failure::unreachable(format!(
                "{} sent nothing of {} in time; --server is the address of a source",
                args.server,
                missing_collections(&sink, &collections).join(", ")
            ))
        }),
    }
}

/// Returns the collections of which the sink has accepted nothing yet.
fn missing_collections(sink: &McpSink, collections: &BTreeSet<TypeUrl>) -> Vec<String> {
    let status = sink.status();
    let missing = collections
        .iter()
        .filter(|name| status.collections[*name].accepted == 0);
    missing.map(TypeUrl::to_string).collect()
}

/// Prints the lines of a delivery. Rejects the delivery if a resource in it
/// cannot be shown, or standard output cannot be written.
fn print_delivery(
    versions: &Mutex<PrintedVersions>,
    delivery: Delivery,
    output: McpOutput,
) -> Verdict {
    let mut versions = versions.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = match versions.record(delivery, output) {
        Ok(lines) => lines,
        Err(rejection) => return Verdict::Reject(vec![rejection]),
    };
    match super::super::print(lines.as_bytes()) {
        Ok(()) => Verdict::Accept,
        Err(failure) => Verdict::Reject(vec![Rejected {
            name: None,
            reason: failure.to_string(),
        }]),
    }
}

/// The versions of all resources that were printed: of a full state, only what
/// is different is printed.
#[derive(Debug, Default)]
struct PrintedVersions(BTreeMap<TypeUrl, BTreeMap<Name, Version>>);

impl PrintedVersions {
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
        let is_first = !self.0.contains_key(&delivery.collection);
        let mut update = Update {
            collection: delivery.collection.as_str(),
            versions: self.0.entry(delivery.collection.clone()).or_default(),
            output,
            lines: String::new(),
        };

        let mut removed_names = Vec::new();
        for change in &delivery.changes {
            match change {
                Change::ReplaceAll(_, resources) => {
                    let listed_names: BTreeSet<&Name> =
                        resources.iter().map(|resource| &resource.name).collect();
                    let old_names = update.versions.keys();
                    let unlisted_names = old_names.filter(|name| !listed_names.contains(name));
                    removed_names.extend(unlisted_names.cloned());
                    for resource in resources {
                        update.upsert(resource)?;
                    }
                }
                Change::Upsert(_, resource) => update.upsert(resource)?,
                Change::Remove(_, name) => removed_names.push(name.clone()),
                _ => {}
            }
        }

        // The lines of removals follow those of upserts.
        for name in removed_names {
            update.remove(&name);
        }
        if is_first && update.versions.is_empty() {
            update.add_line("empty", "");
        }
        Ok(update.lines)
    }
}

/// An update of the versions of one collection, and the lines about it.
struct Update<'a> {
    collection: &'a str,
    versions: &'a mut BTreeMap<Name, Version>,
    output: McpOutput,
    lines: String,
}

impl Update<'_> {
    /// Records a resource, and adds its line. Adds no line if its version is
    /// the recorded one.
    fn upsert(&mut self, resource: &trunkline::Resource) -> std::result::Result<(), Rejected> {
        let (name, version) = (resource.name.clone(), resource.version.clone());
        let event = match self.versions.insert(name, version) {
            Some(old_version) if old_version == resource.version => return Ok(()),
            Some(_) => "changed",
            None => "added",
        };
        let line = show(self.collection, event, resource, self.output)?;
        self.lines.push_str(&line);
        Ok(())
    }

    /// Removes a name, and adds its line. Does nothing if the name has no
    /// recorded version.
    fn remove(&mut self, name: &Name) {
        if self.versions.remove(name).is_some() {
            self.add_line("removed", name.as_str());
        }
    }

    /// Adds a line about a name without a version.
    fn add_line(&mut self, event: &str, name: &str) {
        let line = write_line(self.collection, event, name, "", self.output);
        self.lines.push_str(&line);
    }
}

/// Writes a line about an event of a name. The version is left out if it is
/// empty, and in JSON.
fn write_line(
    collection: &str,
    event: &str,
    name: &str,
    version: &str,
    output: McpOutput,
) -> String {
    match output {
        McpOutput::Table => {
            let version = match version {
                "" => String::new(),
                version => format!(" version {version}"),
            };
            let space = if name.is_empty() { "" } else { " " };
            format!("{event} {collection}{space}{name}{version}\n")
        }
        McpOutput::Json => {
            let shown = json!({"event": event, "collection": collection, "name": name});
            format!("{shown}\n")
        }
    }
}

/// Writes a line about a resource; as JSON with its metadata and its contents,
/// without secrets.
fn show(
    collection: &str,
    event: &str,
    resource: &trunkline::Resource,
    output: McpOutput,
) -> std::result::Result<String, Rejected> {
    let (name, version) = (resource.name.as_str(), resource.version.as_str());
    if output == McpOutput::Table {
        return Ok(write_line(collection, event, name, version, output));
    }

    let mcp_resource = read_resource(resource).map_err(|error| Rejected {
        name: Some(resource.name.clone()),
        reason: error.to_string(),
    })?;
    let McpResource { metadata, body } = mcp_resource;
    let metadata = metadata.unwrap_or_default();
    let body = body.unwrap_or_default();

    let shown = json!({
                "event": event,
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
    let message = redact::redact(type_url, body.clone()).ok();
    let text = message.map(|message| text::to_node(&message, None).to_json());
    let value = text.and_then(|text| serde_json::from_str(&text).ok());
    value.unwrap_or_else(|| json!({"bytes": body.len()}))
}
