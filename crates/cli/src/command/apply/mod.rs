//! `trunkline apply`: the resources of a file, to a server. Few of them are one
//! request; many are sent in parts, which the server applies together.

mod bulk;
mod lease;
mod parts;
mod places;

use std::cell::OnceCell;
use std::fs::File;
use std::io::{Cursor, Read, Seek};

use bytes::Bytes;
use http::Method;
use prost::Message as _;
use trunkline::wire;
use trunkline_proto::descriptor::types;
use trunkline_proto::discovery::{Any, DiscoveryResponse, Resource};
use trunkline_proto::pieces::{Pieces, PiecesError};
use trunkline_proto::text::{self, Document, Format};

use self::bulk::Bulk;
use self::places::Places;
use super::{changes, run_request};
use crate::cli;
use crate::client::{BINARY, Call, Client, content_type};
use crate::failure::{Failure, Result};

/// The maximum of resources that are sent as one request.
const ONE_REQUEST: usize = 10_000;
/// The size of texts that are one request in any case: they do not have more
/// resources.
const SMALL_TEXT: usize = 1 << 20;

/// Applies a file to a server. With a lease, keeps it until a signal ends the
/// program.
pub(super) fn run(args: &cli::Apply) -> Result<()> {
    let applying = Applying {
        args,
        client: Client::new(&args.remote)?,
        input: OnceCell::new(),
    };
    match args.lease {
        None => run_request(applying.send_file()),
        Some(lease) => run_request(lease::run(applying, lease)),
    }
}

/// A file that is applied to a server.
struct Applying<'a> {
    args: &'a cli::Apply,
    client: Client,
    /// Standard input, which can be read once only.
    input: OnceCell<Vec<u8>>,
}

impl Applying<'_> {
    /// Sends the file. By its ending it is binary, or else a text.
    async fn send_file(&self) -> Result<()> {
        match text::is_binary(&self.args.file) {
            true => self.apply_binary().await,
            false => self.apply_text().await,
        }
    }

    /// Returns the name of the file for messages.
    fn file_name(&self) -> &str {
        match self.args.file.as_str() {
            "-" => "standard input",
            file => file,
        }
    }

    /// Returns the parameters of a request.
    fn query(&self) -> String {
        let mut query = self.args.change.query();
        for (is_set, name) in [(self.args.replace, "replace"), (self.args.yes, "yes")] {
            if is_set {
                query.push_str(&format!("&{name}=true"));
            }
        }
        if let Some(lease) = self.args.lease {
            query.push_str(&format!("&lease={}", lease.text()));
        }
        query
    }

    /// Makes a failure of an error about the file, with its name.
    fn failure(&self, error: impl std::fmt::Display) -> Failure {
        Failure::wrong(format!("{}: {error}", self.file_name()))
    }

    /// Applies a binary file: in one request if its resources are few, or else in
    /// parts. In parts, it is never in memory as a whole.
    async fn apply_binary(&self) -> Result<()> {
        let open = || File::open(&self.args.file).map_err(|error| self.failure(error));
        let places = Places::binary(self.file_name());
        let found = self.count_resources(open()?)?;
        if found <= ONE_REQUEST {
            let bytes = self.read_all()?;
            return self.send_whole(BINARY, bytes).await;
        }
        self.send_parts(open()?, found, &places).await
    }

    /// Applies a file in YAML or JSON: in one request if its resources are few, or
    /// else in parts. For these it is encoded as a binary file.
    async fn apply_text(&self) -> Result<()> {
        let bytes = self.read_all()?;
        let format = Format::of(&self.args.file);
        let content_type = content_type(format);
        if bytes.len() <= SMALL_TEXT {
            return self.send_whole(content_type, bytes).await;
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            // The server says what is wrong with it.
            return self.send_whole(content_type, bytes).await;
        };

        let document = self.parse(format, text)?;
        let encoded = Bytes::from(encode(&document));
        let places = Places::text(self.file_name(), document);
        let found = self.count_resources(Cursor::new(encoded.clone()))?;
        if found <= ONE_REQUEST {
            return self.send_whole(content_type, bytes).await;
        }
        drop(bytes);
        self.send_parts(Cursor::new(encoded), found, &places).await
    }

    /// Reads a whole binary file, and returns the number of its resources,
    /// virtual hosts included. Bodies are not checked, and not kept in memory.
    ///
    /// # Errors
    /// The file is not a binary `DiscoveryResponse`.
    fn count_resources(&self, source: impl Read + Seek) -> Result<usize> {
        let mut pieces = Pieces::new(source);
        let not_binary = |error: PiecesError| {
            self.failure(format!(
                "is not a binary DiscoveryResponse: {error}; nothing was changed"
            ))
        };
        let mut count = 0;
        while pieces.next().map_err(not_binary)?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Parses a text.
    ///
    /// # Errors
    /// It has a mistake; the failure lists all of them.
    fn parse(&self, format: Format, text: &str) -> Result<Document> {
        let document = text::read_as(format, self.file_name(), text, &wire::text_options());
        if document.errors.is_empty() {
            return Ok(document);
        }
        let lines = document.errors.iter().map(|error| format!("\n  {error}"));
        let errors: String = lines.collect();
        Err(self.failure(format!("nothing was changed{errors}")))
    }

    /// Reads the whole file, or standard input.
    fn read_all(&self) -> Result<Vec<u8>> {
        if self.args.file != "-" {
            return std::fs::read(&self.args.file).map_err(|error| self.failure(error));
        }
        if let Some(input) = self.input.get() {
            return Ok(input.clone());
        }
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        read.map_err(|error| self.failure(error))?;
        if self.args.lease.is_some() {
            // It is applied again if the server loses it.
            let _ = self.input.set(bytes.clone());
        }
        Ok(bytes)
    }

    /// Sends the whole file in one request, and prints each change.
    async fn send_whole(&self, content_type: &'static str, body: Vec<u8>) -> Result<()> {
        let file = self.file_name();
        let call = Call {
            method: Method::POST,
            path: &format!("/api/v1/resources?{}", self.query()),
            content_type,
            body,
            file,
        };
        changes::print_outcome(&self.client.call(call).await?, file)
    }

    /// Sends a binary file in parts; `found` is the number of its resources.
    ///
    /// # Errors
    /// A part is refused.
    async fn send_parts<R: Read + Seek>(
        &self,
        source: R,
        found: usize,
        places: &Places,
    ) -> Result<()> {
        let bulk = Bulk {
            client: &self.client,
            places,
            total: found,
            query: self.query(),
        };
        bulk.run(source).await
    }
}

/// Encodes the resources of a text as a binary file: a `DiscoveryResponse` with
/// each in its wrapper, if it has one.
fn encode(document: &Document) -> Vec<u8> {
    let resources = document.resources.iter().map(|read| {
        let any = Any {
            type_url: read.type_url.clone(),
            value: read.body.clone(),
        };
        match read.wrapper == Resource::default() {
            true => any,
            false => wrap(any, &read.wrapper),
        }
    });
    let response = DiscoveryResponse {
        resources: resources.collect(),
        ..DiscoveryResponse::default()
    };
    response.encode_to_vec()
}

/// Puts a resource into a copy of a wrapper that has no resource yet.
fn wrap(any: Any, wrapper: &Resource) -> Any {
    let wrapper = Resource {
        resource: Some(any),
        ..wrapper.clone()
    };
    Any {
        type_url: types::RESOURCE.to_owned(),
        value: wrapper.encode_to_vec().into(),
    }
}
