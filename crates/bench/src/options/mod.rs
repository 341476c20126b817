//! What to measure: the flags of `trunkline bench`.

mod choice;

use std::path::PathBuf;

use clap::Args;

use crate::contents::Kind;

pub use choice::{Asking, Child, Output, Told, Variant};

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

    /// Speak TLS with the server, which one of these authorities vouches for (PEM)
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub tls_ca: Option<PathBuf>,
    /// The certificate that clients show, with those that lead to its authority
    /// (PEM)
    #[arg(
        long,
        value_name = "FILE",
        requires_all = ["tls_ca", "tls_key"],
        help_heading = "TLS"
    )]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "TLS")]
    pub tls_key: Option<PathBuf>,
    /// The name that the server's certificate is for, if it is not that of its
    /// address
    #[arg(long, value_name = "NAME", requires = "tls_ca", help_heading = "TLS")]
    pub tls_name: Option<String>,

    /// How contents get into the server: `admin=URL` for Trunkline's admin API,
    /// `files=DIR` for a directory that it watches, `command=COMMAND` for a
    /// program that is run for each change (YAML on its standard input; in its
    /// environment BENCH_ACTION, put or remove, and BENCH_TYPE, BENCH_NAME,
    /// BENCH_COUNT), `put=URL` for encoded resources over HTTP, `none` to measure
    /// what is there
    #[arg(long, value_name = "HOW", help_heading = "Contents")]
    pub driver: Option<String>,
    /// Types of resources
    #[arg(
        long,
        value_name = "TYPE",
        value_delimiter = ',',
        default_value = "cds",
        help_heading = "Contents"
    )]
    pub types: Vec<Kind>,
    /// Resources of each type
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 1000,
        help_heading = "Contents"
    )]
    pub resources: usize,
    /// About how many bytes each has
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 500,
        help_heading = "Contents"
    )]
    pub size: usize,
    /// Variants of each resource, each for clients of other --categories (TP2); a
    /// change is one of one variant
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 1,
        help_heading = "Variants"
    )]
    pub variants: usize,
    /// What every name begins with
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "bench",
        help_heading = "Contents"
    )]
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

    /// How many there are
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 100,
        help_heading = "Clients"
    )]
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
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 10,
        help_heading = "Clients"
    )]
    pub names: usize,
    /// Names that each asks for in a second, on demand
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 1.0,
        help_heading = "Clients"
    )]
    pub demand_rate: f64,
    /// How much more often popular names are asked for: the exponent of Zipf's law
    #[arg(
        long,
        value_name = "EXPONENT",
        default_value_t = 1.1,
        help_heading = "Clients"
    )]
    pub zipf: f64,
    /// Kinds of clients, told apart by a parameter `category`, whose values are
    /// c0, c1 and so on
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 0,
        help_heading = "Variants"
    )]
    pub categories: usize,
    /// How clients say which kind they are; in their node, if they ask for
    /// everything, else with each name
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Variants")]
    pub told_by: Option<Told>,
    /// Connections that clients share; 0 is one each
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 0,
        help_heading = "Clients"
    )]
    pub connections: usize,
    /// Clients keep revisions only, 4 bytes for each resource, and no contents;
    /// for more clients and resources than fit otherwise
    #[arg(long, help_heading = "Clients")]
    pub light: bool,
    /// Further clients that never read, each on a connection of its own
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 0,
        help_heading = "Clients that misbehave"
    )]
    pub slow_readers: usize,
    /// Seconds after which slow readers read after all
    #[arg(long, value_name = "SECONDS", help_heading = "Clients that misbehave")]
    pub slow_for: Option<f64>,
    /// Further clients that reject every response, or what --nack-part says
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 0,
        help_heading = "Clients that misbehave"
    )]
    pub nackers: usize,
    /// The part of the changes that --nackers reject; they take everything else,
    /// and that is checked
    #[arg(
        long,
        value_name = "PART",
        requires = "nackers",
        help_heading = "Clients that misbehave"
    )]
    pub nack_part: Option<f64>,
    /// Clients reject this resource
    #[arg(long, value_name = "NAME", help_heading = "Clients that misbehave")]
    pub nack: Option<String>,

    /// Seconds over which clients connect
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0.0,
        help_heading = "What happens"
    )]
    pub ramp: f64,
    /// Changes of one resource each
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 100,
        help_heading = "What happens"
    )]
    pub changes: usize,
    /// The part of the changes that take a resource away; each is followed by one
    /// that brings it back, so 0.5 at most
    #[arg(
        long,
        value_name = "PART",
        default_value_t = 0.0,
        help_heading = "What happens"
    )]
    pub removals: f64,
    /// Of which type; the first of --types unless given
    #[arg(long, value_name = "TYPE", help_heading = "What happens")]
    pub change: Option<Kind>,
    /// Changes in a second; 0 is the next one when the last has arrived
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 0.0,
        help_heading = "What happens"
    )]
    pub rate: f64,
    /// Changes that are made together
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 1,
        help_heading = "What happens"
    )]
    pub batch: usize,
    /// All clients lose their connections at once and come back, so many times
    #[arg(
        long,
        value_name = "TIMES",
        default_value_t = 0,
        help_heading = "What happens"
    )]
    pub reconnect_storm: usize,
    /// The part of the contents that changes while they are away
    #[arg(
        long,
        value_name = "PART",
        default_value_t = 0.1,
        help_heading = "What happens"
    )]
    pub changed_meanwhile: f64,
    /// Seconds in which nothing happens, at the end
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0.0,
        help_heading = "What happens"
    )]
    pub duration: f64,
    /// Seconds after which a phase that makes no progress is given up
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        help_heading = "What happens"
    )]
    pub patience: u64,
    /// Where random choices begin
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        help_heading = "What happens"
    )]
    pub seed: u64,

    /// Threads of the tool; 0 is one for each core
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 0,
        help_heading = "Report"
    )]
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

impl Options {
    /// Returns how clients say which kind they are. Without a flag, they say it
    /// with each name if they subscribe by names: a wildcard has no parameters
    /// that every server knows.
    #[must_use]
    pub fn told(&self) -> Told {
        let usual = match self.ask {
            Asking::Wildcard => Told::Metadata,
            Asking::Named | Asking::Demand => Told::Locators,
        };
        self.told_by.unwrap_or(usual)
    }
}
