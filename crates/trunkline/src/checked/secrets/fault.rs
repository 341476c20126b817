//! Faults of secrets. None has a byte of a secret in it.

use std::io;
use std::path::{Path, PathBuf};

/// A fault of a secret, or of a file that it names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretFault {
    /// The file does not exist.
    #[error(
        "the file {} does not exist; create it, or correct the name: a relative path starts at \
         the directory of this file", path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The system does not let the file be read.
    #[error("the file {} cannot be read: {reason}; see to its permissions", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kind of error.
        kind: io::ErrorKind,
        /// The error in words.
        reason: String,
    },
    /// The path leads to a directory, a pipe or a device.
    #[error("{} is no plain file; name one", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file has nothing in it.
    #[error("the file {} is empty; write the secret into it", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than any secret should be.
    #[error("the file {} has more than {max} bytes; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        max: u64,
    },
    /// The secrets of one document name too many files, or too large ones.
    #[error(
        "the secrets of this file name more than {files} files, or files of more than {bytes} \
         bytes together; write some of the secrets in a file of their own"
    )]
    TooMany {
        /// The limit of files.
        files: usize,
        /// The limit of bytes.
        bytes: u64,
    },
    /// A name of a file where no files are read.
    #[error(
        "{name:?} is a relative path, and the server reads files only for files of \
         configuration: a client looks for it in its own working directory; put the contents in \
         as inline_bytes, or name an absolute path of the client's"
    )]
    NotRead {
        /// The name as written.
        name: String,
    },
    /// There is PEM that cannot be read.
    #[error("has PEM that is not valid; write it again from its source")]
    Malformed,
    /// There is no certificate.
    #[error("has no certificate in it; it must have a section CERTIFICATE in PEM")]
    NoCertificate,
    /// There is no private key.
    #[error(
        "has no private key in it; it must have a section PRIVATE KEY, RSA PRIVATE KEY or EC \
         PRIVATE KEY in PEM"
    )]
    NoKey,
    /// The private key is encrypted, and there is no password.
    #[error("has a private key that is encrypted; give its password too, or decrypt it")]
    Encrypted,
    /// Certificate and key do not belong together.
    #[error(
        "is not the private key of the first certificate in certificate_chain; give the two that \
         were made together"
    )]
    Mismatch,
    /// Certificate or key is of a kind that cannot be read here.
    #[error(
        "cannot be compared with its certificate, because one of the two is of a kind that is not \
         known here; make sure that they belong together"
    )]
    Unchecked,
}

impl SecretFault {
    /// Returns the fault of a file that cannot be read.
    #[must_use]
    pub fn of_file(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            kind => Self::Unreadable {
                path,
                kind,
                reason: error.to_string(),
            },
        }
    }
}
