//! Flags of `mcp`: sources of the Mesh Configuration Protocol, and what they
//! send.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use trunkline::bounds;

use super::Remote;
use crate::settings::{Peer, parse_duration};

/// The address of a source, if nothing else is said.
pub(crate) const LISTEN: &str = "127.0.0.1:18010";
/// Its admin address.
pub(crate) const ADMIN: &str = "127.0.0.1:18011";

/// What to do with the Mesh Configuration Protocol.
#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// Serves files as collections to control planes, until it is told to stop
    Source(Box<McpSource>),
    /// Shows what a source sends
    Watch(McpWatch),
    /// Shows the sinks of a source, or the collections of a control plane
    Status(McpStatus),
}

/// Flags of `mcp source`.
#[derive(Debug, Args)]
pub(crate) struct McpSource {
    /// A file or a directory of manifests of Kubernetes and of resources of Envoy, watched; may be
    /// repeated
    #[arg(long, value_name = "PATH", required = true)]
    pub(crate) config: Vec<PathBuf>,
    /// Where sinks may connect [default: 127.0.0.1:18010, unless there is --dial]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// A sink to connect to: host:port, or with https:// before it; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub(crate) dial: Vec<Peer>,
    /// Sinks with this annotation get a change first, and others after all of them have taken it
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) canary: Option<String>,
    /// How long a change has to do well with canaries before others get it
    #[arg(long, value_name = "TIME", default_value = "30s", requires = "canary", value_parser = parse_duration)]
    pub(crate) soak: Duration,
    /// How many sinks may be connected; half of them from one address
    #[arg(long, value_name = "N", default_value_t = bounds::MCP_CONNECTIONS)]
    pub(crate) max_connections: usize,
    /// Where its status, /ready and /metrics are
    #[arg(long, value_name = "ADDR", default_value = ADMIN)]
    pub(crate) admin: String,
    /// Whether it serves before there are any contents
    #[arg(long)]
    pub(crate) allow_empty: bool,
    /// A FileDescriptorSet of types that are not built in; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) descriptors: Vec<PathBuf>,
    /// The certificate chain of the addresses, in PEM, which is shown to sinks too
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The authorities of sinks that connect, in PEM: these must show a certificate
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// The authorities of sinks that are dialled, in PEM, instead of those of the system
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) tls_ca: Option<PathBuf>,
}

/// How `mcp watch` shows a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpOutput {
    /// A line for each change.
    Table,
    /// A line of JSON for each change, with the contents.
    Json,
}

/// Flags of `mcp watch`.
#[derive(Debug, Args)]
pub(crate) struct McpWatch {
    /// The collections, such as istio/networking/v1/gateways; words such as cds or clusters are
    /// those of Envoy's types
    #[arg(value_name = "COLLECTION", required = true)]
    pub(crate) collections: Vec<String>,
    /// The source: host:port, or with https:// before it
    #[arg(long, value_name = "ADDR")]
    pub(crate) server: Peer,
    /// Ask for changes, and not for the whole collection each time
    #[arg(long)]
    pub(crate) incremental: bool,
    /// Ask over xDS, as Istio speaks it: collections are type URLs of ADS; with --incremental by
    /// delta
    #[arg(long)]
    pub(crate) xds: bool,
    /// The name of the sink to be
    #[arg(long, value_name = "ID", default_value = "trunkline-watch")]
    pub(crate) node: String,
    /// An annotation of the sink, such as env=canary; may be repeated
    #[arg(long = "annotation", value_name = "KEY=VALUE")]
    pub(crate) annotations: Vec<String>,
    /// End when each collection has come once
    #[arg(long)]
    pub(crate) once: bool,
    /// How a resource is shown
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: McpOutput,
    /// With --once, how long to wait
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) timeout: Duration,
    /// The authorities of the source, in PEM, instead of those of the system
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// A certificate to show to the source, in PEM
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Security",
        requires = "tls_key"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Security",
        requires = "tls_cert"
    )]
    pub(crate) tls_key: Option<PathBuf>,
}

/// Flags of `mcp status`.
#[derive(Debug, Args)]
pub(crate) struct McpStatus {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) remote: Remote,
}
