//! A file as a source: a `DiscoveryResponse` that is read whenever it is
//! replaced.
//!
//! ```text
//! notifications of the system ─┐
//! or a look each second        ┴─▶ signal ─▶ next: stamps differ? ─▶ read ─▶ bytes
//! ```
//!
//! A file is complete when it was moved to its place, or closed after writing
//! (E19). While somebody writes it in place, nothing is read.

mod signal;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use trunkline_proto::text::{self, Format, TextError};

use self::signal::Signal;
use super::discovery_text;
use crate::client::PathSource;
use crate::pem::Stamps;

/// Why a file has no response. The last good one stays.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    /// It cannot be read.
    #[error("{}: {source}; check the path and who may read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It is longer than the limit.
    #[error("{}: more than {limit} bytes; raise the limit, or split it", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// It is no `DiscoveryResponse`; each mistake has its file, line and field.
    #[error("{}", discovery_text::summarize(.0))]
    Text(Vec<TextError>),
}

/// A watched file.
#[derive(Debug)]
pub(crate) struct PathWatch {
    path: PathBuf,
    /// The most bytes of it.
    limit: usize,
    signal: Signal,
    /// The file as it was when it was read last.
    last_stamps: Option<Stamps>,
    /// Whether the file is to be read.
    is_due: bool,
    /// The last response.
    last: Option<Bytes>,
}

impl PathWatch {
    /// Watches a file of at most `limit` bytes, by the directory that the source
    /// names, or else that of the file.
    pub(crate) fn new(source: &PathSource, limit: usize) -> Self {
        let parent = || match source.path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let directory = source.watched_directory.clone().unwrap_or_else(parent);
        Self {
            signal: Signal::new(&directory, &source.path),
            path: source.path.clone(),
            limit,
            last_stamps: None,
            is_due: true,
            last: None,
        }
    }

    /// Waits for the next response, a `DiscoveryResponse` as bytes; the first
    /// comes at once. A response that equals the last one is passed over. Nothing
    /// is lost if the future is dropped.
    ///
    /// # Errors
    /// The file cannot be read, or holds no response. The same file is an error
    /// once.
    pub(crate) async fn next(&mut self) -> Result<Bytes, PathError> {
        loop {
            if let (false, Some(stamps)) = (self.is_due, &self.last_stamps) {
                self.signal.wait(&self.path, stamps).await;
                self.is_due = true;
            }
            // A file that changes after this has other stamps the next time.
            let stamps = Stamps::of([self.path.as_path()]);
            if self.last_stamps.as_ref() == Some(&stamps) {
                // The signal was of something else, or came twice.
                self.is_due = false;
                continue;
            }

            let (path, limit) = (self.path.clone(), self.limit);
            let reading = tokio::task::spawn_blocking(move || read(&path, limit)).await;
            self.last_stamps = Some(stamps);
            self.is_due = false;
            let response = match reading {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            };
            if self.last.as_ref() != Some(&response) {
                self.last = Some(response.clone());
                return Ok(response);
            }
        }
    }
}

/// Reads a file by its name: `.pb` is binary, `.json` JSON, anything else YAML; of
/// protobuf's text format the error says that it is not read. Blocks on the disk.
fn read(path: &Path, limit: usize) -> Result<Bytes, PathError> {
    let unreadable = |source| PathError::Read {
        path: path.to_owned(),
        source,
    };
    let mut contents = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    let read_limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(read_limit)
        .read_to_end(&mut contents)
        .map_err(unreadable)?;
    if contents.len() > limit {
        let path = path.to_owned();
        return Err(PathError::TooLong { path, limit });
    }

    let name = path.display().to_string();
    match is_text_format(path) {
        // The reader of documents says what to do.
        true => {
            let options = text::Options::default();
            let read = text::read_bytes(&name, Bytes::new(), &options);
            Err(PathError::Text(read.errors))
        }
        false if text::is_binary(&name) => Ok(contents.into()),
        false => discovery_text::read(Format::of(&name), &name, &contents, limit)
            .map_err(PathError::Text),
    }
}

/// Returns whether a file is in protobuf's own text format, by its name.
fn is_text_format(path: &Path) -> bool {
    let endings = ["pb_text", "pbtxt", "prototxt", "textproto"];
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        endings
            .iter()
            .any(|ending| ending.eq_ignore_ascii_case(extension))
    })
}
