//! The files: their paths, their contents, and a cheap check for changes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use twox_hash::XxHash3_128;

use super::TlsError;

/// The maximum of bytes in a file, more than any chain or bundle of authorities
/// has.
const MAX_BYTES: u64 = 8 << 20;

/// The paths of certificate and key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by its intermediate certificates.
    pub cert: PathBuf,
    /// Its private key: PKCS #8, PKCS #1 or SEC 1.
    pub key: PathBuf,
    /// The certificate authorities of clients. If it is set, a client without a
    /// certificate from one of them is refused.
    pub client_ca: Option<PathBuf>,
}

/// A file's metadata: equal stamps mean equal contents, or as good as.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    /// Device and inode: differ for files that replace each other within a tick
    /// of the clock.
    identity: (u64, u64),
}

/// Stamps of all files; `None` for one that cannot be found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamps(Vec<Option<Stamp>>);

/// The contents of the files. It has no `Debug`: one of them is a key.
pub(super) struct Contents {
    pub(super) cert: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) client_ca: Option<Vec<u8>>,
}

impl TlsFiles {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let two = [&self.cert, &self.key].into_iter();
        two.chain(&self.client_ca).map(PathBuf::as_path)
    }

    /// Stamps all files. Links are followed, so a swapped link is a change.
    pub(super) fn stamps(&self) -> Stamps {
        let stamp = |path: &Path| {
            let metadata = fs::metadata(path).ok()?;
            Some(Stamp {
                modified: metadata.modified().ok(),
                length: metadata.len(),
                identity: identity(&metadata),
            })
        };
        Stamps(self.paths().map(stamp).collect())
    }

    pub(super) fn read(&self) -> Result<Contents, TlsError> {
        Ok(Contents {
            cert: read(&self.cert)?,
            key: read(&self.key)?,
            client_ca: self.client_ca.as_deref().map(read).transpose()?,
        })
    }
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

/// Reads a file. Stops one byte after the maximum: a path may be of a device
/// without end.
fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut contents = Vec::new();
    let read = |file: File| file.take(MAX_BYTES + 1).read_to_end(&mut contents);
    if let Err(source) = File::open(path).and_then(read) {
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

/// Identifies the contents of the files, or the reason why they cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Print {
    Contents(u128),
    Unreadable(Option<io::ErrorKind>),
}

impl Print {
    /// Of files that cannot be read. The same error again is the same print.
    pub(super) fn of_error(error: &TlsError) -> Self {
        match error {
            TlsError::Read { source, .. } => Self::Unreadable(Some(source.kind())),
            _ => Self::Unreadable(None),
        }
    }
}

impl Contents {
    /// A hash over the hashes of all files.
    pub(super) fn print(&self) -> Print {
        let client_ca = self.client_ca.as_deref().unwrap_or_default();
        let parts = [&self.cert[..], &self.key, client_ca];
        let hashes = parts.map(|part| XxHash3_128::oneshot(part).to_le_bytes());
        Print::Contents(XxHash3_128::oneshot(&hashes.concat()))
    }
}
