//! The audit log: who changed what, and who was refused.
//!
//! | file | concern |
//! |---|---|
//! | `line` | a line for each resource of a change, and for each refusal |
//! | `rate` | how many refusals are recorded |
//! | `writer` | the thread that writes, and how long others wait for it |
//! | `file` | the file: private, appended to, followed when it is rotated |
//!
//! ```text
//! not required   change made ──▶ lines in the queue ──▶ file
//! required       lines on the disk ──▶ change made, or a line `withdrawn`
//! ```
//!
//! Where it is required, the log may have a change that was not made, if the
//! process was killed in between, but never lacks one that was.

mod file;
mod line;
mod rate;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use trunkline::{ApplyError, Changed, Hooks};

use self::file::AuditFile;
pub(crate) use self::line::RefusedRequest;
use self::rate::Rate;
use self::writer::Writer;
pub(crate) use self::writer::{MOST_BYTES, PATIENCE};
use crate::log;
use crate::metrics::Metrics;

/// The maximum of resources of one change that are logged one by one; the first
/// load of a large set would drown everything else.
const MOST_LOGGED: usize = 20;
/// How long the end of the program waits for lines that are not written yet.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Writes down who changed what. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Audit(Arc<Inner>);

struct Inner {
    output: Output,
    refusals: Mutex<Rate>,
    metrics: Arc<Metrics>,
}

/// Where lines go.
enum Output {
    /// To the log, with the target [`log::AUDIT`].
    Log,
    File {
        path: PathBuf,
        writer: Writer,
        required: Option<Required>,
    },
}

/// A change that cannot be recorded is refused.
#[derive(Default)]
struct Required {
    /// Whether the change that is about to be made is recorded. Changes are
    /// made one by one.
    is_recorded: AtomicBool,
}

impl Audit {
    /// Opens the file of the audit, to append to; makes the file if it does not
    /// exist. Without a path, lines go to the log.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(
        path: Option<&Path>,
        is_required: bool,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let output = match path {
            None => Output::Log,
            Some(path) => Output::File {
                path: path.to_owned(),
                writer: start_writer(path, &metrics)?,
                required: is_required.then(Required::default),
            },
        };
        Ok(Self(Arc::new(Inner {
            output,
            refusals: Mutex::new(Rate::new(Instant::now())),
            metrics,
        })))
    }

    /// Records a refused request, unless there were too many of late. Never
    /// waits.
    pub(crate) fn record_refusal(&self, who: &str, refusal: RefusedRequest<'_>) {
        let rate = self.0.refusals.lock();
        let mut rate = rate.unwrap_or_else(PoisonError::into_inner);
        let suppressed = rate.admit(Instant::now());
        drop(rate);

        self.0.metrics.count_refusal(suppressed.is_some());
        let Some(suppressed) = suppressed else {
            return;
        };

        let refusal = RefusedRequest {
            suppressed,
            ..refusal
        };
        match &self.0.output {
            Output::Log => log_refusal(who, &refusal),
            Output::File { writer, .. } => {
                writer.write(line::refusal_line(who, &refusal), Duration::ZERO);
            }
        }
    }

    /// Records that an operator confirmed a held change. Never waits.
    pub(crate) fn record_confirmation(&self, who: &str, request: &str) {
        match &self.0.output {
            Output::Log => tracing::info!(target: log::AUDIT, who, request, "confirmed"),
            Output::File { writer, .. } => {
                writer.write(line::confirmation_line(who, request), Duration::ZERO);
            }
        }
    }

    /// Waits a moment for lines that are not written yet.
    pub(crate) fn flush(&self) {
        if let Output::File { writer, .. } = &self.0.output {
            writer.flush(LAST_LINES);
        }
    }
}

/// Starts the thread that writes to a file. Lines that cannot be written are
/// logged and counted.
fn start_writer(path: &Path, metrics: &Arc<Metrics>) -> io::Result<Writer> {
    let (shown, metrics) = (path.display().to_string(), Arc::clone(metrics));
    let on_failure = move |lines, error: &str| {
        metrics.count_audit_failures(lines);
        tracing::error!(
            file = shown,
            lines,
            error,
            "the audit log cannot be written"
        );
    };
    Writer::start(AuditFile::open(path)?, Box::new(on_failure))
}

