//! A document to resources, text or binary.

#[cfg(test)]
mod tests;

use std::io::{self, Cursor, Read, Seek};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use memchr::memmem;
use trunkline_core::kind;
use trunkline_proto::Path;
use trunkline_proto::redact::REDACTED;
use trunkline_proto::text::{self, Format, TextError};

use super::binary;
use super::document::Document;
use super::edit::Edit;
use super::finding::{Fault, Finding, MOST_FINDINGS};
use super::guard::Guard;
use super::place::At;
use super::secrets::{self, SecretFiles};
use super::set::{ContentSet, Dangling, Effect, Proposal, Settlement};
use crate::wire::{self, Intake};

/// Finds the text that stands for a secret. A body has a million bytes, or
/// there are a million bodies.
static REDACTED_TEXT: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(REDACTED));

/// The form of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// By the extension of its name: `.json`, `.pb`, or else YAML.
    #[default]
    ByName,
    /// A text, whatever its name.
    Text(Format),
    /// A binary `DiscoveryResponse`, whatever its name.
    Binary,
    /// A part of a binary `DiscoveryResponse` that was split, with the position
    /// of its first resource in the whole: findings tell places in the whole.
    Part(FirstOfPart),
}

/// The position of the first resource of a part in the whole document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstOfPart {
    /// The index of the resource.
    pub resource: usize,
    /// The index of its first virtual host in the part: zero, unless the
    /// resource is a route configuration that an earlier part began.
    pub host: usize,
}

/// The result of decoding a document.
#[derive(Debug)]
pub struct Decoded {
    /// All resources, those of a document with mistakes too.
    pub document: Document,
    /// Mistakes.
    pub errors: Vec<Finding>,
    /// Warnings.
    pub warnings: Vec<Finding>,
}

/// Decodes a document: its resources, each validated by Envoy's rules, with
/// their places. The limits of `options` are for texts; the length of a binary
/// document is the caller's to limit. Files that secrets name are not read:
/// each is a warning.
///
/// # Errors
/// If the source cannot be read. Mistakes of the document are no error: they
/// are findings beside the resources.
pub fn decode(
    file: &Arc<str>,
    form: Form,
    source: impl Read + Seek,
    options: &text::Options,
) -> io::Result<Decoded> {
    decode_any(file, form, source, options, None)
}

/// Decodes a document as [`decode`] does, with the contents of the `files` that
/// its secrets name by relative paths.
///
/// # Errors
/// If the source cannot be read. Files that cannot be read are mistakes of the
/// document.
pub fn decode_with_files(
    file: &Arc<str>,
    form: Form,
    source: impl Read + Seek,
    options: &text::Options,
    files: &dyn SecretFiles,
) -> io::Result<Decoded> {
    decode_any(file, form, source, options, Some(files))
}

/// Decodes a document; `files` has the contents of the files that its secrets
/// name.
fn decode_any(
    file: &Arc<str>,
    form: Form,
    source: impl Read + Seek,
    options: &text::Options,
    files: Option<&dyn SecretFiles>,
) -> io::Result<Decoded> {
    let whole = FirstOfPart::default();
    let mut decoded = match form {
        Form::Binary => binary::decode(file, source, whole, files)?,
        Form::Part(first) => binary::decode(file, source, first, files)?,
        Form::ByName if text::is_binary(file) => binary::decode(file, source, whole, files)?,
        Form::ByName => decode_text(file, None, source, options, files)?,
        Form::Text(format) => decode_text(file, Some(format), source, options, files)?,
    };

    decoded.add_redacted();
    Ok(decoded)
}

/// Decodes a text. Without a `format`, the name of the file decides which one
/// it is.
fn decode_text(
    file: &Arc<str>,
    format: Option<Format>,
    source: impl Read + Seek,
    options: &text::Options,
    files: Option<&dyn SecretFiles>,
) -> io::Result<Decoded> {
    let bytes = read_up_to(source, options.limits.bytes)?;
    let ends_line = bytes.ends_with(b"\n");
    let parsed = match format {
        None => text::read_bytes(file, bytes, options),
        Some(format) => text::read_text_as(format, file, &bytes, options),
    };

    let mut decoded = Decoded::empty(file);
    decoded.add_text(parsed, files);
    decoded.document.ends_line = ends_line;
    Ok(decoded)
}

/// Finds the contradictions among the resources of some documents, each at the
/// later of the two resources. References are not checked.
pub fn find_contradictions(documents: impl IntoIterator<Item = Document>) -> Vec<Finding> {
    let numbered = documents.into_iter().enumerate();
    let edits = numbered.map(|(root, document)| Edit::File {
        root,
        name: Arc::clone(&document.file),
        document: Some(document),
    });
    let proposal = Proposal {
        origin: "",
        edits: edits.collect(),
        dangling: Dangling::Warn,
        is_complete: false,
        effect: Effect::Held,
        guard: Guard::Off,
    };

    let settlement: Settlement<()> = ContentSet::default().settle(proposal, |_| Ok(()));
    let rejections = settlement.rejections.into_iter();
    rejections
        .flat_map(|rejection| rejection.findings)
        .collect()
}

/// Builds the tables that decoding needs. They are built at the first use,
/// which would make the first document slower than others.
pub fn warm_up() {
    let text = format!("resources: [{{'@type': {}, name: a}}]", kind::CDS);
    let options = wire::text_options();
    // A text in memory can be read, and what it holds does not matter.
    let _ = decode(&"".into(), Form::ByName, Cursor::new(text), &options);
    let any = b"\x12\x3c\x0a\x37type.googleapis.com/envoy.config.cluster.v3.Cluster\x12\x01a";
    let _ = decode(&"".into(), Form::Binary, Cursor::new(any), &options);
}

