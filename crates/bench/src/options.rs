//! What to measure: the flags of `trunkline bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::contents::Kind;

/// What is measured, of which server, by how many clients.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The xDS address of the server, as host:port; without it, a server of the
    /// library's own is started for the measurement
    #[arg(value_name = "ADDRESS", help_heading = "Server")]
    pub address: Option<String>,
    /// Start a server that only writes the same bytes, on the same HTTP/2 stack,
    /// and measure that: the limit that no server of this kind can pass
    #[arg(long, conflicts_with_all = ["address", "start"], help_heading = "Server")]
    pub floor: bool,
    /// Start this server and measure it; {address} stands for the one it should
    /// serve on, and {control}, if it is there, for one where it takes contents
    /// as `--driver put` gives them
    #[arg(
        long,
        value_name = "COMMAND",
        conflicts_with = "address",
        help_heading = "Server"
    )]
    pub start: Option<String>,
    /// The process of the server, to tell its CPU and memory
    #[arg(long, help_heading = "Server")]
    pub pid: Option<u32>,
    /// Run the server that is started on these cores, as taskset has them
    #[arg(long, value_name = "CORES", help_heading = "Server")]
    pub server_cores: Option<String>,

    /// How contents get into the server: `admin=URL` for Trunkline's admin API,
    /// `files=DIR` for a directory that it watches, `command=COMMAND` for a
    /// program that is given each change on its standard input, `put=URL` for
    /// encoded resources over HTTP, `none` to measure what is there
    #[arg(long, value_name = "HOW", help_heading = "Contents")]
    pub driver: Option<String>,
    /// Types of resources
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "cds",
        help_heading = "Contents"
    )]
    pub types: Vec<Kind>,
    /// Resources of each type
    #[arg(long, default_value_t = 1000, help_heading = "Contents")]
    pub resources: usize,
    /// About how many bytes each has
    #[arg(long, default_value_t = 500, help_heading = "Contents")]
    pub size: usize,
    /// What every name begins with
    #[arg(long, default_value = "bench", help_heading = "Contents")]
    pub prefix: String,

    /// Measure nothing; write a file of virtual hosts, in the binary form that
    /// `serve` and `apply` take
    #[arg(
        long,
        value_name = "FILE",
        requires = "virtual_hosts",
        help_heading = "Virtual hosts"
    )]
    pub write: Option<PathBuf>,
    /// How many virtual hosts, of two domains and about 300 bytes each, all of
    /// one route configuration
    #[arg(
        long,
        value_name = "COUNT",
        requires = "write",
        help_heading = "Virtual hosts"
    )]
    pub virtual_hosts: Option<usize>,
    /// Write them inside of their route configuration
    #[arg(long, requires = "write", help_heading = "Virtual hosts")]
    pub inside: bool,
    /// Write them inside of a route configuration without VHDS, which a proxy
    /// gets with all of them
    #[arg(
        long,
        requires = "write",
        conflicts_with = "inside",
        help_heading = "Virtual hosts"
    )]
    pub whole: bool,

    /// Clients
    #[arg(long, default_value_t = 100, help_heading = "Clients")]
    pub clients: usize,
    /// Which variant of the protocol
    #[arg(long, value_enum, default_value_t = Variant::Delta, help_heading = "Clients")]
    pub mode: Variant,
    /// A stream for each type, instead of one for all (ADS)
    #[arg(long, help_heading = "Clients")]
    pub per_type: bool,
    /// What each asks for: everything, some names, or a name now and then, popular
    /// ones more often
    #[arg(long, value_enum, default_value_t = Asking::Wildcard, help_heading = "Clients")]
    pub ask: Asking,
    /// Names that each asks for, unless it asks for everything
    #[arg(long, default_value_t = 10, help_heading = "Clients")]
    pub names: usize,
    /// Names that each asks for in a second, on demand
    #[arg(long, default_value_t = 1.0, help_heading = "Clients")]
    pub demand_rate: f64,
    /// How much more often popular names are asked for: the exponent of Zipf's law
    #[arg(long, default_value_t = 1.1, help_heading = "Clients")]
    pub zipf: f64,
    /// Kinds of clients, told apart by a parameter `category`
    #[arg(long, default_value_t = 0, help_heading = "Clients")]
    pub categories: usize,
    /// How clients say which kind they are
    #[arg(long, value_enum, default_value_t = Told::Locators, help_heading = "Clients")]
    pub told_by: Told,
    /// Connections that clients share; 0 is one each
    #[arg(long, default_value_t = 0, help_heading = "Clients")]
    pub connections: usize,
    /// Clients keep revisions only, 4 bytes for each resource, and no contents;
    /// for more clients and resources than fit otherwise
    #[arg(long, help_heading = "Clients")]
    pub light: bool,
    /// Further clients that never read, each on a connection of its own
    #[arg(long, default_value_t = 0, help_heading = "Clients")]
    pub slow_readers: usize,
    /// Seconds after which slow readers read after all
    #[arg(long, help_heading = "Clients")]
    pub slow_for: Option<f64>,
    /// Further clients that reject every response
    #[arg(long, default_value_t = 0, help_heading = "Clients")]
    pub nackers: usize,
    /// Clients reject this resource
    #[arg(long, value_name = "NAME", help_heading = "Clients")]
    pub nack: Option<String>,

    /// Seconds over which clients connect
    #[arg(long, default_value_t = 0.0, help_heading = "What happens")]
    pub ramp: f64,
    /// Changes of one resource each
    #[arg(long, default_value_t = 100, help_heading = "What happens")]
    pub changes: usize,
    /// Of which type; the first of --types unless given
    #[arg(long, value_name = "TYPE", help_heading = "What happens")]
    pub change: Option<Kind>,
    /// Changes in a second; 0 is the next one when the last has arrived
    #[arg(long, default_value_t = 0.0, help_heading = "What happens")]
    pub rate: f64,
    /// Changes that are made together
    #[arg(long, default_value_t = 1, help_heading = "What happens")]
    pub batch: usize,
    /// All clients lose their connections at once and come back, so many times
    #[arg(long, default_value_t = 0, help_heading = "What happens")]
    pub reconnect_storm: usize,
    /// The part of the contents that changes while they are away
    #[arg(long, default_value_t = 0.1, help_heading = "What happens")]
    pub changed_meanwhile: f64,
    /// Seconds in which nothing happens, at the end
    #[arg(long, default_value_t = 0.0, help_heading = "What happens")]
    pub duration: f64,
    /// Seconds after which a phase that makes no progress is given up
    #[arg(long, default_value_t = 60, help_heading = "What happens")]
    pub patience: u64,
    /// Where random choices begin
    #[arg(long, default_value_t = 1, help_heading = "What happens")]
    pub seed: u64,

    /// Threads of the tool; 0 is one for each core
    #[arg(long, default_value_t = 0, help_heading = "Report")]
    pub threads: usize,
    /// How the report looks
    #[arg(short, long, value_enum, default_value_t = Output::Table, help_heading = "Report")]
    pub output: Output,
    /// Also write the report as JSON to this file
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub report: Option<PathBuf>,

    /// Be a server that was started for a measurement
    #[arg(long, value_enum, hide = true)]
    pub child: Option<Child>,
    /// What stands between this program's name and these flags
    #[arg(skip)]
    pub command: Vec<String>,
}

/// Which variant of the protocol clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Incremental.
    Delta,
    /// State of the world.
    Sotw,
}

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Asking {
    /// Everything; endpoints and routes by the names that clusters and
    /// listeners lead to.
    Wildcard,
    /// Some names each, chosen at random.
    Named,
    /// One name after another, popular ones more often.
    Demand,
}

/// How a client says which kind it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Told {
    /// With each name that it asks for (TP2).
    Locators,
    /// In the metadata of its node.
    Metadata,
}

/// How the report looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// A server that is a process of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Child {
    /// The library's.
    Library,
    /// The one that only writes.
    Floor,
}
