//! Errors that keep a measurement from being made.

use std::io;
use std::path::PathBuf;

use trunkline::client::transport::ConnectError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two flags that do not go together, or a value that means nothing.
    #[error("{0}")]
    Usage(String),
    /// Files of TLS, or a name, are of no use.
    #[error("{0}; check --tls-ca, --tls-cert, --tls-key and --tls-name")]
    Tls(Box<ConnectError>),
    /// The server and the tool do not trust each other.
    #[error("{0}; check --tls-ca and --tls-name, and that the server speaks TLS there")]
    Handshake(Box<ConnectError>),
    /// The driver could not change the server's contents.
    #[error("the driver failed: {0}")]
    Driver(String),
    /// A server that was to be started did not.
    #[error("the server did not start: {0}")]
    Start(String),
    /// A file could not be written or read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The runtime or a socket of the tool's own failed.
    #[error("the tool itself failed: {0}")]
    Own(#[from] io::Error),
    /// Clients did not get what they should have in time.
    #[error("{phase}: {done} of {all} after {seconds} s; {hint}")]
    Late {
        /// In which phase.
        phase: &'static str,
        /// How many did.
        done: u64,
        /// How many should have.
        all: u64,
        /// How long was waited.
        seconds: u64,
        /// What was seen on streams meanwhile.
        hint: String,
    },
}

/// The result of what may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
