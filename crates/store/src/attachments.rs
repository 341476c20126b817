//! The files that the secrets of one file name.
//!
//! Their contents are a part of the file's own: a change of one is a change of
//! the file, and so is one that appears.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use trunkline::checked::{SecretFault, SecretFiles};
use twox_hash::XxHash3_128;

use crate::files::Files;
use crate::mailbox::Touched;
use crate::scan::{Stamp, absolute};

/// The maximum of bytes in one attachment, far more than a certificate chain or
/// a bundle of authorities has.
const MAX_BYTES: u64 = 1 << 20;
/// The maximum of attachments of one file.
const MAX_ATTACHMENTS: usize = 20_000;
/// The maximum of bytes in all attachments of one file, as many as its text may
/// have.
const MAX_TOTAL_BYTES: u64 = 256 << 20;

/// The attachments of one file, by path, as they were last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attachments(BTreeMap<PathBuf, Attachment>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Attachment {
    /// Its stamp before it was read; `None` if there was no file.
    stamp: Option<Stamp>,
    /// The hash of its contents, or of the reason why it could not be read.
    hash: u128,
}

impl Attachments {
    /// Returns the paths of all attachments.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.keys()
    }

    /// Reads the stamps of all attachments again, without their contents.
    /// Returns whether one changed.
    pub(crate) fn update_stamps(&mut self) -> bool {
        let mut any_changed = false;
        for (path, attachment) in &mut self.0 {
            let stamp = Stamp::of_path(path);
            any_changed |= attachment.stamp != stamp;
            attachment.stamp = stamp;
        }
        any_changed
    }

    /// Returns whether one of them is at one of these absolute paths.
    pub(crate) fn has_any_of(&self, paths: &HashSet<PathBuf>) -> bool {
        !paths.is_empty() && self.paths().any(|path| paths.contains(&absolute(path)))
    }

    /// Returns the time of the last change of an attachment that the system
    /// told of; `None` if it told of none.
    pub(crate) fn last_touch(&self, touched: &Touched) -> Option<Instant> {
        let moments = self.paths().filter_map(|path| touched.get(&absolute(path)));
        moments.max().copied()
    }

    /// Returns the hash of a file with its attachments as they were read last,
    /// from the hash of its own bytes.
    pub(crate) fn last_hash(&self, file_hash: u128) -> u128 {
        let hashes = self.0.iter().map(|(path, file)| (path, file.hash));
        hash_all(file_hash, hashes)
    }

    /// Returns the hash of a file with its attachments as they are now, from
    /// the hash of its own bytes as they are now.
    pub(crate) fn hash_now(&self, file_hash: u128) -> u128 {
        let hashes = self.paths().map(|path| (path, hash_of(&read_file(path))));
        hash_all(file_hash, hashes)
    }
}

impl Files {
    /// Returns the paths of all attachments of all files.
    pub(crate) fn attachments(&self) -> Vec<PathBuf> {
        let files = self.files.values();
        let paths = files.flat_map(|file| file.attachments.paths());
        paths.cloned().collect()
    }
}

/// Hashes a file with its attachments. A file without attachments keeps its own
/// hash.
fn hash_all<'a>(file_hash: u128, attachments: impl Iterator<Item = (&'a PathBuf, u128)>) -> u128 {
    let mut hash = XxHash3_128::new();
    hash.write(&file_hash.to_le_bytes());
    let mut has_any = false;
    for (path, attachment_hash) in attachments {
        has_any = true;
        let path = path.as_os_str().as_encoded_bytes();
        hash.write(&path.len().to_le_bytes());
        hash.write(path);
        hash.write(&attachment_hash.to_le_bytes());
    }
    if has_any {
        hash.finish_128()
    } else {
        file_hash
    }
}

/// Hashes the contents of an attachment, or the fault of one that cannot be
/// read.
fn hash_of(outcome: &Result<Bytes, SecretFault>) -> u128 {
    let mut hash = XxHash3_128::new();
    match outcome {
        Ok(contents) => {
            hash.write(b"contents");
            hash.write(contents);
        }
        Err(fault) => {
            hash.write(b"fault");
            hash.write(fault.to_string().as_bytes());
        }
    }
    hash.finish_128()
}

/// Reads the attachments of one file, each once.
pub(crate) struct AttachmentReader<'a> {
    /// The directory of the file.
    directory: &'a Path,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attachments: Attachments,
    contents: BTreeMap<PathBuf, Result<Bytes, SecretFault>>,
    /// The bytes of all contents.
    bytes: u64,
}

impl<'a> AttachmentReader<'a> {
    /// Makes a reader for the file at this path, which has read nothing yet.
    pub(crate) fn new(path: &'a Path) -> Self {
        Self {
            directory: path.parent().unwrap_or(Path::new("")),
            state: Mutex::default(),
        }
    }

    /// Returns the attachments that were read, and those that could not be.
    pub(crate) fn finish(self) -> Attachments {
        let state = self.state.into_inner();
        state.unwrap_or_else(PoisonError::into_inner).attachments
    }
}

