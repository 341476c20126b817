//! Errors that keep an attack from being made.

use std::io;

/// Why there is no outcome, or a step of an attack did not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An option that means nothing.
    #[error("{0}")]
    Usage(String),
    /// The server did not start, or did not take its contents.
    #[error("the server did not start: {0}")]
    Start(String),
    /// A socket or a file of the harness, or of a connection to the server.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// HTTP/2 with the server: it closed, refused or reset.
    #[error("HTTP/2: {0}")]
    Http2(#[from] h2::Error),
    /// HTTP/1.1 with the server.
    #[error("HTTP: {0}")]
    Http(#[from] hyper::Error),
    /// A request that cannot be written.
    #[error("request: {0}")]
    Request(#[from] http::Error),
    /// A certificate that could not be made or used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server ended a gRPC stream with this status.
    #[error("the server ended the stream: {0}")]
    Ended(String),
    /// The server answered a request over HTTP/1.1 with this refusal.
    #[error("the server refused a request: {0}")]
    Refused(String),
    /// The server did not answer in time.
    #[error("no answer within {0} s")]
    Late(u64),
}

/// The result of what may fail.
pub(crate) type Result<T> = std::result::Result<T, Error>;
