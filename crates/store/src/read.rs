//! One file: its contents, unless they are those that were read before.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;

use trunkline::checked::{Decoded, Fault, Finding, Form, SecretFault, decode_with_files};
use trunkline_proto::text;
use twox_hash::XxHash3_128;

use crate::attachments::{AttachmentReader, Attachments};

/// Bytes that are hashed at a time.
const HASHED_BYTES: usize = 1 << 20;

/// The result of reading.
pub(crate) struct Outcome {
    pub(crate) decoded: Decoded,
    /// The hash of the bytes, with those of the attachments; `None` if they
    /// could not be read.
    pub(crate) hash: Option<u128>,
    /// The files that its secrets name.
    pub(crate) attachments: Attachments,
}

/// The state of a file as it was last read.
pub(crate) struct Known {
    pub(crate) hash: u128,
    pub(crate) attachments: Attachments,
}

impl Outcome {
    /// Returns whether the only mistakes are certificates and keys that do not
    /// belong together: one of the two was replaced, and the other will be.
    pub(crate) fn is_pair_half_replaced(&self) -> bool {
        let errors = &self.decoded.errors;
        let is_mismatch = |error: &Finding| error.fault == Fault::Secret(SecretFault::Mismatch);
        !errors.is_empty() && errors.iter().all(is_mismatch)
    }
}

/// Reads and decodes the file at a path. `file` is its name in findings.
/// Returns `None` if its bytes and those of its attachments are still the
/// `known` ones. A file that cannot be read has that as its mistake.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    known: Option<&Known>,
    options: &text::Options,
) -> Option<Outcome> {
    let outcome = try_read(path, file, known, options);
    outcome.unwrap_or_else(|error| Some(failed_outcome(file, Fault::of_path(&error))))
}

/// Decodes a text that is in no file. `name` is its name in findings. Relative
/// paths in its secrets start from the current directory.
pub(crate) fn read_text(name: &Arc<str>, text: &[u8], options: &text::Options) -> Outcome {
    let reader = AttachmentReader::new(Path::new(""));
    let form = Form::Text(text::Format::Yaml);
    let decoded = decode_with_files(name, form, io::Cursor::new(text), options, &reader);
    match decoded {
        Ok(decoded) => Outcome {
            decoded,
            hash: None,
            attachments: reader.finish(),
        },
        Err(error) => failed_outcome(name, Fault::of_path(&error)),
    }
}

/// Makes the outcome of a file that cannot be read: one mistake, and no hash,
/// so that the file is read again.
fn failed_outcome(file: &Arc<str>, fault: Fault) -> Outcome {
    Outcome {
        decoded: Decoded::of_error(Finding::whole(file, fault)),
        hash: None,
        attachments: Attachments::default(),
    }
}

/// Hashes a file, and decodes it unless it still has the known hash. A binary
/// file beyond the limit is not even hashed. A text has a limit of its own,
/// which the decoder checks.
///
/// # Errors
/// The file cannot be read.
fn try_read(
    path: &Path,
    file: &Arc<str>,
    known: Option<&Known>,
    options: &text::Options,
) -> io::Result<Option<Outcome>> {
    let mut source = File::open(path)?;
    let len = source.metadata()?.len();
    let limit = options.limits.binary;
    if len > limit && text::is_binary(file) {
        let fault = Fault::Text(too_long(len, limit));
        return Ok(Some(failed_outcome(file, fault)));
    }

    let hash = hash(&mut source)?;
    if known.is_some_and(|known| known.attachments.hash_now(hash) == known.hash) {
        return Ok(None);
    }

    source.rewind()?;
    let reader = AttachmentReader::new(path);
    let decoded = decode_with_files(file, Form::ByName, source, options, &reader)?;
    let attachments = reader.finish();
    Ok(Some(Outcome {
        decoded,
        hash: Some(attachments.last_hash(hash)),
        attachments,
    }))
}

/// Makes the problem of a file that is longer than the limit.
fn too_long(len: u64, max: u64) -> text::Problem {
    text::Problem::TooLong {
        len: usize::try_from(len).unwrap_or(usize::MAX),
        max: usize::try_from(max).unwrap_or(usize::MAX),
    }
}

/// Hashes a file from its position to its end, a part at a time, because the
/// file may be larger than memory.
fn hash(source: &mut File) -> io::Result<u128> {
    let mut hash = XxHash3_128::new();
    let mut part = vec![0; HASHED_BYTES];
    loop {
        match source.read(&mut part)? {
            0 => return Ok(hash.finish_128()),
            len => hash.write(&part[..len]),
        }
    }
}
