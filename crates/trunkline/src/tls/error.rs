//! What can be wrong with the files of TLS. All of it is the operator's to
//! mend, so each says which file and what to do.

use std::io;
use std::path::PathBuf;

use tokio_rustls::rustls;
use tokio_rustls::rustls::server::VerifierBuilderError;

/// Why TLS cannot be spoken with these files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// It cannot be read.
    #[error("{}: {source}; check the path and who may read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
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
    /// It is damaged.
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
    /// Its certificate is of no use.
    #[error("{}: the certificate cannot be used: {source}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// Its key is of no use.
    #[error("{}: the private key cannot be used: {source}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// They do not belong together.
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
    /// Clients cannot be checked against it.
    #[error("{}: cannot be used to check clients: {source}", path.display())]
    ClientCa {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: VerifierBuilderError,
    },
    /// The cryptography of this build offers no version of TLS.
    #[error("no version of TLS can be spoken: {0}")]
    Versions(rustls::Error),
}
