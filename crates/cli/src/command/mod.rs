//! The commands, each in a file of its own.

mod apply;
mod backup;
mod bench;
mod change_query;
mod changes;
mod completions;
mod confirm;
mod control_plane;
mod delete;
mod demo;
mod diff;
mod edit;
mod encode;
mod event_line;
mod events;
mod explain;
mod export;
mod get;
mod get_watch;
mod history;
mod import;
mod mcp;
mod overview;
mod places;
mod replay;
mod revisions;
mod rollback;
mod route;
mod selection;
mod serve;
mod settings;
mod sources;
mod status;
mod validate;
mod wait;
mod watch;

use std::process::ExitCode;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::{Cli, Command};
use crate::failure::{Failure, Result};

/// Runs the command that the command line names. Returns the exit code; a
/// command that fails returns an error instead.
pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    let result = match cli.command {
        Command::Diff(args) => return diff::run(&args),
        Command::Status(args) => return status::run(&args),
        Command::Serve(args) => serve::run(args, cli.global),
        Command::Validate(args) => validate::run(&args),
        Command::Route(args) => route::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Apply(args) => apply::run(&args),
        Command::Delete(args) => delete::run(&args),
        Command::Edit(args) => edit::run(&args),
        Command::History(args) => history::run(&args),
        Command::Rollback(args) => rollback::run(&args),
        Command::Backup(args) => backup::back_up(&args),
        Command::Restore(args) => backup::restore(&args),
        Command::Export(args) => export::run(&args),
        Command::Import(args) => import::run(*args),
        Command::Confirm(args) => confirm::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Replay(args) => replay::run(&args, cli.global),
        Command::Mcp(args) => mcp::run(args, cli.global),
        Command::Explain(args) => explain::run(&args),
        Command::Bench(options) => bench::run(*options),
        Command::Demo(args) => demo::run(&args, cli.global),
        Command::Settings(args) => settings::run(&args),
        Command::Completions { shell } => completions::run(shell),
    };
    result.map(|()| ExitCode::SUCCESS)
}

/// Writes to standard output. Succeeds too if the reader has closed it: `head`
/// reads only as much as it needs.
fn print(bytes: &[u8]) -> Result<()> {
    use std::io::{ErrorKind, Write as _};
    let mut output = std::io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::wrong(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Starts a runtime with as many threads as the machine has cores.
fn start_runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Runtime::new()
        .map_err(|error| Failure::wrong(format!("the runtime cannot start: {error}")))
}

/// Runs a request to its end, on a runtime of its own.
fn run_request<T>(request: impl Future<Output = Result<T>>) -> Result<T> {
    start_runtime()?.block_on(request)
}

/// Encodes a text for the path or the query of a URL.
fn encode_url(text: &str) -> String {
    let form: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    // A form has a plus for a space; in a path it stands for itself.
    form.replace('+', "%20")
}

/// Parses the JSON in the body of a response.
fn parse_body<T: DeserializeOwned>(body: &Bytes) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::wrong(format!("the answer is not understood: {error}")))
}

/// Parses the body of a response, and returns the list in the field `key`.
///
/// # Errors
/// The field is missing or not a list, so another server than ours responded.
fn parse_list(body: &Bytes, key: &str) -> Result<Vec<Value>> {
    let mut body: Value = serde_json::from_slice(body).unwrap_or_default();
    match body[key].take() {
        Value::Array(list) => Ok(list),
        _ => Err(Failure::wrong(format!(
            "the answer has no {key}; is --admin the admin address of a trunkline server?"
        ))),
    }
}
