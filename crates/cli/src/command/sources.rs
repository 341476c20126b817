//! The files that `-f` names: files, directories of files, standard input. They
//! are read as one, and a mistake is told with its file and its line.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::{Cursor, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use trunkline::checked::{Decoded, Fault, Finding, Form, Item, decode, find_contradictions};
use trunkline::wire;
use trunkline_proto::text::{self, Document, Format};

use super::encode::encode_documents;
use super::places::Places;
use crate::failure::{Failure, Result};
use crate::report::{Report, Severity, count_mistakes};

/// The word for standard input on the command line.
pub(super) const INPUT: &str = "-";
/// The name of standard input in messages.
pub(super) const INPUT_NAME: &str = "standard input";

/// Standard input, which can be read once only.
#[derive(Default)]
pub(super) struct Input(OnceCell<Bytes>);

impl Input {
    /// Reads standard input to its end. Later calls return the same bytes.
    pub(super) fn read(&self) -> Result<Bytes> {
        if let Some(bytes) = self.0.get() {
            return Ok(bytes.clone());
        }
        let mut bytes = Vec::new();
        let result = std::io::stdin().read_to_end(&mut bytes);
        result.map_err(|error| Failure::wrong(format!("{INPUT_NAME}: {error}")))?;
        Ok(self.0.get_or_init(|| bytes.into()).clone())
    }
}

/// One file, or standard input.
struct Source {
    name: Arc<str>,
    form: Form,
    bytes: Bytes,
}

impl Source {
    /// Parses the file. Mistakes are in the document.
    fn parse(&self) -> Document {
        let options = wire::text_options();
        match self.form {
            Form::Text(format) => text::read_text_as(format, &self.name, &self.bytes, &options),
            _ => text::read_bytes(&self.name, self.bytes.clone(), &options),
        }
    }

    /// Decodes the file as a server would, each resource with its place.
    fn decode(&self) -> Result<Decoded> {
        let source = Cursor::new(self.bytes.clone());
        let decoding = decode(&self.name, self.form, source, &wire::text_options());
        decoding.map_err(|error| Failure::wrong(format!("{}: {error}", self.name)))
    }
}

/// All files that `-f` names.
pub(super) struct Sources {
    files: Vec<Source>,
    /// Shows mistakes, with the lines of the files.
    report: Report,
}

/// The resources of files, as one binary file.
pub(super) struct Encoded {
    pub(super) body: Bytes,
    /// The places of its resources in the files.
    pub(super) places: Places,
    /// Whether a file says `allow_removal: true`.
    pub(super) allow_removal: bool,
}

impl Sources {
    /// Reads files, and the files of directories as `serve --config` does. A
    /// file that is reached twice counts only once.
    ///
    /// # Errors
    /// A path cannot be read, or there are no files.
    pub(super) fn read(paths: &[String], input: &Input) -> Result<Self> {
        let disk_paths = paths.iter().filter(|path| *path != INPUT);
        let disk_paths: Vec<PathBuf> = disk_paths.map(PathBuf::from).collect();
        let report = Report::new();
        let file_paths = trunkline_store::find_files(&disk_paths);
        let file_paths = file_paths.map_err(|findings| mistakes(&report, findings))?;

        let mut sources = Vec::new();
        for path in file_paths {
            let name: Arc<str> = path.display().to_string().into();
            let bytes =
                std::fs::read(&path).map_err(|error| Failure::wrong(format!("{name}: {error}")))?;
            sources.push(Source {
                name,
                form: Form::ByName,
                bytes: bytes.into(),
            });
        }
        if paths.iter().any(|path| path == INPUT) {
            let bytes = input.read()?;
            report.add_text(INPUT_NAME, &bytes);
            sources.push(Source {
                name: INPUT_NAME.into(),
                form: Form::Text(Format::Yaml),
                bytes,
            });
        }

        match sources.is_empty() {
            false => Ok(Self {
                files: sources,
                report,
            }),
            true => Err(no_files(paths)),
        }
    }

    /// Returns the report that shows mistakes, with the lines of the files.
    pub(super) fn report(&self) -> &Report {
        &self.report
    }

    /// Decodes all files and returns their resources, without checking them.
    ///
    /// # Errors
    /// A file cannot be parsed. A redacted secret is no mistake here, since the
    /// caller needs only the names.
    pub(super) fn named_items(&self) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        let mut errors: Vec<Finding> = Vec::new();
        for source in &self.files {
            let decoding = source.decode()?;
            let mistakes = decoding.errors.into_iter();
            errors.extend(mistakes.filter(|error| error.fault != Fault::Redacted));
            items.extend(decoding.document.items);
        }
        match errors.is_empty() {
            true => Ok(items),
            false => Err(self.failure(errors)),
        }
    }

    /// Decodes all files, checks them alone and against each other, and returns
    /// their resources. Only the server can check references to resources
    /// outside of the files.
    ///
    /// # Errors
    /// A file has a mistake, or two files contradict each other.
    pub(super) fn checked_items(&self) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        let mut errors: Vec<Finding> = Vec::new();
        let mut documents = Vec::new();
        for source in &self.files {
            let decoding = source.decode()?;
            errors.extend(decoding.errors);
            items.extend(decoding.document.items.iter().cloned());
            documents.push(decoding.document);
        }
        errors.extend(find_contradictions(documents));
        match errors.is_empty() {
            true => Ok(items),
            false => Err(self.failure(errors)),
        }
    }

    /// Encodes the resources of all files as one binary file. The files must
    /// have been checked.
    pub(super) fn encode(&self) -> Encoded {
        let names = self.files.iter().map(|source| source.name.to_string());
        let documents: Vec<Document> = self.files.iter().map(Source::parse).collect();
        Encoded {
            body: encode_documents(&documents).into(),
            allow_removal: documents.iter().any(|document| document.allow_removal),
            places: Places::files(names.zip(documents)),
        }
    }

    /// Makes the failure of mistakes, in the order of the files and their lines.
    fn failure(&self, mut findings: Vec<Finding>) -> Failure {
        let names = self.files.iter().map(|source| &*source.name);
        let ranks: HashMap<&str, usize> = names.zip(0..).collect();
        let rank = |finding: &Finding| ranks.get(&*finding.place.file).copied();
        findings.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.compare(b)));
        mistakes(&self.report, findings)
    }
}

/// Makes the failure of paths that have no files.
pub(super) fn no_files(paths: &[String]) -> Failure {
    Failure::wrong(format!(
        "{}: has no files of resources; their names end in .yaml, .yml, .json or .pb",
        paths.join(", ")
    ))
}

/// Makes the failure of mistakes, each with its place.
fn mistakes(report: &Report, findings: Vec<Finding>) -> Failure {
    let errors = findings.iter().map(|finding| (Severity::Error, finding));
    let count = count_mistakes(&findings);
    let failure = Failure::wrong(format!("{count}; nothing was changed"));
    failure.with_findings(report.list(errors))
}
