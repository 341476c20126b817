//! Flags of commands that bring contents from elsewhere, or take them there.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::watch::parse_param;
use super::{Apply, Change, Remote, Types, Wait};
use crate::settings::parse_duration;

/// Flags of `export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// A directory that is empty or not there yet, a file that ends in .yaml or .pb, or `-` for
    /// standard output
    #[arg(value_name = "PATH")]
    pub(crate) to: String,
    /// Only the resources of this origin
    #[arg(long, value_name = "NAME")]
    pub(crate) origin: Option<String>,
    /// Only resources of this type, such as cds; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) of_types: Vec<String>,
    /// What is kept in this directory of `serve --data`, of a server that does not run
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A file of resources, a bootstrap of Envoy or what its /config_dump has shown, or a directory
    /// of such files; `-` is standard input
    #[arg(
        value_name = "PATH",
        required_unless_present_any = ["servers", "bootstrap", "envoy_admin"]
    )]
    pub(crate) paths: Vec<String>,
    /// The admin address of a running Envoy, whose /config_dump is imported
    #[arg(
        long,
        value_name = "ADDR",
        conflicts_with_all = ["paths", "servers", "bootstrap"],
        help_heading = "From an Envoy"
    )]
    pub(crate) envoy_admin: Option<String>,
    #[command(flatten)]
    pub(crate) plane: Peer,
    /// Write the resources to this place, as `export` does, and change no server
    #[arg(short, long, value_name = "PATH", conflicts_with_all = ["wait", "dry_run", "replace"])]
    pub(crate) output: Option<String>,
    /// Make the origin's resources exactly these: all others of it are removed
    #[arg(long)]
    pub(crate) replace: bool,
    /// Apply it even if it removes most of the origin's resources of a type
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) change: Change,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) wait: Wait,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags that say which control plane is asked, and as whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "From another control plane")]
pub(crate) struct Peer {
    /// The xDS address of a control plane: host:port, unix:PATH, or with http:// or https:// for
    /// TLS; may be repeated: the first that works is used
    #[arg(long = "server", value_name = "ADDR", conflicts_with = "paths")]
    pub(crate) servers: Vec<String>,
    /// A bootstrap of Envoy or gRPC, whose control planes are asked as its node
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "servers"])]
    pub(crate) bootstrap: Option<PathBuf>,
    /// The node id to have
    #[arg(long, value_name = "ID")]
    pub(crate) node: Option<String>,
    /// A dynamic parameter to have, such as env=prod; may be repeated
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = parse_param)]
    pub(crate) params: Vec<(String, String)>,
    /// Speak state of the world, and not delta
    #[arg(long, conflicts_with = "bootstrap")]
    pub(crate) sotw: bool,
    /// How long one resource, or all of a type, is waited for
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30s")]
    pub(crate) patience: Duration,
    /// The authorities of the certificate of --server, in PEM
    #[arg(long, value_name = "FILE", requires = "servers")]
    pub(crate) server_tls_ca: Option<PathBuf>,
    /// A certificate to show to --server, in PEM
    #[arg(long, value_name = "FILE", requires = "server_tls_key")]
    pub(crate) server_tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "server_tls_cert")]
    pub(crate) server_tls_key: Option<PathBuf>,
    /// The name that the certificate of --server is for, if it is not that of its address
    #[arg(long, value_name = "NAME", requires = "servers")]
    pub(crate) server_tls_name: Option<String>,
    /// A file with the token that --server wants to see
    #[arg(long, value_name = "FILE", requires = "servers")]
    pub(crate) server_token_file: Option<PathBuf>,
}

impl Peer {
    /// Returns whether a control plane is named.
    pub(crate) fn is_named(&self) -> bool {
        !self.servers.is_empty() || self.bootstrap.is_some()
    }
}

impl Import {
    /// Returns the flags of an `apply` of the resources that were fetched. An
    /// import has no lease.
    pub(crate) fn into_apply(self) -> Apply {
        Apply {
            files: self.paths,
            replace: self.replace,
            yes: self.yes,
            lease: None,
            change: self.change,
            types: self.types,
            wait: self.wait,
            remote: self.remote,
        }
    }
}
