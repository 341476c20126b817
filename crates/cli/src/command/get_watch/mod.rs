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

use self::form::{Key, Seen, entry_of, key_of};
use super::events::{Events, RETRY, parse_event, print_line};
use super::get::{name_lines, resource_table, resources_path};
use super::selected::Selected;
use super::{encode_url, parse_body, parse_list, run_request};
use crate::cli::{self, Output};
use crate::client::{Call, Client, Opening};
use crate::failure::Result;

/// Prints the selected resources, then each change of them, until the program
/// is stopped, or nobody reads it.
///
/// # Errors
/// The server is not reached at first, or a name does not exist then.
pub(super) fn run(args: &cli::Get, selected: Vec<Selected>) -> Result<()> {
    let watching = Watching {
        client: Client::new(&args.remote)?,
        output: args.output,
        selected,
        known: BTreeMap::new(),
    };
    run_request(watching.run())
}

/// The state of the command.
struct Watching {
    client: Client,
    output: Output,
    selected: Vec<Selected>,
    /// The version of each variant, as it was printed last.
    known: BTreeMap<Key, String>,
}

/// Whether somebody reads what is printed.
type IsRead = bool;

impl Watching {
    async fn run(mut self) -> Result<()> {
        // At first, a name that does not exist is a mistake.
        for selected in &self.selected {
            self.client.get(&resources_path(selected, false)).await?;
        }
        let (mut revision, mut resources) = self.list(self.has_contents()).await?;
        if !self.print_present(&resources, revision)? {
            return Ok(());
        }
        loop {
            if !self.follow(revision).await? {
                return Ok(());
            }
            (revision, resources) = self.list_again().await;
            if !self.print_differences(&resources, revision).await? {
                return Ok(());
            }
        }
    }

