//! `trunkline apply`: the resources of a file, to a server.

use std::io::Read as _;

use http::Method;

use super::{ask, changes};
use crate::cli;
use crate::client::Client;
use crate::failure::{Failure, Result};
use trunkline_proto::text::Format;

pub(super) fn run(args: &cli::Apply) -> Result<()> {
    let text = read(&args.file)?;
    let kind = match Format::of(&args.file) {
        Format::Json => "application/json",
        Format::Yaml => "application/yaml",
    };
    let client = Client::new(&args.remote)?;
    let path = match args.dry_run {
        true => "/api/v1/resources?dry_run=true",
        false => "/api/v1/resources",
    };
    let file = match args.file.as_str() {
        "-" => "standard input",
        file => file,
    };
    let answer = ask(client.ask(Method::POST, path, kind, text, file))?;
    changes::show(&answer, file)
}

fn read(file: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().read_to_end(&mut bytes).map(drop),
        file => std::fs::read(file).map(|read| bytes = read),
    };
    match read {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Failure::wrong(format!("{file}: {error}"))),
    }
}
