//! One file: its contents, unless they are those that were read before.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;

use trunkline::checked::{Decoded, Fault, Finding, Form, decode};
use trunkline_proto::text;
use twox_hash::XxHash3_128;

/// Bytes that are hashed at a time.
const HASHED_BYTES: usize = 1 << 20;

/// The result of reading.
pub(crate) struct Outcome {
    pub(crate) decoded: Decoded,
    /// The hash of the bytes; `None` if they could not be read.
    pub(crate) hash: Option<u128>,
}

/// Reads a file. `before` is the hash of the bytes that were read before;
/// `None` is returned if they are the same.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    before: Option<u128>,
    options: &text::Options,
) -> Option<Outcome> {
    let read = read_or_fail(path, file, before, options);
    read.unwrap_or_else(|error| Some(failed(file, Fault::of_path(&error))))
}

/// The outcome of a file that cannot be read.
fn failed(file: &Arc<str>, fault: Fault) -> Outcome {
    Outcome {
        decoded: Decoded::of_error(Finding::whole(file, fault)),
        hash: None,
    }
}

/// Does the same as [`read`].
///
/// # Errors
/// If the system does not let the file be read.
fn read_or_fail(
    path: &Path,
    file: &Arc<str>,
    before: Option<u128>,
    options: &text::Options,
) -> io::Result<Option<Outcome>> {
    let mut source = File::open(path)?;
    let (len, max) = (source.metadata()?.len(), options.limits.binary);
    if len > max && text::is_binary(file) {
        return Ok(Some(failed(file, Fault::Text(too_long(len, max)))));
    }
    let hash = hash(&mut source)?;
    if before == Some(hash) {
        return Ok(None);
    }
    source.rewind()?;
    Ok(Some(Outcome {
        decoded: decode(file, Form::ByName, source, options)?,
        hash: Some(hash),
    }))
}

/// Reports a file that is longer than the limit.
fn too_long(len: u64, max: u64) -> text::Problem {
    text::Problem::TooLong {
        len: usize::try_from(len).unwrap_or(usize::MAX),
        max: usize::try_from(max).unwrap_or(usize::MAX),
    }
}

/// Hashes a file a part at a time, from its beginning.
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
