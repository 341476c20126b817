//! Files of PEM: their contents, and a cheap check for changes.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

use super::TlsError;

/// The maximum of bytes in a file, more than any chain or bundle of authorities
/// has.
const MAX_BYTES: u64 = 8 << 20;

/// A file's metadata: equal stamps mean equal contents, or as good as.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    /// Device and inode: differ for files that replace each other within a tick
    /// of the clock.
    identity: (u64, u64),
}

/// Stamps of some files; `None` for one that cannot be found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<Option<Stamp>>);

impl Stamps {
    /// Returns the stamps of files, without reading these. Links are followed,
    /// so that a replaced link is a change.
    pub(crate) fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let stamp_of = |path: &Path| {
            let metadata = fs::metadata(path).ok()?;
            Some(Stamp {
                modified: metadata.modified().ok(),
                length: metadata.len(),
                identity: file_identity(&metadata),
            })
        };
        Self(paths.into_iter().map(stamp_of).collect())
    }
}

/// Returns the device and the number of a file, by which a file that was
/// replaced is noticed.
#[cfg(unix)]
fn file_identity(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Returns the same for all files: this system does not number them.
#[cfg(not(unix))]
fn file_identity(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

/// Reads a file of at most [`MAX_BYTES`]. Reading stops one byte after that,
/// because a path may be of a device without end.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut contents = Vec::new();
    let read_up_to_limit = |file: File| file.take(MAX_BYTES + 1).read_to_end(&mut contents);
    if let Err(source) = File::open(path).and_then(read_up_to_limit) {
        let path = path.to_owned();
        return Err(TlsError::Read { path, source });
    }
    if contents.len() as u64 > MAX_BYTES {
        let path = path.to_owned();
        return Err(TlsError::TooLarge {
            path,
            limit: MAX_BYTES,
        });
    }
    Ok(contents)
}
