//! Flags of `trunkline route`.

use std::path::PathBuf;

use clap::Args;

use super::Types;

/// Flags of `route`.
#[derive(Debug, Args)]
pub(crate) struct Route {
    /// Files with routes, or directories of files; may be repeated
    #[arg(long, required = true, value_name = "PATH")]
    pub(crate) config: Vec<PathBuf>,
    /// The route configuration, if there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) routes: Option<String>,
    /// A file with a node or an Envoy bootstrap: variants are those that a client with it gets
    #[arg(long, value_name = "FILE")]
    pub(crate) node: Option<PathBuf>,
    /// The same by dynamic parameters: env=prod,version=v1
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with = "node")]
    pub(crate) params: Option<String>,
    /// The method of the request
    #[arg(required_unless_present = "expect", value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// The URL of the request
    #[arg(required_unless_present = "expect", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A header of the request; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The random number that decides on fractions and weights
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) random: u64,
    /// A file of requests and what is expected of each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "headers"])]
    pub(crate) expect: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) types: Types,
}
