//! `trunkline get --watch`: the resources of a server, then each change of them.
//!
//! ```text
//! list ─▶ print ─▶ watch from the revision of the list ─▶ print each change
//!   ▲                             │
//!   └── the connection is lost, or events are missed ◀──┘
//! ```
//!
//! The list is always taken again, and compared with what was printed: so no
//! change is lost, whatever happens to server and connection.

mod form;

use std::collections::BTreeMap;

use http::Method;
use serde_json::Value;
use trunkline::TypeUrl;

use self::form::{Key, VariantEvent, entry_of, variant_key};
use super::events::{Events, RETRY, parse_event, print_line};
use super::get::{name_lines, resource_table, resources_path};
use super::selection::Selection;
use super::{encode_url, parse_body, parse_list, run_request};
use crate::cli::{self, Output};
use crate::client::{Call, Client, Opening};
use crate::failure::Result;

/// Prints the selected resources, and then each change of them, until the
/// program is stopped or standard output is closed.
///
/// # Errors
/// At the start, the server is not reached, or a name does not exist.
pub(super) fn run(args: &cli::Get, selections: Vec<Selection>) -> Result<()> {
    let watching = Watching {
        client: Client::new(&args.remote)?,
        output: args.output,
        selections,
        printed_versions: BTreeMap::new(),
    };
    run_request(watching.run())
}

/// The state of the command.
struct Watching {
    client: Client,
    output: Output,
    selections: Vec<Selection>,
    /// The version of each variant, as it was printed last.
    printed_versions: BTreeMap<Key, String>,
}

/// Whether somebody reads what is printed.
type IsRead = bool;

impl Watching {
    /// Prints the list and then the changes, until standard output is closed.
    /// After each loss of the connection, prints the differences from a new
    /// list.
    async fn run(mut self) -> Result<()> {
        // This reports a name that does not exist. Later, the name may be deleted
        // and created again.
        for selection in &self.selections {
            self.client.get(&resources_path(selection, false)).await?;
        }
        let (mut revision, mut resources) = self.list_resources(self.has_contents()).await?;
        if !self.print_first_list(&resources, revision)? {
            return Ok(());
        }

        loop {
            if !self.follow_changes(revision).await? {
                return Ok(());
            }
            (revision, resources) = self.list_after_loss().await;
            if !self.print_differences(&resources, revision).await? {
                return Ok(());
            }
        }
    }

    /// Lists the selected resources, with or without their contents. Names that
    /// do not exist are left out. The returned revision is at most that of the
    /// list.
    async fn list_resources(&self, has_contents: bool) -> Result<(u64, Vec<Value>)> {
        let mut revision = None;
        let mut resources = Vec::new();
        for selection in self.selections.iter().flat_map(split_by_name) {
            let path = resources_path(&selection, has_contents);
            let call = Call::bare(Method::GET, &path);
            let Some(body) = self.client.call_if_found(call).await? else {
                continue;
            };
            let head: Value = parse_body(&body)?;
            revision = revision.or(head["revision"].as_u64());
            resources.extend(parse_list(&body, "resources")?);
        }
        Ok((revision.unwrap_or_default(), resources))
    }

