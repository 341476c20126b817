//! The files: their paths and their contents.

use std::io;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_128;

use super::TlsError;
use crate::pem::{Stamps, read_file};

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

/// The contents of the files. It has no `Debug`: one of them is a key.
pub(super) struct Contents {
    pub(super) cert: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) client_ca: Option<Vec<u8>>,
}

impl TlsFiles {
    /// Returns the paths of all files, in a fixed order.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let cert_and_key = [&self.cert, &self.key].into_iter();
        cert_and_key.chain(&self.client_ca).map(PathBuf::as_path)
    }

    /// Takes the stamps of all files, by which a change is noticed without
    /// reading them.
    pub(super) fn stamps(&self) -> Stamps {
        Stamps::of(self.paths())
    }

    /// Reads all files. The error is that of the first that cannot be read.
    pub(super) fn read(&self) -> Result<Contents, TlsError> {
        Ok(Contents {
            cert: read_file(&self.cert)?,
            key: read_file(&self.key)?,
            client_ca: self.client_ca.as_deref().map(read_file).transpose()?,
        })
    }
}

/// Identifies the contents of the files, or the reason why they cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fingerprint {
    Contents(u128),
    Unreadable(Option<io::ErrorKind>),
}

impl Fingerprint {
    /// Returns the fingerprint of files that cannot be read. The same error
    /// again has the same fingerprint.
    pub(super) fn of_error(error: &TlsError) -> Self {
        match error {
            TlsError::Read { source, .. } => Self::Unreadable(Some(source.kind())),
            _ => Self::Unreadable(None),
        }
    }
}

impl Contents {
    /// Returns the fingerprint of the contents: a hash over the hashes of all
    /// files, so that bytes which move from one file to another are a change.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let client_ca = self.client_ca.as_deref().unwrap_or_default();
        let parts = [&self.cert[..], &self.key, client_ca];
        let hashes = parts.map(|part| XxHash3_128::oneshot(part).to_le_bytes());
        Fingerprint::Contents(XxHash3_128::oneshot(&hashes.concat()))
    }
}
