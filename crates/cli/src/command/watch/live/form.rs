//! What happened to a name, in the forms of `watch`.

use std::time::SystemTime;

use serde_json::{Value, json};
use trunkline::client::{Raw, State};
use trunkline::{Name, TypeUrl};
use trunkline_proto::redact;

use super::seen::{InUse, What};
use crate::admin::{show_file_form, timestamp};
use crate::cli::WatchOutput;
use crate::failure::Result;
use crate::kinds;
use crate::output::{self, printable};

/// Writes what happened to a name, whose newest state is this.
pub(super) fn write(
    output: WatchOutput,
    type_url: &TypeUrl,
    name: &Name,
    what: &What,
    state: &State<Raw>,
) -> Result<String> {
    let label = format!("{}/{name}", kinds::short(type_url));
    Ok(match output {
        // A graph is drawn of trees only, which are not written here.
        WatchOutput::Summary | WatchOutput::Dot => {
            let now = timestamp(SystemTime::now());
            let (word, details) = (what.word(), details(what, state));
            printable(&format!("{now} {word:<12} {label}{details}")) + "\n"
        }
        WatchOutput::Yaml => {
            let title = format!("# {label} {}{}", what.word(), details(what, state));
            let body = match body(type_url, what, state) {
                Some(body) => output::to_yaml(&json!({"resources": [body]}))?,
                None => String::new(),
            };
            format!("---\n{}\n{body}", printable(&title))
        }
        WatchOutput::Json => {
            let error = error(what, state);
            let line = json!({
                "time": timestamp(SystemTime::now()),
                "event": what.word(),
                "type": type_url.as_str(),
                "name": name.as_str(),
                "version": state.value().map(|value| value.version().as_str()),
                "error": error,
                "resource": body(type_url, what, state),
            });
            format!("{line}\n")
        }
    })
}

/// The version, or why there is none.
fn details(what: &What, state: &State<Raw>) -> String {
    let version = state.value().map(|value| value.version().as_str());
    let version = version.unwrap_or_default();
    let error = error(what, state).unwrap_or_default();
    match what {
        What::Added | What::Changed | What::Recovered => {
            let size = state.value().map_or(0, |value| value.body().len());
            format!(" version {version:?}, {size} bytes")
        }
        What::Removed if error.is_empty() => String::new(),
        What::Removed | What::Failed(_, InUse::No) => format!(": {error}"),
        What::Failed(_, InUse::Yes) => format!(": {error}; version {version:?} stays in use"),
    }
}

/// The error, without secrets that it may quote.
fn error(what: &What, state: &State<Raw>) -> Option<String> {
    match what {
        What::Removed | What::Failed(..) => {
            let error = state.error()?;
            Some(redact::quoted(&error.message).into_owned())
        }
        What::Added | What::Changed | What::Recovered => None,
    }
}

/// The resource as a file has it, where it is news.
fn body(type_url: &TypeUrl, what: &What, state: &State<Raw>) -> Option<Value> {
    match what {
        What::Added | What::Changed => {
            let value = state.value()?;
            Some(show_file_form(type_url, value.resource()))
        }
        What::Removed | What::Recovered | What::Failed(..) => None,
    }
}