/// Reads a text, but no more than one byte beyond the limit: the parser then
/// reports that the text is too long.
fn read_up_to(source: impl Read, limit: usize) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    source.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

impl Decoded {
    /// Returns the result of a document of which nothing was read yet.
    pub(super) fn empty(file: &Arc<str>) -> Self {
        Self {
            document: Document::empty(file),
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Returns the result of a document of which nothing can be read, for this
    /// reason.
    #[must_use]
    pub fn of_error(finding: Finding) -> Self {
        let mut decoded = Self::empty(&finding.place.file);
        decoded.errors.push(finding);
        decoded
    }

    /// Returns all mistakes, and after them the contradictions among the
    /// resources. References are not checked.
    #[must_use]
    pub fn into_all_errors(self) -> Vec<Finding> {
        let Self {
            document,
            mut errors,
            ..
        } = self;
        errors.extend(find_contradictions([document]));
        errors
    }

    /// Adds a mistake, unless there are [`MOST_FINDINGS`] already.
    pub(super) fn add_error(&mut self, finding: impl FnOnce() -> Finding) {
        if self.errors.len() < MOST_FINDINGS {
            self.errors.push(finding());
        }
    }

    /// Adds a warning, unless there are [`MOST_FINDINGS`] already.
    pub(super) fn add_warning(&mut self, finding: impl FnOnce() -> Finding) {
        if self.warnings.len() < MOST_FINDINGS {
            self.warnings.push(finding());
        }
    }

    /// Adds a mistake for each resource in which a text stands for a secret, as
    /// in the output of `get`: applying it would replace the secret.
    fn add_redacted(&mut self) {
        let redacted = self.document.items.iter().filter(|item| {
            let resource = &item.resource;
            let rare = resource.facts().rare.as_deref();
            let metadata = rare.and_then(|rare| rare.metadata.as_deref());
            let parts = [resource.body.as_deref(), metadata];
            let mut parts = parts.into_iter().flatten();
            parts.any(|part| REDACTED_TEXT.find(part).is_some())
        });
        let findings = redacted.map(|item| self.document.finding(item, Fault::Redacted));
        let room = MOST_FINDINGS.saturating_sub(self.errors.len());
        let findings: Vec<Finding> = findings.take(room).collect();
        self.errors.extend(findings);
    }

    /// Adds the resources of a text, with all findings of its parser and of
    /// Envoy's rules. A resource with mistakes is added all the same.
    fn add_text(&mut self, parsed: text::Document, files: Option<&dyn SecretFiles>) {
        let file = Arc::clone(&self.document.file);
        let finding = |error| text_finding(&file, error);
        self.errors.extend(parsed.errors.into_iter().map(finding));
        self.warnings
            .extend(parsed.warnings.into_iter().map(finding));
        self.document.items.reserve(parsed.resources.len());
        self.document.allow_removal = parsed.allow_removal;

        let mut intake = Intake::default();
        // Each resource is freed before the next is validated, since its tree
        // takes much more memory than its body.
        for mut resource in parsed.resources {
            if secrets::is_secret(&resource.type_url) {
                self.read_secret(&mut resource, files);
            }
            for error in resource.validate() {
                self.add_error(|| text_finding(&file, error));
            }
            self.add_resource(&mut intake, &resource);
        }
    }

    /// Reads the files that a secret names into it, and adds its faults.
    fn read_secret(&mut self, secret: &mut text::Resource, files: Option<&dyn SecretFiles>) {
        let faults = secrets::read_and_check(secret, files);
        let file = Arc::clone(&self.document.file);
        for (inner, fault) in faults.errors {
            self.add_error(|| place_in(secret, &inner).finding(&file, fault));
        }
        for (inner, fault) in faults.warnings {
            self.add_warning(|| place_in(secret, &inner).finding(&file, fault));
        }
    }

    /// Adds a resource of a text as its variants, with the virtual hosts that
    /// are written in it. A mistake of its wrapper or its conditions is added
    /// instead.
    fn add_resource(&mut self, intake: &mut Intake, parsed: &text::Resource) {
        let file = Arc::clone(&self.document.file);
        let place_of = |inner: &Path| place_in(parsed, inner);
        match intake.accept_text(parsed) {
            Ok(mut accepted) => {
                for (inner, doubt) in std::mem::take(&mut accepted.doubts) {
                    self.add_warning(|| place_of(&inner).finding(&file, Fault::Doubt(doubt)));
                }
                let host_at = |index| place_of(&parsed.item("virtual_hosts", index));
                let resource_place = place_of(&Path::default());
                let vhds = intake.vhds();
                self.document
                    .add_accepted(&vhds, accepted, &resource_place, host_at);
            }
            Err(error) => {
                let (inner, error) = error.place();
                self.add_error(|| place_of(&inner).finding(&file, Fault::Accept(error)));
            }
        }
    }
}

/// Returns the place of a part of a resource, by its path from within the
/// resource.
pub(super) fn place_in(read: &text::Resource, inner: &Path) -> At {
    let field = read.path.join(inner).to_string();
    At::text(read.position(inner), field)
}

/// Makes the finding of a mistake in a text, at its line and its field.
pub(super) fn text_finding(file: &Arc<str>, error: TextError) -> Finding {
    let fault = Fault::Text(error.problem);
    At::text(error.at, error.path).finding(file, fault)
}
