//! Errors of connections and streams. Each says whose fault it is and what to
//! do next; none has a secret in it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls;

use super::Code;
use crate::pem::TlsError;

/// Why there is no connection to a control plane. Callers that waited for the
/// same attempt have the same error, so it can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name of its host has no address.
    #[error("{host} cannot be resolved: {source}; check the name, and the DNS of this machine")]
    Resolve {
        /// The name.
        host: String,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// Nobody takes connections there.
    #[error("cannot connect to {address}: {source}; is the control plane running there?")]
    Dial {
        /// Where; the last of several addresses.
        address: String,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// The attempt took longer than it may.
    #[error("no connection to {address} within {after:?}; is it reachable from here?")]
    Timeout {
        /// Where.
        address: String,
        /// The timeout.
        after: Duration,
    },
    /// Files of TLS cannot be used.
    #[error(transparent)]
    Files(Arc<TlsError>),
    /// The system has no authorities that can be trusted.
    #[error("the system has no trusted authorities; name a file with those of the control plane")]
    NoRoots,
    /// The name is none that a certificate can have.
    #[error(
        "{name:?} is no name that a certificate can have; set the server name of the control plane"
    )]
    ServerName {
        /// The name.
        name: String,
    },
    /// The two ends do not trust each other, or one of them speaks no TLS.
    #[error("no TLS with {address}: {source}; {}", remedy(source))]
    Handshake {
        /// Where.
        address: String,
        /// What the TLS library says.
        source: rustls::Error,
    },
    /// The connection was lost before it could be used.
    #[error(
        "{address} closed the connection in the handshake: {source}; does it speak {protocol}?"
    )]
    Closed {
        /// Where.
        address: String,
        /// The protocol of the handshake.
        protocol: &'static str,
        /// The error of the system.
        source: Arc<io::Error>,
    },
}

/// Returns what to do about a failed handshake.
fn remedy(error: &rustls::Error) -> &'static str {
    use rustls::CertificateError as Certificate;
    match error {
        rustls::Error::InvalidCertificate(fault) => match fault {
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                "its certificate is for another name: check the address, or set the server name"
            }
            Certificate::Expired
            | Certificate::ExpiredContext { .. }
            | Certificate::NotValidYet
            | Certificate::NotValidYetContext { .. } => {
                "its certificate is not valid now: the control plane needs another, or a clock is wrong"
            }
            Certificate::UnknownIssuer | Certificate::BadSignature => {
                "its certificate is from an authority that is not trusted: check the file of authorities"
            }
            _ => "its certificate cannot be used: check that of the control plane",
        },
        rustls::Error::AlertReceived(_) => {
            "the control plane refused: it may want a certificate of this client, or another one"
        }
        rustls::Error::InvalidMessage(_) => "it speaks no TLS there",
        rustls::Error::NoApplicationProtocol => "it speaks no HTTP/2 there",
        _ => "check the certificates of both ends",
    }
}

/// Returns what a code of HTTP/2 means.
fn reason(code: u32) -> h2::Reason {
    code.into()
}

/// A header that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The authority is none.
    #[error("{0:?} is no authority; it is a host, and a port if it has one")]
    Authority(String),
    /// The path of the method is none.
    #[error("{0:?} is no path of a method")]
    Path(String),
    /// The name of a header is none, or one that the transport sets.
    #[error(
        "{0:?} is no name of metadata; use letters, digits and dashes, and none that gRPC sets"
    )]
    Name(String),
    /// The value of a header has characters that it cannot have.
    #[error("the value of metadata {0:?} is no visible ASCII")]
    Value(String),
}

/// Why a stream could not be opened, or how it ended.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A header of this client cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The file with the token cannot be used.
    #[error("{}: {source}; it must hold a token and nothing else", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// The server ended the stream with a status.
    #[error("the server ended the stream with status {code}: {message}")]
    Status {
        /// gRPC's code.
        code: Code,
        /// For people.
        message: String,
    },
    /// The server ended the stream without a status.
    #[error("the server ended the stream without a status; a proxy before it may have cut it")]
    NoStatus,
    /// The answer is not gRPC.
    #[error("the server answered with HTTP status {0}; is this its xDS address?")]
    Http(u16),
    /// The answer is of another kind.
    #[error("the server answered with {0:?} where gRPC was expected; is this its xDS address?")]
    NotGrpc(String),
    /// The server does not speak HTTP/2.
    #[error("the server speaks no HTTP/2; is this its xDS address, and does it want TLS?")]
    NotHttp2,
    /// The server closed the connection and said so, with a code of HTTP/2.
    #[error("the server closed the connection (GOAWAY: {}); connect again", reason(*.0))]
    GoAway(u32),
    /// The server, or a proxy before it, ended the stream, with a code of
    /// HTTP/2.
    #[error("the stream was reset ({}); connect again", reason(*.0))]
    Reset(u32),
    /// The connection was lost.
    #[error("the connection was lost: {0}; connect again")]
    Lost(Arc<io::Error>),
    /// The server did not answer a ping.
    #[error("the server did not answer a ping within {0:?}: it or the way to it is dead")]
    Dead(Duration),
    /// The server broke the rules of HTTP/2 that the code names.
    #[error(
        "the server broke HTTP/2: {}; that is its fault, or that of a proxy before it",
        reason(*.0)
    )]
    Protocol(u32),
    /// The server compressed a message although it was told not to.
    #[error("the server sent a compressed message to a client that accepts none")]
    Compressed,
    /// A message is longer than the limit.
    #[error("a message has {length} bytes, and {limit} is the limit; raise it, or ask for less")]
    TooLong {
        /// As its prefix says.
        length: u64,
        /// The limit.
        limit: usize,
    },
    /// The stream ended within a message.
    #[error("the server ended the stream within a message")]
    Truncated,
}
