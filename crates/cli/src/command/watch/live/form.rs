//! What happened to a name, in the forms of `watch`.

use std::time::SystemTime;

use serde_json::{Value, json};
use trunkline::client::{Raw, State};
use trunkline::{Name, TypeUrl};
use trunkline_proto::redact;

use super::seen::{InUse, NameEvent};
use crate::admin::{show_file_form, timestamp};
use crate::cli::WatchOutput;
use crate::failure::Result;
use crate::kinds;
use crate::output::{self, printable};

/// Writes an event of a name, with the newest state of the name.
pub(super) fn write_event(
    output: WatchOutput,
    type_url: &TypeUrl,
    name: &Name,
    event: &NameEvent,
    state: &State<Raw>,
) -> Result<String> {
    let label = format!("{}/{name}", kinds::short(type_url));
    Ok(match output {
        // `Dot` is for trees, which `tree` writes.
        WatchOutput::Summary | WatchOutput::Dot => {
            let now = timestamp(SystemTime::now());
            let (word, details) = (event.word(), event_details(event, state));
            printable(&format!("{now} {word:<12} {label}{details}")) + "\n"
        }
        WatchOutput::Yaml => {
            let title = format!("# {label} {}{}", event.word(), event_details(event, state));
            let body = match event_body(type_url, event, state) {
                Some(body) => output::to_yaml(&json!({"resources": [body]}))?,
                None => String::new(),
            };
            format!("---\n{}\n{body}", printable(&title))
        }
        WatchOutput::Json => {
            let error = event_error(event, state);
            let line = json!({
                "time": timestamp(SystemTime::now()),
                "event": event.word(),
                "type": type_url.as_str(),
                "name": name.as_str(),
                "version": state.value().map(|value| value.version().as_str()),
                "error": error,
                "resource": event_body(type_url, event, state),
            });
            format!("{line}\n")
        }
    })
}

/// Describes the version of the resource, or the error if there is none.
fn event_details(event: &NameEvent, state: &State<Raw>) -> String {
    let version = state.value().map(|value| value.version().as_str());
    let version = version.unwrap_or_default();
    let error = event_error(event, state).unwrap_or_default();
    match event {
        NameEvent::Added | NameEvent::Changed | NameEvent::Recovered => {
            let size = state.value().map_or(0, |value| value.body().len());
            format!(" version {version:?}, {size} bytes")
        }
        NameEvent::Removed if error.is_empty() => String::new(),
        NameEvent::Removed | NameEvent::Failed(_, InUse::No) => format!(": {error}"),
        NameEvent::Failed(_, InUse::Yes) => format!(": {error}; version {version:?} stays in use"),
    }
}

/// Returns the error of the event, without secrets that it may quote. Returns
/// `None` if the event is no failure.
fn event_error(event: &NameEvent, state: &State<Raw>) -> Option<String> {
    match event {
        NameEvent::Removed | NameEvent::Failed(..) => {
            let error = state.error()?;
            Some(redact::quoted(&error.message).into_owned())
        }
        NameEvent::Added | NameEvent::Changed | NameEvent::Recovered => None,
    }
}

/// Returns the resource in the form of a file. Returns `None` if the event does
/// not bring a new resource.
fn event_body(type_url: &TypeUrl, event: &NameEvent, state: &State<Raw>) -> Option<Value> {
    match event {
        NameEvent::Added | NameEvent::Changed => {
            let value = state.value()?;
            Some(show_file_form(type_url, value.resource()))
        }
        NameEvent::Removed | NameEvent::Recovered | NameEvent::Failed(..) => None,
    }
}
