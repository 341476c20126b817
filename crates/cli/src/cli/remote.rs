//! Flags of commands that talk to a server: its address, and how they prove who
//! they are. Each is an environment variable too, for those who always talk to
//! the same one.

use std::path::PathBuf;

use clap::Args;

/// How to reach a server.
#[derive(Clone, Debug, Args)]
pub(crate) struct Remote {
    /// The server's admin address: host:port, or a URL with http:// or https://
    #[arg(
        long,
        env = "TRUNKLINE_ADMIN",
        value_name = "ADDR",
        default_value = "127.0.0.1:18001"
    )]
    pub(crate) admin: String,
    /// The authorities of the server's certificate, in PEM, instead of those of the system
    #[arg(
        long,
        env = "TRUNKLINE_TLS_CA",
        value_name = "FILE",
        help_heading = "Security"
    )]
    pub(crate) tls_ca: Option<PathBuf>,
    /// A certificate to show to the server, in PEM
    #[arg(
        long,
        env = "TRUNKLINE_TLS_CERT",
        value_name = "FILE",
        help_heading = "Security",
        requires = "tls_key"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(
        long,
        env = "TRUNKLINE_TLS_KEY",
        value_name = "FILE",
        help_heading = "Security",
        requires = "tls_cert"
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// A file with the token that the server wants to see
    #[arg(
        long,
        env = "TRUNKLINE_TOKEN_FILE",
        value_name = "FILE",
        help_heading = "Security"
    )]
    pub(crate) token_file: Option<PathBuf>,
}
