//! Errors in the files of TLS. All of them are the operator's to mend, so each
//! names the file and the remedy.

use std::io;
use std::path::PathBuf;

use tokio_rustls::rustls;
use tokio_rustls::rustls::server::VerifierBuilderError;

/// Why these files cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// It cannot be read.
    #[error("{}: {source}; check the path and who may read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It is larger than any such file should be.
    #[error("{}: larger than {limit} bytes; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// It is not valid PEM.
    #[error("{}: not valid PEM; write it again from its source", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
    },
    /// It holds no certificate.
    #[error("{}: no certificate in it; it must have a section CERTIFICATE in PEM", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// It holds no private key that can be used as it is.
    #[error(
        "{}: no private key in it; it must have a section PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY in PEM, not encrypted",
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// Its certificate cannot be used.
    #[error("{}: the certificate cannot be used: {source}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The error.
        source: rustls::Error,
    },
    /// Its key cannot be used.
    #[error("{}: the private key cannot be used: {source}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The error.
        source: rustls::Error,
    },
    /// Certificate and key do not belong together.
    #[error(
        "{}: not the private key of the first certificate in {}; give the two that were made together",
        key.display(), cert.display()
    )]
    Mismatch {
        /// The file with the certificate.
        cert: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
    /// Clients cannot be verified with it.
    #[error("{}: cannot be used to check clients: {source}", path.display())]
    ClientCa {
        /// The file.
        path: PathBuf,
        /// The error.
        source: VerifierBuilderError,
    },
    /// The cryptography of this build offers no version of TLS.
    #[error("no version of TLS can be spoken: {0}")]
    Versions(rustls::Error),
}