    /// Lists the selected resources, with or without their contents. Names that
    /// do not exist are left out. The revision is from before the list.
    async fn list(&self, has_contents: bool) -> Result<(u64, Vec<Value>)> {
        let mut revision = None;
        let mut resources = Vec::new();
        for one in self.selected.iter().flat_map(each_name) {
            let path = resources_path(&one, has_contents);
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

    /// Lists the selected resources, as soon as the server can be reached.
    async fn list_again(&self) -> (u64, Vec<Value>) {
        let mut is_told = false;
        loop {
            match self.list(false).await {
                Ok(listed) => {
                    if is_told {
                        eprintln!("connected again");
                    }
                    return listed;
                }
                Err(_) if is_told => {}
                Err(failure) => {
                    eprintln!("{failure}; trying again");
                    is_told = true;
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Prints changes after a revision until the connection is lost, or events
    /// are missed: then the resources have to be listed.
    async fn follow(&mut self, revision: u64) -> Result<IsRead> {
        let mut path = format!("/api/v1/watch?from={revision}&event=changed");
        for selected in &self.selected {
            path.push_str(&format!("&type={}", encode_url(selected.type_url.as_str())));
        }
        let Ok(Opening::Open(response)) = self.client.open(&path).await else {
            tokio::time::sleep(RETRY).await;
            return Ok(true);
        };
        let mut events = Events::new(response);
        if revision == 0 {
            // There is no change to begin after, so the events are those from
            // now on: a change before that is in the list.
            let Ok((revision, listed)) = self.list(false).await else {
                return Ok(true);
            };
            if !self.print_differences(&listed, revision).await? {
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
                if !self.note_change(changed, &event["revision"]).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Prints a change of an event, if it is of a selected variant and was not
    /// printed yet.
    async fn note_change(&mut self, changed: &Value, revision: &Value) -> Result<IsRead> {
        let key = key_of(changed);
        if !self.selected.iter().any(|selected| selects(selected, &key)) {
            return Ok(true);
        }
        let to = changed["to"].as_str();
        self.note(key, to, revision.as_u64().unwrap_or_default())
            .await
    }

    /// Prints each difference between a list and what was printed.
    async fn print_differences(&mut self, listed: &[Value], revision: u64) -> Result<IsRead> {
        let now: BTreeMap<Key, String> = listed.iter().map(entry_of).collect();
        let gone = self.known.keys().filter(|key| !now.contains_key(*key));
        let gone: Vec<Key> = gone.cloned().collect();
        for key in gone {
            if !self.note(key, None, revision).await? {
                return Ok(false);
            }
        }
        for (key, version) in now {
            if !self.note(key, Some(&version), revision).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prints that a variant has another version, or none, if that is new.
    async fn note(&mut self, key: Key, version: Option<&str>, revision: u64) -> Result<IsRead> {
        let before = self.known.get(&key).map(String::as_str);
        let event = match (before, version) {
            (before, after) if before == after => return Ok(true),
            (None, _) => "added",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "deleted",
        };
        let seen = Seen {
            key: &key,
            version,
            event,
            revision,
        };
        let is_read = self.print(&seen).await?;
        match version {
            Some(version) => self.known.insert(key, version.to_owned()),
            None => self.known.remove(&key),
        };
        Ok(is_read)
    }

    /// Prints what there is when the command begins.
    fn print_present(&mut self, listed: &[Value], revision: u64) -> Result<IsRead> {
        self.known = listed.iter().map(entry_of).collect();
        let has_types = self.has_types();
        let text = match self.output {
            Output::Table => resource_table(listed, has_types, false),
            Output::Wide => resource_table(listed, has_types, true),
            Output::Name => name_lines(listed),
            Output::Yaml | Output::Json => {
                let mut text = String::new();
                for one in listed {
                    let (key, version) = entry_of(one);
                    let seen = Seen {
                        key: &key,
                        version: Some(&version),
                        event: "present",
                        revision,
                    };
                    text.push_str(&seen.write(self.output, has_types, Some(one))?);
                }
                text
            }
        };
        print_line(text.as_bytes())
    }

    /// Prints what happened to a variant.
    async fn print(&self, seen: &Seen<'_>) -> Result<IsRead> {
        let contents = match (self.has_contents(), seen.version) {
            (true, Some(_)) => self.fetch(seen.key).await?,
            _ => None,
        };
        let text = seen.write(self.output, self.has_types(), contents.as_ref())?;
        print_line(text.as_bytes())
    }

    /// Returns whether resources of several types are watched.
    fn has_types(&self) -> bool {
        self.selected.len() > 1
    }

    /// Returns whether resources are printed with their contents.
    fn has_contents(&self) -> bool {
        matches!(self.output, Output::Yaml | Output::Json)
    }

    /// Fetches a variant as it is now; `None` if it is gone, which an event will
    /// tell, or the server is.
    async fn fetch(&self, key: &Key) -> Result<Option<Value>> {
        let one = Selected {
            type_url: TypeUrl::new(&key.0),
            names: vec![key.1.clone()],
        };
        let path = resources_path(&one, true);
        let call = Call::bare(Method::GET, &path);
        let Ok(Some(body)) = self.client.call_if_found(call).await else {
            return Ok(None);
        };
        let variants = parse_list(&body, "resources")?;
        Ok(variants.into_iter().find(|one| key_of(one) == *key))
    }
}

/// Returns the selection of each name alone, because a list of several names
/// fails if one of them does not exist; of a whole type, itself.
fn each_name(selected: &Selected) -> Vec<Selected> {
    let type_url = &selected.type_url;
    let one = |names| Selected {
        type_url: type_url.clone(),
        names,
    };
    match selected.names.is_empty() {
        true => vec![one(Vec::new())],
        false => {
            let names = selected.names.iter();
            names.map(|name| one(vec![name.clone()])).collect()
        }
    }
}

/// Returns whether a variant is selected.
fn selects(selected: &Selected, (type_url, name, _): &Key) -> bool {
    let names = &selected.names;
    selected.type_url.as_str() == type_url && (names.is_empty() || names.contains(name))
}