/// Logs each resource of a change. Of a change with more than [`MOST_LOGGED`],
/// logs the number only.
fn log_change(origin: &str, changed: &[Changed]) {
    if changed.len() > MOST_LOGGED {
        tracing::info!(
            target: log::AUDIT,
            who = origin,
            resources = changed.len(),
            "change; give --audit-log to have each in a line of its own"
        );
        return;
    }

    for change in changed {
        tracing::info!(
            target: log::AUDIT,
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

/// Logs a refused request as a warning of the audit.
fn log_refusal(who: &str, refusal: &RefusedRequest<'_>) {
    let RefusedRequest {
        request,
        status,
        reason,
        suppressed,
    } = refusal;
    tracing::warn!(
        target: log::AUDIT,
        who,
        request,
        status,
        reason,
        suppressed,
        "a request is refused"
    );
}

impl Hooks for Audit {
    fn vetoes_changes(&self) -> bool {
        matches!(&self.0.output, Output::File { required, .. } if required.is_some())
    }

    /// Records a change before it is made, if the audit is required. Otherwise
    /// does nothing.
    ///
    /// # Errors
    /// The lines cannot be written, and the change must not be made.
    fn changing(&self, origin: &str, changed: &[Changed]) -> Result<(), String> {
        let Output::File {
            path,
            writer,
            required: Some(record),
        } = &self.0.output
        else {
            return Ok(());
        };
        let withdrawal = line::withdrawal_line(origin, "it was not recorded in time");
        let result = writer.record(line::change_lines(origin, changed), withdrawal);
        record.is_recorded.store(result.is_ok(), Ordering::Relaxed);
        result.map_err(|error| {
            let path = path.display();
            format!("the change cannot be recorded in the audit log {path}: {error}")
        })
    }

    /// Records that a change was not made after all, if [`Self::changing`] had
    /// recorded it.
    fn withdrawn(&self, origin: &str, reason: &ApplyError) {
        if let Output::File {
            writer,
            required: Some(record),
            ..
        } = &self.0.output
            && record.is_recorded.swap(false, Ordering::Relaxed)
        {
            let lines = line::withdrawal_line(origin, &reason.to_string());
            writer.write(lines, PATIENCE);
        }
    }

    /// Writes the resources of an accepted change to the file, or to the log if
    /// there is no file. Lines that [`Self::changing`] wrote are not repeated.
    /// A failure does not undo the change.
    fn changed(&self, _: u64, origin: &str, changed: &[Changed]) {
        let Output::File {
            writer, required, ..
        } = &self.0.output
        else {
            return log_change(origin, changed);
        };
        let is_recorded = required
            .as_ref()
            .is_some_and(|record| record.is_recorded.swap(false, Ordering::Relaxed));
        if !is_recorded && !changed.is_empty() {
            writer.write(line::change_lines(origin, changed), PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use trunkline::{Change, Resource, Server, kind};

    fn put(body: &'static str) -> Change {
        let resource = Resource::new("a".into(), body.into());
        Change::Upsert(kind::CDS.into(), Arc::new(resource))
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn every_change_is_a_line_with_who_what_and_versions() {
        let dir = tempfile::tempdir().unwrap();
        for required in [false, true] {
            let path = dir.path().join(format!("audit-{required}.log"));
            let audit = Audit::open(Some(&path), required, Metrics::new()).unwrap();
            let server = Server::builder().hooks(audit.clone()).build();
            server.apply_as("api me", vec![put("1")]).unwrap();
            server.apply_as("api me", vec![put("1")]).unwrap();
            server.apply_as("api you", vec![put("2")]).unwrap();
            let gone = Change::Remove(kind::CDS.into(), "a".into());
            server.apply_as("api you", vec![gone]).unwrap();
            audit.flush();

            let lines = lines(&path);
            let who: Vec<_> = lines.iter().map(|line| line["who"].clone()).collect();
            assert_eq!(who, ["api me", "api you", "api you"]);
            assert_eq!(lines[0]["event"], "change");
            assert_eq!(lines[0]["from"], json!(null));
            assert_eq!(lines[0]["to"], lines[1]["from"]);
            assert_eq!(lines[2]["to"], json!(null));
            assert_eq!(lines[0]["type"], kind::CDS);
            assert_eq!(lines[0]["name"], "a");
            assert!(lines[0]["time"].as_str().unwrap().ends_with('Z'));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_change_that_cannot_be_recorded_is_refused_only_where_that_is_required() {
        let full = Some(Path::new("/dev/full"));
        for required in [false, true] {
            let metrics = Metrics::new();
            let audit = Audit::open(full, required, Arc::clone(&metrics)).unwrap();
            let server = Server::builder().hooks(audit.clone()).build();
            let applied = server.apply_as("api me", vec![put("1")]);
            audit.flush();
            assert_eq!(applied.is_err(), required);
            assert_eq!(server.all(&kind::CDS.into()).is_empty(), required);
            assert_eq!(metrics.audit_failures(), 1);
        }
    }

    #[test]
    fn a_change_that_is_recorded_and_not_made_is_withdrawn() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let audit = Audit::open(Some(&path), true, Metrics::new()).unwrap();
        let server = Server::builder().hooks(audit.clone()).build();
        let mut bad = Resource::new("b".into(), "1".into());
        bad.body = None;
        let bad = Change::Upsert(kind::CDS.into(), Arc::new(bad));
        server.apply_as("api me", vec![put("1"), bad]).unwrap_err();
        audit.flush();
        let lines = lines(&path);
        let events: Vec<_> = lines.iter().map(|line| line["event"].clone()).collect();
        assert_eq!(events, ["change", "change", "withdrawn"]);
        assert!(lines[2]["reason"].as_str().unwrap().contains("body"));
    }
}