impl SecretFiles for AttachmentReader<'_> {
    /// Reads an attachment, or returns the outcome of an earlier read. Too many
    /// attachments are a fault.
    fn read(&self, name: &str) -> Result<Bytes, SecretFault> {
        let path = self.directory.join(name);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = state.contents.get(&path) {
            return outcome.clone();
        }
        if state.contents.len() >= MAX_ATTACHMENTS || state.bytes > MAX_TOTAL_BYTES {
            return Err(SecretFault::TooMany {
                files: MAX_ATTACHMENTS,
                bytes: MAX_TOTAL_BYTES,
            });
        }

        // The stamp is read first, so that the next scan sees a change during
        // the reading.
        let stamp = Stamp::of_path(&path);
        let outcome = read_file(&path);
        let hash = hash_of(&outcome);
        state.bytes += outcome.as_ref().map_or(0, |contents| contents.len() as u64);
        state.contents.insert(path.clone(), outcome.clone());
        let attachment = Attachment { stamp, hash };
        state.attachments.0.insert(path, attachment);
        outcome
    }
}

/// Reads a file of a secret. An empty file is a mistake, because another
/// process is probably about to write it.
fn read_file(path: &Path) -> Result<Bytes, SecretFault> {
    let contents = read_up_to_limit(path);
    let contents = contents.map_err(|error| SecretFault::of_file(path, &error))?;
    let path = || path.to_owned();
    match contents {
        None => Err(SecretFault::NotAFile { path: path() }),
        Some(contents) if contents.is_empty() => Err(SecretFault::Empty { path: path() }),
        Some(contents) if contents.len() as u64 > MAX_BYTES => Err(SecretFault::TooLarge {
            path: path(),
            max: MAX_BYTES,
        }),
        Some(contents) => Ok(contents.into()),
    }
}

/// Reads a file, but no more than one byte beyond [`MAX_BYTES`]. Returns `None`
/// if the path is no file: opening a pipe would wait for its other end.
fn read_up_to_limit(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut contents = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut contents)?;
    Ok(Some(contents))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_its_faults_have_a_name() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("a"), "contents").unwrap();
        fs::write(path("empty"), "").unwrap();
        fs::write(path("large"), vec![0; (1 << 20) + 1]).unwrap();
        let document = path("a.yaml");
        let reader = AttachmentReader::new(&document);

        assert_eq!(reader.read("a").unwrap(), "contents");
        fs::write(path("a"), "other").unwrap();
        assert_eq!(reader.read("a").unwrap(), "contents");
        for (name, fault) in [
            ("none", SecretFault::Missing { path: path("none") }),
            (
                "none/a",
                SecretFault::Missing {
                    path: path("none/a"),
                },
            ),
            (
                "empty",
                SecretFault::Empty {
                    path: path("empty"),
                },
            ),
            (".", SecretFault::NotAFile { path: path(".") }),
            (
                "large",
                SecretFault::TooLarge {
                    path: path("large"),
                    max: 1 << 20,
                },
            ),
        ] {
            assert_eq!(reader.read(name), Err(fault));
        }
        assert!(matches!(
            reader.read("a/b"),
            Err(SecretFault::Unreadable { .. })
        ));

        // The hash is that of what was read, so the other contents differ.
        let attachments = reader.finish();
        assert_eq!(attachments.paths().count(), 7);
        assert_ne!(attachments.last_hash(1), attachments.hash_now(1));
        fs::write(path("a"), "contents").unwrap();
        assert_eq!(attachments.last_hash(1), attachments.hash_now(1));
        fs::write(path("none"), "here").unwrap();
        assert_ne!(attachments.last_hash(1), attachments.hash_now(1));
    }

    #[test]
    fn one_file_has_so_many_attachments_at_most() {
        let place = tempfile::tempdir().unwrap();
        let document = place.path().join("a.yaml");
        let reader = AttachmentReader::new(&document);
        let is_too_many = |nth: usize| {
            let read = reader.read(&nth.to_string());
            matches!(read, Err(SecretFault::TooMany { .. }))
        };
        assert!(!(0..MAX_ATTACHMENTS).any(is_too_many));
        assert!(is_too_many(MAX_ATTACHMENTS));
        assert!(!is_too_many(0), "it was read before");
        assert_eq!(reader.finish().paths().count(), MAX_ATTACHMENTS);
    }

    #[test]
    fn a_file_without_attachments_has_its_own_hash() {
        assert_eq!(Attachments::default().last_hash(7), 7);
        assert_eq!(Attachments::default().hash_now(7), 7);
    }

    #[test]
    fn stamps_tell_of_a_change_once() {
        let place = tempfile::tempdir().unwrap();
        let document = place.path().join("a.yaml");
        let reader = AttachmentReader::new(&document);
        assert!(reader.read("a").is_err());
        let mut attachments = reader.finish();
        assert!(!attachments.update_stamps());
        fs::write(place.path().join("a"), "a").unwrap();
        assert!(attachments.update_stamps());
        assert!(!attachments.update_stamps());
        let touched = HashSet::from([place.path().join("a")]);
        assert!(attachments.has_any_of(&touched));
        assert!(!attachments.has_any_of(&HashSet::from([document])));
    }
}
