//! `trunkline apply`: the resources of a file, to a server. Few of them are one
//! change; many are sent in parts, each a change of its own, so that a server
//! goes on serving meanwhile.

mod bulk;
mod parts;
mod places;
mod survey;

use std::fs::File;
use std::io::{Cursor, Read as _};

use bytes::Bytes;
use http::Method;
use prost::Message as _;
use trunkline::wire;
use trunkline_proto::descriptor::types;
use trunkline_proto::discovery::{Any, DiscoveryResponse, Resource};
use trunkline_proto::text::{self, Document, Format};

use self::bulk::Bulk;
use self::places::Places;
use super::{ask, changes};
use crate::cli;
use crate::client::Client;
use crate::failure::{Failure, Result};

/// The maximum of resources that are one change.
const ONE_CHANGE: usize = 10_000;
/// A text of fewer bytes does not have more.
const SMALL: usize = 1 << 20;

pub(super) fn run(args: &cli::Apply) -> Result<()> {
    let client = Client::new(&args.remote)?;
    let applying = Applying { args, client };
    match text::is_binary(&args.file) {
        true => applying.binary(),
        false => applying.text(),
    }
}

struct Applying<'a> {
    args: &'a cli::Apply,
    client: Client,
}

impl Applying<'_> {
    /// The name of the file in messages.
    fn name(&self) -> &str {
        match self.args.file.as_str() {
            "-" => "standard input",
            file => file,
        }
    }

    fn wrong(&self, error: impl std::fmt::Display) -> Failure {
        Failure::wrong(format!("{}: {error}", self.name()))
    }

    fn binary(&self) -> Result<()> {
        let open = || File::open(&self.args.file).map_err(|error| self.wrong(error));
        let places = Places::binary(self.name());
        let found = survey::survey(open()?, &places)?;
        if self.args.atomic || found <= ONE_CHANGE {
            let bytes = self.read()?;
            return self.at_once("application/x-protobuf", bytes);
        }
        self.bulk(open()?, found, &places)
    }

    fn text(&self) -> Result<()> {
        let bytes = self.read()?;
        let format = Format::of(&self.args.file);
        let kind = match format {
            Format::Json => "application/json",
            Format::Yaml => "application/yaml",
        };
        if self.args.atomic || bytes.len() <= SMALL {
            return self.at_once(kind, bytes);
        }
        // The server reports as well that it is no text.
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return self.at_once(kind, bytes);
        };
        let document = text::read_as(format, self.name(), text, &wire::text_options());
        if !document.errors.is_empty() {
            let errors = document.errors.iter().map(|error| format!("\n  {error}"));
            let errors = errors.collect::<String>();
            return Err(self.wrong(format!("nothing was changed{errors}")));
        }
        let encoded = Bytes::from(encode(&document));
        let places = Places::text(self.name(), document);
        let found = survey::survey(Cursor::new(encoded.clone()), &places)?;
        if found <= ONE_CHANGE {
            return self.at_once(kind, bytes);
        }
        drop(bytes);
        self.bulk(Cursor::new(encoded), found, &places)
    }

    fn read(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = match self.args.file.as_str() {
            "-" => std::io::stdin().read_to_end(&mut bytes).map(drop),
            file => std::fs::read(file).map(|read| bytes = read),
        };
        read.map(|()| bytes).map_err(|error| self.wrong(error))
    }

    /// Sends all of it in one request.
    fn at_once(&self, kind: &'static str, bytes: Vec<u8>) -> Result<()> {
        let path = match self.args.dry_run {
            true => "/api/v1/resources?dry_run=true",
            false => "/api/v1/resources",
        };
        let file = self.name();
        let asked = self.client.ask(Method::POST, path, kind, bytes, file);
        changes::show(&ask(asked)?, file)
    }

    fn bulk<R: std::io::Read + std::io::Seek>(
        &self,
        source: R,
        found: usize,
        places: &Places,
    ) -> Result<()> {
        if self.args.dry_run {
            return Err(self.wrong(format!(
                "has {found} resources, which are applied in parts, and it cannot be tried what \
                 parts do together; check it with `trunkline validate`, or give --atomic"
            )));
        }
        let bulk = Bulk {
            client: &self.client,
            places,
            total: found,
        };
        bulk.run(source)
    }
}

/// A text as a binary file.
fn encode(document: &Document) -> Vec<u8> {
    let resources = document.resources.iter().map(|read| {
        let any = Any {
            type_url: read.type_url.clone(),
            value: read.body.clone(),
        };
        if read.wrapper == Resource::default() {
            return any;
        }
        let wrapper = Resource {
            resource: Some(any),
            ..read.wrapper.clone()
        };
        Any {
            type_url: types::RESOURCE.to_owned(),
            value: wrapper.encode_to_vec().into(),
        }
    });
    let response = DiscoveryResponse {
        resources: resources.collect(),
        ..DiscoveryResponse::default()
    };
    response.encode_to_vec()
}
