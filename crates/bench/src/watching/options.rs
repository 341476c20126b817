//! What is measured of a client.

use std::path::PathBuf;

use clap::Args;

use crate::options::Variant;

/// A measurement of a client.
#[derive(Clone, Debug, Args)]
pub struct MeasureOptions {
    /// The client: a command, in which {address}, {prefix}, {resources} and
    /// {routes} stand for the address of the server, what names begin with, how
    /// many resources there are of each type, and how many routes. Trunkline's
    /// own, if it is left out.
    #[arg(long)]
    pub client: Option<String>,
    /// The variant that Trunkline's own client speaks.
    #[arg(long, value_enum, default_value = "sotw")]
    pub mode: Variant,
    /// Clusters, and as many endpoints.
    #[arg(long, default_value_t = 10_000)]
    pub resources: usize,
    /// Routes of a listener to the clusters: the client watches that listener
    /// with everything below it. With none, it watches each cluster and its
    /// endpoints by name.
    #[arg(long, default_value_t = 0)]
    pub routes: usize,
    /// Endpoints of each cluster.
    #[arg(long, default_value_t = 4)]
    pub endpoints: u32,
    /// Endpoints that change, one after the other: each response has one
    /// resource.
    #[arg(long, default_value_t = 1_000)]
    pub updates: usize,
    /// Clusters that change, one after the other: in state of the world each
    /// response has all of them.
    #[arg(long, default_value_t = 20)]
    pub whole_updates: usize,
    /// Seconds after which a client that says nothing is given up.
    #[arg(long, default_value_t = 120)]
    pub patience: u64,
    /// Where the client runs: cores, as taskset takes them.
    #[arg(long)]
    pub client_cores: Option<String>,
    /// A file for the report.
    #[arg(long)]
    pub report: Option<PathBuf>,
}

/// Trunkline's own client, as a process that is measured.
#[derive(Clone, Debug, Args)]
pub struct WatchOptions {
    /// Where xDS is served.
    #[arg(long)]
    pub address: String,
    /// What every name begins with.
    #[arg(long)]
    pub prefix: String,
    /// How many resources there are of each type.
    #[arg(long)]
    pub resources: usize,
    /// How many routes the listener has; none, if there is no listener.
    #[arg(long, default_value_t = 0)]
    pub routes: usize,
    /// The variant of the protocol.
    #[arg(long, value_enum, default_value = "sotw")]
    pub mode: Variant,
}
