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
    /// The paths of all files, in a fixed order.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let cert_and_key = [&self.cert, &self.key].into_iter();
        cert_and_key.chain(&self.client_ca).map(PathBuf::as_path)
    }

    /// Takes the stamps of all files, without reading them. Links are followed,
    /// so a swapped link is a change.
    pub(super) fn stamps(&self) -> Stamps {
        let stamp_of = |path: &Path| {
            let metadata = fs::metadata(path).ok()?;
            Some(Stamp {
                modified: metadata.modified().ok(),
                length: metadata.len(),
                identity: file_identity(&metadata),
            })
        };
        Stamps(self.paths().map(stamp_of).collect())
    }

    /// Reads all files; the error is that of the first that cannot be read.
    pub(super) fn read(&self) -> Result<Contents, TlsError> {
        Ok(Contents {
            cert: read_file(&self.cert)?,
            key: read_file(&self.key)?,
            client_ca: self.client_ca.as_deref().map(read_file).transpose()?,
        })
    }
}

#[cfg(unix)]
fn file_identity(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn file_identity(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

/// Reads a file, and refuses one that is larger than [`MAX_BYTES`]. Stops one
/// byte after that: a path may be of a device without end.
fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
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
pub(super) enum Fingerprint {
    Contents(u128),
    Unreadable(Option<io::ErrorKind>),
}

impl Fingerprint {
    /// The fingerprint of files that cannot be read. The same error again has
    /// the same fingerprint.
    pub(super) fn of_error(error: &TlsError) -> Self {
        match error {
            TlsError::Read { source, .. } => Self::Unreadable(Some(source.kind())),
            _ => Self::Unreadable(None),
        }
    }
}

impl Contents {
    /// The fingerprint of the contents: a hash over the hashes of all files, so
    /// that bytes which move from one file to another are a change.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let client_ca = self.client_ca.as_deref().unwrap_or_default();
        let parts = [&self.cert[..], &self.key, client_ca];
        let hashes = parts.map(|part| XxHash3_128::oneshot(part).to_le_bytes());
        Fingerprint::Contents(XxHash3_128::oneshot(&hashes.concat()))
    }
}
