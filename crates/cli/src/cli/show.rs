//! Flags of commands that show what a server has.

use clap::{Args, ValueEnum};

use super::Remote;

/// How resources are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// One line for each.
    Table,
    /// The same, with all that is known beside the contents.
    Wide,
    /// TYPE/NAME only, one in a line.
    Name,
    /// As a file of resources.
    Yaml,
    /// The same in JSON.
    Json,
}

/// How a status is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusOutput {
    /// One line for each client and type.
    Table,
    /// All that is known.
    Json,
}

/// Flags of `get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// A type, then names if not all of it; or TYPE/NAME each. Without any, the number of
    /// resources of each type. Types are lds cds rds eds sds srds vhds rtds ecds leds, words
    /// such as clusters, or type URLs
    #[arg(value_name = "TYPE[/NAME]")]
    pub(crate) words: Vec<String>,
    /// How it is shown
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Output,
    /// Go on with each change, until it is stopped
    #[arg(short, long, requires = "words")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Only the client with this node id, as --node
    #[arg(value_name = "NODE")]
    pub(crate) client: Option<String>,
    /// How it is shown
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: StatusOutput,
    /// Only clients with this node id, such as sidecar-7; may be repeated
    #[arg(long = "node", value_name = "ID")]
    pub(crate) nodes: Vec<String>,
    /// Only this type, such as cds; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// Exit with 1 if a client is not in sync, if --node is not connected, or if a file is bad
    /// or held
    #[arg(long)]
    pub(crate) check: bool,
    /// Show it again and again, until the program is stopped: on a terminal every second, else
    /// whenever something has changed
    #[arg(long, conflicts_with = "check")]
    pub(crate) watch: bool,
    /// Compare what was sent to NODE with what this Envoy says that it has; its admin address is
    /// host:port or http://host:port. Exit with 1 if something differs
    #[arg(long, value_name = "URL", conflicts_with = "watch")]
    pub(crate) envoy_admin: Option<String>,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

impl Status {
    /// Returns the node ids that pick clients.
    pub(crate) fn node_ids(&self) -> Vec<String> {
        self.client.iter().chain(&self.nodes).cloned().collect()
    }
}

/// Flags of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The type of a resource: lds, cds, rds, eds and so on, or a type URL
    #[arg(value_name = "TYPE", requires = "name", conflicts_with_all = ["route", "host"])]
    pub(crate) kind: Option<String>,
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A file with a node or an Envoy bootstrap, or else the node id of a client that is connected
    #[arg(long, value_name = "FILE|ID", required_unless_present = "params")]
    pub(crate) node: Option<String>,
    /// Instead of a node, dynamic parameters: env=prod,version=v1
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with = "node")]
    pub(crate) params: Option<String>,
    /// The route configuration
    #[arg(
        long,
        value_name = "ROUTE",
        requires = "host",
        required_unless_present = "kind"
    )]
    pub(crate) route: Option<String>,
    /// The host as requests name it, with its port if they do
    #[arg(
        long,
        value_name = "HOST",
        requires = "route",
        required_unless_present = "kind"
    )]
    pub(crate) host: Option<String>,
    /// How it is shown
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: StatusOutput,
    #[command(flatten)]
    pub(crate) remote: Remote,
}
