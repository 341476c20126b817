//! `trunkline import`: contents from files, an Envoy or another control plane,
//! applied to a server or written as files.
//!
//! ```text
//! files, bootstrap ─┐                      ┌─▶ a server, as `apply` does it
//! an Envoy's dump ──┼─▶ resources ─────────┤
//! control plane ────┘                      └─▶ files, as `export` writes them
//! ```

mod plane;

use bytes::Bytes;
use prost::Message as _;
use trunkline::wire;
use trunkline_proto::discovery::{Any, DiscoveryResponse};
use trunkline_proto::text::{self, Document, Format};

use super::apply::{self, FetchedBody};
use super::encode::encode_documents;
use super::export::Target;
use super::sources::{Input, Sources};
use super::{print, run_request};
use crate::cli;
use crate::client::EnvoyAdmin;
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::output::count_of;
use crate::report::{Message, Report, Severity};

/// Brings contents to a server, or to files.
pub(super) fn run(args: cli::Import) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    match args.output.as_deref() {
        None => apply(args),
        Some(output) => write_resources(&args, &Target::parse(output)?),
    }
}

/// Applies contents to a server.
fn apply(args: cli::Import) -> Result<()> {
    let (name, body) = match fetch(&args)? {
        None => return apply::run(&args.into_apply()),
        Some(contents) => contents,
    };
    apply::run_with_body(&args.into_apply(), &name, body)
}

/// Fetches the resources from an Envoy or a control plane, and returns them
/// with the name of their source. Returns `None` if the command line names
/// files.
fn fetch(args: &cli::Import) -> Result<Option<(String, FetchedBody)>> {
    if let Some(address) = &args.envoy_admin {
        let dump = run_request(EnvoyAdmin::new(address)?.config_dump())?;
        let name = format!("/config_dump of {address}");
        return Ok(Some((name, FetchedBody::Json(dump))));
    }
    if !args.plane.is_named() {
        return Ok(None);
    }
    let (servers, resources) = run_request(plane::fetch(&args.plane))?;

    let document = DiscoveryResponse {
        resources,
        ..DiscoveryResponse::default()
    };
    let bytes = Bytes::from(document.encode_to_vec());
    Ok(Some((servers, FetchedBody::Binary(bytes))))
}

/// Writes the resources to the target, and prints their number.
fn write_resources(args: &cli::Import, target: &Target) -> Result<()> {
    let (name, body) = match fetch(args)? {
        None => {
            let sources = Sources::read(&args.paths, &Input::default())?;
            sources.checked_items()?;
            (args.paths.join(", "), sources.encode().body)
        }
        Some((name, FetchedBody::Binary(body))) => (name, body),
        Some((name, FetchedBody::Json(dump))) => {
            let document = read_dump(&name, &dump)?;
            (name, encode_documents([&document]).into())
        }
    };

    let document = DiscoveryResponse::decode(body).map_err(Failure::wrong)?;
    let resources: Vec<Any> = document.resources;
    let Some(target_name) = target.write(&resources)? else {
        return Ok(());
    };
    let count = count_of(resources.len(), "resource");
    print(format!("{count} of {name} written to {target_name}\n").as_bytes())
}

/// Parses the dump of an Envoy. Warnings, such as parts that are left out, go
/// to standard error.
///
/// # Errors
/// The dump has a resource that cannot be parsed.
fn read_dump(name: &str, dump: &Bytes) -> Result<Document> {
    let text = std::str::from_utf8(dump).map_err(Failure::wrong)?;
    let document = text::read_as(Format::Json, name, text, &wire::text_options());
    let report = Report::new();
    for warning in &document.warnings {
        eprint!(
            "{}",
            report.show(Severity::Warning, &Message::from(warning))
        );
    }
    if document.errors.is_empty() {
        return Ok(document);
    }
    let errors = document.errors.iter();
    let errors = errors.map(|error| report.show(Severity::Error, &Message::from(error)));
    let count = count_of(document.errors.len(), "mistake");
    let failure = Failure::wrong(format!("{count}; nothing was written"));
    Err(failure.with_findings(errors.collect()))
}
