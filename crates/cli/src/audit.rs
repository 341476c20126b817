//! The audit log: one line for each resource that an accepted change touched.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use trunkline::{Changed, Hooks};

use crate::admin::timestamp;

/// The maximum of resources of one change that are logged one by one; the first
/// load of a large set would drown everything else.
const MOST_LOGGED: usize = 20;

/// Hooks that write down who changed what.
#[derive(Debug)]
pub(crate) struct Audit {
    /// `None` writes to the log, with the target `audit`.
    file: Option<Mutex<File>>,
}

/// A line of the file: a resource, before and after a change.
#[derive(Serialize)]
struct Line<'a> {
    time: &'a str,
    who: &'a str,
    #[serde(rename = "type")]
    type_url: &'a str,
    name: &'a str,
    constraints: Option<String>,
    from: Option<&'a str>,
    to: Option<&'a str>,
}

impl Audit {
    /// Opens a file to append to, which is made if it does not exist; without a
    /// path, lines go to the log.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let open_file = |path| OpenOptions::new().append(true).create(true).open(path);
        let file = path.map(open_file).transpose()?;
        Ok(Self {
            file: file.map(Mutex::new),
        })
    }
}

/// Appends a line of JSON for each resource of a change to the file. They are
/// written at once, so that the lines of another change are not in between.
fn append_lines(origin: &str, changed: &[Changed], file: &Mutex<File>) -> io::Result<()> {
    let now = timestamp(SystemTime::now());
    let mut text = Vec::new();
    for change in changed {
        let line = Line {
            time: &now,
            who: origin,
            type_url: change.type_url.as_str(),
            name: change.name.as_str(),
            constraints: change.constraints.as_ref().map(ToString::to_string),
            from: change.from.as_ref().map(|version| version.as_str()),
            to: change.to.as_ref().map(|version| version.as_str()),
        };
        serde_json::to_writer(&mut text, &line)?;
        text.push(b'\n');
    }

    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    file.write_all(&text)
}

/// Logs each resource of a change; only their number, if there are more than
/// [`MOST_LOGGED`].
fn log_change(origin: &str, changed: &[Changed]) {
    if changed.len() > MOST_LOGGED {
        tracing::info!(
            target: "audit",
            who = origin,
            resources = changed.len(),
            "change; give --audit-log to have each in a line of its own"
        );
        return;
    }

    for change in changed {
        tracing::info!(
            target: "audit",
            who = origin,
            "type" = change.type_url.as_str(),
            name = change.name.as_str(),
            constraints = change.constraints.as_ref().map(tracing::field::display),
            from = change.from.as_ref().map(|version| version.as_str()),
            to = change.to.as_ref().map(|version| version.as_str()),
            "change"
        );
    }
}

impl Hooks for Audit {
    /// Writes the resources of an accepted change to the file, or to the log if
    /// there is none. The change stands even if the file cannot be written.
    fn changed(&self, _: u64, origin: &str, changed: &[Changed]) {
        let Some(file) = &self.file else {
            return log_change(origin, changed);
        };
        if let Err(error) = append_lines(origin, changed, file) {
            tracing::error!(%error, "the audit log cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;
    use trunkline::{Change, Resource, Server, kind};

    #[test]
    fn every_change_is_a_line_with_who_what_and_versions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let audit = Audit::open(Some(&path)).unwrap();
        let server = Server::builder().hooks(audit).build();
        let put = |body: &'static str| {
            let resource = Resource::new("a".into(), body.into());
            Change::Upsert(kind::CDS.into(), Arc::new(resource))
        };
        server.apply_as("api me", vec![put("1")]).unwrap();
        server.apply_as("api me", vec![put("1")]).unwrap();
        server.apply_as("api you", vec![put("2")]).unwrap();
        let gone = Change::Remove(kind::CDS.into(), "a".into());
        server.apply_as("api you", vec![gone]).unwrap();

        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let who: Vec<_> = lines.iter().map(|line| line["who"].clone()).collect();
        assert_eq!(who, ["api me", "api you", "api you"]);
        assert_eq!(lines[0]["from"], json!(null));
        assert_eq!(lines[0]["to"], lines[1]["from"]);
        assert_eq!(lines[2]["to"], json!(null));
        assert_eq!(lines[0]["type"], kind::CDS);
        assert_eq!(lines[0]["name"], "a");
        assert!(lines[0]["time"].as_str().unwrap().ends_with('Z'));
    }
}
