//! `trunkline apply`: the resources of files, to a server. Few of them are one
//! request; many are sent in parts, which the server applies together.

mod bulk;
mod lease;
mod parts;

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::Path;

use bytes::Bytes;
use http::Method;
use trunkline::wire;
use trunkline_proto::pieces::{Pieces, PiecesError};
use trunkline_proto::text::{self, Document, Format};

use self::bulk::Bulk;
use super::encode::encode_documents;
use super::places::Places;
use super::sources::{Encoded, INPUT, INPUT_NAME, Input, Sources};
use super::wait::{self, MadeChange};
use super::{changes, run_request};
use crate::cli;
use crate::client::{BINARY, Call, Client, Detail, DetailPrinter, content_type};
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::output::count_of;
use crate::report::{Message, Report, Severity};

/// The maximum of resources that are sent as one request.
const ONE_REQUEST: usize = 10_000;
/// The size of texts that are one request in any case: they do not have more
/// resources.
const SMALL_TEXT: usize = 1 << 20;

/// The size from which a text is sent in binary parts, however few its resources
/// are: the server reads a text within a bound of memory.
const LARGE_TEXT: usize = 4 << 20;

/// Applies files to a server. With a lease, renews it until a signal ends the
/// program.
pub(super) fn run(args: &cli::Apply) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let applying = Applying {
        args,
        client: Client::new(&args.remote)?,
        input: Input::default(),
        report: Report::new(),
    };
    match args.lease {
        None => run_request(async {
            let changes_made = applying.send_files().await?;
            wait::wait_for_clients(&applying.client, &args.wait, changes_made).await
        }),
        Some(lease) => run_request(lease::run(applying, lease)),
    }
}

/// Applies resources that were fetched from elsewhere. Messages call them
/// `name`.
pub(super) fn run_with_body(args: &cli::Apply, name: &str, body: FetchedBody) -> Result<()> {
    let applying = Applying {
        args,
        client: Client::new(&args.remote)?,
        input: Input::default(),
        report: Report::new(),
    };
    run_request(async {
        let one_file = OneFile {
            applying: &applying,
            file: name,
            fetched_body: Some(body),
        };
        let change = one_file.send().await?;
        wait::wait_for_clients(&applying.client, &args.wait, change).await
    })
}

/// Contents that are in no file.
pub(super) enum FetchedBody {
    /// A text in JSON.
    Json(Bytes),
    /// A binary `DiscoveryResponse`.
    Binary(Bytes),
}

/// Files that are applied to a server.
struct Applying<'a> {
    args: &'a cli::Apply,
    client: Client,
    /// Kept, because the files are applied again if the server loses them.
    input: Input,
    /// Shows mistakes and warnings, with the lines of the files.
    report: Report,
}

impl Applying<'_> {
    /// Reads the files and sends them. A single file is sent unchanged if it
    /// has few resources; several files are encoded as one.
    async fn send_files(&self) -> Result<MadeChange> {
        self.report.forget_texts();
        match &self.args.files[..] {
            [file] if !Path::new(file).is_dir() => {
                let one_file = OneFile {
                    applying: self,
                    file,
                    fetched_body: None,
                };
                one_file.send().await
            }
            _ => self.send_several().await,
        }
    }

    /// Checks several files, and sends their resources as one binary file.
    async fn send_several(&self) -> Result<MadeChange> {
        let sources = Sources::read(&self.args.files, &self.input)?;
        sources.checked_items()?;
        let encoding = sources.encode();
        drop(sources);
        if self.args.files.iter().any(|file| file == INPUT) {
            self.report.add_text(INPUT_NAME, &self.input.read()?);
        }

        let Encoded {
            body,
            places,
            allow_removal,
        } = encoding;
        let resource_count = count_resources(&places.names(), Cursor::new(body.clone()))?;
        let removal_flag = match allow_removal && !self.args.yes {
            true => "&yes=true",
            false => "",
        };
        let query = format!("{}{removal_flag}", self.query_parameters());

        if resource_count > ONE_REQUEST {
            return self
                .send_parts(Cursor::new(body), resource_count, &places, query)
                .await;
        }
        let locate = |detail| places.locate(detail);
        self.send_whole(BINARY, body.into(), query, &locate).await
    }

    /// Returns the parameters of a request, from the flags.
    fn query_parameters(&self) -> String {
        let mut query = self.args.change.query_parameters();
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

    /// Sends a whole file in one request, and prints each change. `locate`
    /// finds the place of a mistake or a warning in the files.
    async fn send_whole(
        &self,
        content_type: &'static str,
        body: Vec<u8>,
        query: String,
        locate: &dyn Fn(Detail) -> Message,
    ) -> Result<MadeChange> {
        let call = Call {
            method: Method::POST,
            path: &format!("/api/v1/resources?{query}"),
            content_type,
            body,
            file: "",
        };
        let report = &self.report;
        let printer = DetailPrinter { report, locate };
        let response = self.client.call_with_places(call, &printer).await?;
        changes::print_outcome(&response, &printer)
    }

    /// Sends a binary file in parts. `resource_count` is the number of its
    /// resources.
    ///
    /// # Errors
    /// A part is refused.
    async fn send_parts<R: Read + Seek>(
        &self,
        source: R,
        resource_count: usize,
        places: &Places,
        query: String,
    ) -> Result<MadeChange> {
        let bulk = Bulk {
            client: &self.client,
            report: &self.report,
            places,
            total: resource_count,
            query,
        };
        bulk.run(source).await
    }
}

/// One file that is applied, or standard input, or what was fetched.
struct OneFile<'a> {
    applying: &'a Applying<'a>,
    file: &'a str,
    /// In place of a file.
    fetched_body: Option<FetchedBody>,
}

