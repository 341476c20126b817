//! The commands, each in a file of its own.

mod apply;
mod bench;
mod changes;
mod completions;
mod delete;
mod demo;
mod explain;
mod get;
mod serve;
mod settings;
mod status;
mod validate;

use bytes::Bytes;
use serde_json::Value;

use crate::cli::{Cli, Command};
use crate::failure::{Failure, Result};

/// Runs the command.
pub(crate) fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Serve(args) => serve::run(args, cli.global),
        Command::Validate(args) => validate::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Apply(args) => apply::run(&args),
        Command::Delete(args) => delete::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Bench(options) => bench::run(*options),
        Command::Demo(args) => demo::run(&args, cli.global),
        Command::Settings(args) => settings::run(&args),
        Command::Completions { shell } => completions::run(shell),
    }
}

/// Writes to standard output. A reader that stops early is no failure.
fn print(bytes: &[u8]) -> Result<()> {
    use std::io::{ErrorKind, Write as _};
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::wrong(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Runtime::new()
        .map_err(|error| Failure::wrong(format!("the runtime cannot start: {error}")))
}

/// Runs a request to its end.
fn ask<T>(question: impl Future<Output = Result<T>>) -> Result<T> {
    runtime()?.block_on(question)
}

/// A text, encoded for a URL.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        // A form has a plus for a space; in a path it stands for itself.
        .replace('+', "%20")
}

/// A list in a response.
fn list(answer: &Bytes, key: &str) -> Result<Vec<Value>> {
    let mut answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    match answer[key].take() {
        Value::Array(list) => Ok(list),
        _ => Err(Failure::wrong(format!(
            "the answer has no {key}; is --admin the admin address of a trunkline server?"
        ))),
    }
}
