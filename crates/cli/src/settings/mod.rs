//! The server's own settings: a file, flags that win over it, and defaults.
//!
//! ```text
//! file ── raw ─┐
//!              ├─▶ resolve, by the table ──▶ Settings
//! flags ───────┘
//! ```
//!
//! Each setting is one row of a table: its key in the file, its flag, its
//! meaning and its field. So no flag is without a key, and the example file
//! cannot forget one. Rules about nodes are more than values: they are in the
//! file alone.

mod base;
mod defaults;
mod flags;
mod operator;
mod params;
mod peer;
mod print;
mod raw;
mod resolve;
mod rules;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use trunkline::node::{BaseRule, NodeMatch, ParamRules};

pub(crate) use flags::Flags;
pub(crate) use operator::OperatorName;
pub(crate) use peer::{Collections, Pairs, Peer, parse_collection, parse_pair};
pub(crate) use print::example_file;
pub(crate) use raw::Raw;
pub(crate) use resolve::resolve;
pub(crate) use types::{
    Address, ByteSize, Choice, LogFormat, LogLevel, MemoryLimit, OnDangling, OverXds,
};
pub(crate) use value::parse_duration;

/// Returns whether a setting has this key.
#[cfg(test)]
pub(crate) fn is_key(key: &str) -> bool {
    let mut settings = table::SECTIONS.iter().flat_map(|section| section.settings);
    settings.any(|setting| setting.key == key)
}

/// All settings of a server, complete and checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) listen: Address,
    pub(crate) also_listen: Vec<Address>,
    pub(crate) admin: Address,
    pub(crate) health: Option<Address>,
    pub(crate) config: Vec<PathBuf>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) history: usize,
    pub(crate) allow_empty: bool,
    pub(crate) await_origins: Vec<String>,
    pub(crate) hold_removals: bool,
    pub(crate) dangling: OnDangling,
    pub(crate) config_quiet: Duration,
    pub(crate) config_rescan: Duration,
    pub(crate) descriptors: Vec<PathBuf>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) tls_client_ca: Option<PathBuf>,
    pub(crate) admin_tls_client_ca: Option<PathBuf>,
    pub(crate) admin_allow: Vec<OperatorName>,
    pub(crate) admin_token_file: Option<PathBuf>,
    pub(crate) admin_auth_reads: bool,
    pub(crate) allow_plaintext_secrets: bool,
    pub(crate) audit_log: Option<PathBuf>,
    pub(crate) audit_required: bool,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LogLevel,
    pub(crate) sending: Sending,
    pub(crate) rules: Rules,
    pub(crate) limits: Limits,
    pub(crate) times: Times,
    pub(crate) load: Load,
    pub(crate) mcp: Mcp,
}

/// Rules about the nodes of clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rules {
    pub(crate) base_sets: Vec<BaseRule>,
    pub(crate) params: ParamRules,
    pub(crate) resource_errors: Vec<NodeMatch>,
}

/// How resources are sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sending {
    pub(crate) identifier: String,
    pub(crate) debounce: Duration,
    pub(crate) repeat_endpoints: bool,
    pub(crate) named_only: Vec<String>,
}

/// Limits on the state and work that clients cause.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    pub(crate) streams: usize,
    pub(crate) streams_per_peer: usize,
    pub(crate) connections: usize,
    pub(crate) memory: MemoryLimit,
    pub(crate) connections_per_address: usize,
    pub(crate) subscriptions: usize,
    pub(crate) hosts: usize,
    pub(crate) globs: usize,
    pub(crate) types: usize,
    pub(crate) params: usize,
    pub(crate) all_params: usize,
    pub(crate) name: ByteSize,
    pub(crate) error: ByteSize,
    pub(crate) request: ByteSize,
    pub(crate) response: ByteSize,
    pub(crate) requests_per_second: u32,
    pub(crate) admin_body: ByteSize,
}

/// Timeouts and intervals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Times {
    pub(crate) drain: Duration,
    pub(crate) ready_patience: Duration,
    pub(crate) refusal_delay: Duration,
    pub(crate) send_timeout: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) keep_alive_timeout: Duration,
    pub(crate) max_connection_age: Duration,
}

/// The load reports that clients are asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) clusters: Vec<String>,
    pub(crate) interval: Duration,
    pub(crate) endpoints: bool,
    pub(crate) memory: ByteSize,
}

/// The source of the Mesh Configuration Protocol that contents come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mcp {
    pub(crate) from: Option<Peer>,
    pub(crate) listen: Option<Address>,
    pub(crate) collections: Collections,
    pub(crate) labels: Vec<String>,
    pub(crate) annotations: Pairs,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) over_xds: OverXds,
}

impl Mcp {
    /// Returns whether contents come from a source.
    pub(crate) fn is_on(&self) -> bool {
        self.from.is_some() || self.listen.is_some()
    }
}