/// Bytes that are read a part at a time.
trait Source: Read + Seek {}

impl<R: Read + Seek> Source for R {}

impl OneFile<'_> {
    /// Sends the file, as binary or as text. The ending of a file's name
    /// decides which.
    async fn send(&self) -> Result<MadeChange> {
        let is_binary = match &self.fetched_body {
            None => text::is_binary(self.file),
            Some(body) => matches!(body, FetchedBody::Binary(_)),
        };
        match is_binary {
            true => self.apply_binary().await,
            false => self.apply_text().await,
        }
    }

    /// Returns the name of the file for messages.
    fn name(&self) -> &str {
        match self.file {
            INPUT if self.fetched_body.is_none() => INPUT_NAME,
            file => file,
        }
    }

    /// Makes a failure of an error about the file, with its name.
    fn failure(&self, error: impl std::fmt::Display) -> Failure {
        Failure::wrong(format!("{}: {error}", self.name()))
    }

    /// Applies a binary file, in parts if it has more than [`ONE_REQUEST`]
    /// resources. A file that is sent in parts is never in memory as a whole.
    async fn apply_binary(&self) -> Result<MadeChange> {
        let places = Places::binary(self.name());
        let resource_count = count_resources(self.name(), self.open()?)?;
        if resource_count <= ONE_REQUEST {
            let bytes = self.read_all()?;
            return self.send_whole(BINARY, bytes).await;
        }
        self.send_parts(self.open()?, resource_count, &places).await
    }

    /// Opens a binary file.
    fn open(&self) -> Result<Box<dyn Source>> {
        match &self.fetched_body {
            Some(FetchedBody::Json(bytes) | FetchedBody::Binary(bytes)) => {
                Ok(Box::new(Cursor::new(bytes.clone())))
            }
            None => match File::open(self.file) {
                Ok(file) => Ok(Box::new(file)),
                Err(error) => Err(self.failure(error)),
            },
        }
    }

    /// Applies a file in YAML or JSON. If it is long or has many resources,
    /// encodes it as a binary file and sends that in parts.
    async fn apply_text(&self) -> Result<MadeChange> {
        let bytes = self.read_all()?;
        let format = match self.fetched_body {
            Some(_) => Format::Json,
            None => Format::of(self.file),
        };
        let content_type = content_type(format);
        if bytes.len() <= SMALL_TEXT {
            return self.send_whole(content_type, bytes).await;
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            // The server makes the error message for this mistake.
            return self.send_whole(content_type, bytes).await;
        };

        let document = self.parse(format, text)?;
        let body = Bytes::from(encode_documents([&document]));
        let places = Places::files([(self.name().to_owned(), document)]);
        let resource_count = count_resources(self.name(), Cursor::new(body.clone()))?;
        if resource_count <= ONE_REQUEST && bytes.len() < LARGE_TEXT {
            return self.send_whole(content_type, bytes).await;
        }
        drop(bytes);
        self.send_parts(Cursor::new(body), resource_count, &places)
            .await
    }

    /// Parses a text as a document.
    ///
    /// # Errors
    /// The text has mistakes. The failure lists all of them.
    fn parse(&self, format: Format, text: &str) -> Result<Document> {
        let document = text::read_as(format, self.name(), text, &wire::text_options());
        if document.errors.is_empty() {
            return Ok(document);
        }
        let count = count_of(document.errors.len(), "mistake");
        let findings = document.errors.iter().map(|error| {
            let message = Message::from(error);
            self.applying.report.show(Severity::Error, &message)
        });
        let failure = Failure::wrong(format!("{count}; nothing was changed"));
        Err(failure.with_findings(findings.collect()))
    }

    /// Returns the bytes of the fetched resources, of standard input or of the
    /// file.
    fn read_all(&self) -> Result<Vec<u8>> {
        if let Some(FetchedBody::Json(bytes) | FetchedBody::Binary(bytes)) = &self.fetched_body {
            return Ok(bytes.to_vec());
        }
        match self.file {
            INPUT => Ok(self.applying.input.read()?.into()),
            file => std::fs::read(file).map_err(|error| self.failure(error)),
        }
    }

    /// Sends the whole file in one request.
    async fn send_whole(&self, content_type: &'static str, body: Vec<u8>) -> Result<MadeChange> {
        let query = self.applying.query_parameters();
        let locate = |detail: Detail| detail.in_file(self.name());
        self.applying.report.add_text(self.name(), &body);
        self.applying
            .send_whole(content_type, body, query, &locate)
            .await
    }

    /// Sends a binary file in parts. `resource_count` is the number of its
    /// resources.
    async fn send_parts<R: Read + Seek>(
        &self,
        source: R,
        resource_count: usize,
        places: &Places,
    ) -> Result<MadeChange> {
        let query = self.applying.query_parameters();
        self.applying
            .send_parts(source, resource_count, places, query)
            .await
    }
}

/// Reads a binary file to its end, and returns the number of its resources,
/// virtual hosts included. Does not check the bodies, nor keep them in memory.
///
/// # Errors
/// The file is not a binary `DiscoveryResponse`.
fn count_resources(file: &str, source: impl Read + Seek) -> Result<usize> {
    let mut pieces = Pieces::new(source);
    let not_binary = |error: PiecesError| {
        Failure::wrong(format!(
            "{file}: is not a binary DiscoveryResponse: {error}; nothing was changed"
        ))
    };
    let mut count = 0;
    while pieces.next().map_err(not_binary)?.is_some() {
        count += 1;
    }
    Ok(count)
}