    /// Lists the selected resources; retries until the server is reached.
    async fn list_after_loss(&self) -> (u64, Vec<Value>) {
        let mut is_reported = false;
        loop {
            match self.list_resources(false).await {
                Ok(list) => {
                    if is_reported {
                        eprintln!("connected again");
                    }
                    return list;
                }
                Err(_) if is_reported => {}
                Err(failure) => {
                    eprintln!("{failure}; trying again");
                    is_reported = true;
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Prints the changes after a revision. Returns when the connection is lost
    /// or events are missing, and the caller has to list the resources again.
    /// Returns `false` if standard output is closed.
    async fn follow_changes(&mut self, revision: u64) -> Result<IsRead> {
        let mut path = format!("/api/v1/watch?from={revision}&event=changed");
        for selection in &self.selections {
            path.push_str(&format!(
                "&type={}",
                encode_url(selection.type_url.as_str())
            ));
        }
        let Ok(Opening::Open(response)) = self.client.open(&path).await else {
            tokio::time::sleep(RETRY).await;
            return Ok(true);
        };

        let mut events = Events::new(response);
        if revision == 0 {
            // Revision 0 has no event, so the stream begins with the next change.
            // The list has every change before it.
            let Ok((revision, resources)) = self.list_resources(false).await else {
                return Ok(true);
            };
            if !self.print_differences(&resources, revision).await? {
                return Ok(false);
            }
        }

        while let Some(line) = events.next_line().await? {
            let event = parse_event(&line)?;
            let is_missed = event["event"] == "missed" || event["omitted"].as_u64() > Some(0);
            if is_missed {
                return Ok(true);
            }
            for changed in event["changed"].as_array().into_iter().flatten() {
                if !self.print_change(changed, &event["revision"]).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Prints a change of an event. Does nothing if the variant is not selected
    /// or the change was printed before.
    async fn print_change(&mut self, change: &Value, revision: &Value) -> Result<IsRead> {
        let key = variant_key(change);
        if !self
            .selections
            .iter()
            .any(|selection| selects(selection, &key))
        {
            return Ok(true);
        }
        let version = change["to"].as_str();
        self.print_version(key, version, revision.as_u64().unwrap_or_default())
            .await
    }

    /// Prints each difference between a list and the known variants.
    async fn print_differences(&mut self, resources: &[Value], revision: u64) -> Result<IsRead> {
        let current: BTreeMap<Key, String> = resources.iter().map(entry_of).collect();
        let deleted = self
            .printed_versions
            .keys()
            .filter(|key| !current.contains_key(*key));
        let deleted: Vec<Key> = deleted.cloned().collect();
        for key in deleted {
            if !self.print_version(key, None, revision).await? {
                return Ok(false);
            }
        }
        for (key, version) in current {
            if !self.print_version(key, Some(&version), revision).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prints the event that a variant has a new version or is deleted. Does
    /// nothing if the version is known.
    async fn print_version(
        &mut self,
        key: Key,
        version: Option<&str>,
        revision: u64,
    ) -> Result<IsRead> {
        let printed_version = self.printed_versions.get(&key).map(String::as_str);
        let event = match (printed_version, version) {
            (previous, current) if previous == current => return Ok(true),
            (None, _) => "added",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "deleted",
        };
        let variant_event = VariantEvent {
            key: &key,
            version,
            event,
            revision,
        };

        let is_read = self.print_event(&variant_event).await?;
        match version {
            Some(version) => self.printed_versions.insert(key, version.to_owned()),
            None => self.printed_versions.remove(&key),
        };
        Ok(is_read)
    }

    /// Prints the resources that exist when the command starts.
    fn print_first_list(&mut self, resources: &[Value], revision: u64) -> Result<IsRead> {
        self.printed_versions = resources.iter().map(entry_of).collect();
        let has_types = self.has_types();
        let text = match self.output {
            Output::Table => resource_table(resources, has_types, false),
            Output::Wide => resource_table(resources, has_types, true),
            Output::Name => name_lines(resources),
            Output::Yaml | Output::Json => {
                let mut text = String::new();
                for resource in resources {
                    let (key, version) = entry_of(resource);
                    let variant_event = VariantEvent {
                        key: &key,
                        version: Some(&version),
                        event: "present",
                        revision,
                    };
                    text.push_str(&variant_event.write(self.output, has_types, Some(resource))?);
                }
                text
            }
        };
        print_line(text.as_bytes())
    }

    /// Prints the event of a variant, with its contents if the format has them.
    async fn print_event(&self, variant_event: &VariantEvent<'_>) -> Result<IsRead> {
        let contents = match (self.has_contents(), variant_event.version) {
            (true, Some(_)) => self.fetch_variant(variant_event.key).await?,
            _ => None,
        };
        let text = variant_event.write(self.output, self.has_types(), contents.as_ref())?;
        print_line(text.as_bytes())
    }

    /// Returns whether resources of several types are watched.
    fn has_types(&self) -> bool {
        self.selections.len() > 1
    }

    /// Returns whether resources are printed with their contents.
    fn has_contents(&self) -> bool {
        matches!(self.output, Output::Yaml | Output::Json)
    }

    /// Fetches a variant in its present state. Returns `None` if the variant
    /// was deleted, which a later event reports, or the server is not reached.
    async fn fetch_variant(&self, key: &Key) -> Result<Option<Value>> {
        let (type_url, name, _) = key;
        let selection = Selection {
            type_url: TypeUrl::new(type_url),
            names: vec![name.clone()],
        };
        let path = resources_path(&selection, true);
        let call = Call::bare(Method::GET, &path);
        let Ok(Some(body)) = self.client.call_if_found(call).await else {
            return Ok(None);
        };
        let variants = parse_list(&body, "resources")?;
        Ok(variants
            .into_iter()
            .find(|variant| variant_key(variant) == *key))
    }
}

/// Returns one selection for each name, since a request for several names fails
/// if one of them does not exist. The selection of a whole type stays whole.
fn split_by_name(selection: &Selection) -> Vec<Selection> {
    let type_url = &selection.type_url;
    let select = |names| Selection {
        type_url: type_url.clone(),
        names,
    };
    match selection.names.is_empty() {
        true => vec![select(Vec::new())],
        false => {
            let names = selection.names.iter();
            names.map(|name| select(vec![name.clone()])).collect()
        }
    }
}

/// Returns whether a variant is selected.
fn selects(selection: &Selection, (type_url, name, _): &Key) -> bool {
    let names = &selection.names;
    selection.type_url.as_str() == type_url && (names.is_empty() || names.contains(name))
}
