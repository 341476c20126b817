//! Flags of `watch`, of events or of what any control plane sends, and of `replay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{Remote, Types};
use crate::settings::parse_duration;

/// Flags of `watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// With --server or --bootstrap: a type, then names if not all of it; or TYPE/NAME each.
    /// Types are lds cds rds eds sds srds vhds rtds ecds leds, words such as clusters, or type
    /// URLs. A name may be a collection, such as xdstp://a/envoy.config.cluster.v3.Cluster/x/*
    #[arg(value_name = "TYPE[/NAME]")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) plane: Plane,
    #[command(flatten)]
    pub(crate) events: Events,
    /// With --server or --bootstrap the node id to have; else only clients with this node id, such
    /// as sidecar-7, beside changes; may be repeated then
    #[arg(long = "node", value_name = "ID")]
    pub(crate) nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags that pick the events of a Trunkline server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Events of a Trunkline server")]
pub(crate) struct Events {
    /// Begin after the change that made this revision, such as 12, and not now
    #[arg(long, value_name = "REVISION")]
    pub(crate) from: Option<u64>,
    /// Begin after the event with this id, which --json shows
    #[arg(long, value_name = "ID", conflicts_with = "from")]
    pub(crate) after: Option<String>,
    /// Only what is about this type, such as cds; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) of_types: Vec<String>,
    /// Only changed, acked, nacked, connected or disconnected; may be repeated
    #[arg(long = "event", value_name = "EVENT")]
    pub(crate) of_events: Vec<String>,
    /// Print events as the server sends them, one line of JSON each
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags that say which control plane is asked, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Resources of any control plane")]
pub(crate) struct Plane {
    /// The xDS address of a control plane: host:port, unix:PATH, or with http:// or https:// for
    /// TLS. Without either, TLS is spoken if --tls-ca or --tls-cert is given. Of several, the first
    /// that works is used
    #[arg(
        long = "server",
        value_name = "ADDR",
        conflicts_with_all = ["from", "after", "of_types", "of_events", "json"]
    )]
    pub(crate) servers: Vec<String>,
    /// A bootstrap of Envoy or gRPC, whose control planes are asked as its node
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["servers", "from", "after", "of_types", "of_events", "json"]
    )]
    pub(crate) bootstrap: Option<PathBuf>,
    /// Speak delta [default]
    #[arg(long, conflicts_with_all = ["sotw", "bootstrap"])]
    pub(crate) delta: bool,
    /// Speak state of the world
    #[arg(long, conflicts_with = "bootstrap")]
    pub(crate) sotw: bool,
    /// A dynamic parameter to have, such as env=prod; may be repeated
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = parse_param)]
    pub(crate) params: Vec<(String, String)>,
    /// End after the first full answer: with 0 if something was found, and each name; else with 1
    #[arg(long)]
    pub(crate) once: bool,
    /// How long --once waits for the answer
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_duration,
        default_value = "30s",
        requires = "once"
    )]
    pub(crate) timeout: Duration,
    /// Follow one listener or cluster with everything below it, such as listener:front or
    /// cluster:backend: routes, clusters, endpoints, secrets. Prints the tree, then each change
    #[arg(long)]
    pub(crate) tree: bool,
    /// How changes are shown
    #[arg(short, long, value_name = "FORMAT", default_value = "summary")]
    pub(crate) output: WatchOutput,
    /// Write all requests and responses to a new file, as lines of JSON. It holds secrets as they
    /// are received
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// A file with the token that --server wants to see, read anew for every stream. That of
    /// --token-file is for --admin, and no other server gets it
    #[arg(
        long,
        value_name = "FILE",
        requires = "servers",
        help_heading = "Security"
    )]
    pub(crate) server_token_file: Option<PathBuf>,
    /// The name that the certificate of --server is for, if it is not that of its address
    #[arg(
        long,
        value_name = "NAME",
        requires = "servers",
        help_heading = "Security"
    )]
    pub(crate) tls_name: Option<String>,
}

impl Plane {
    /// Returns whether a control plane is named.
    pub(crate) fn is_named(&self) -> bool {
        !self.servers.is_empty() || self.bootstrap.is_some()
    }
}

/// How `watch` shows a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WatchOutput {
    /// One line each: when, what happened, name, version.
    Summary,
    /// The resource, as a document of a file of resources.
    Yaml,
    /// One line of JSON each, with the resource.
    Json,
    /// With --tree: a graph for Graphviz, anew with each change.
    Dot,
}

/// Flags of `replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A recording, as `trunkline watch --record` writes it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where clients connect, without TLS; port 0 is any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:18000")]
    pub(crate) listen: String,
    /// Only the responses of this recorded stream; may be repeated
    #[arg(long = "stream", value_name = "NUMBER")]
    pub(crate) streams: Vec<u64>,
    /// Keep the recorded times, so many times faster: 1 is as they were, 10 ten times faster, 0.5
    /// half as fast. Without it, a response follows as soon as the one before it is answered
    #[arg(long, value_name = "FACTOR", value_parser = parse_speed)]
    pub(crate) speed: Option<f64>,
}

/// Parses a parameter such as `env=prod`.
pub(super) fn parse_param(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as env=prod".to_owned()),
    }
}

/// Parses a speed: a number above zero.
fn parse_speed(text: &str) -> Result<f64, String> {
    let speed: Option<f64> = text.parse().ok();
    let speed = speed.filter(|speed| (1e-3..=1e6).contains(speed));
    speed.ok_or_else(|| "expected a number between 0.001 and 1000000, such as 10".to_owned())
}
