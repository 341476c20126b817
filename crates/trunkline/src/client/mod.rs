//! The client: a bootstrap in, watches out.
//!
//! | module | concern |
//! |---|---|
//! | `bootstrap` | Envoy's bootstrap and gRPC's |
//! | `builder`, `handle`, `settings`, `providers` | the client, how it is made, where it asks for what, where certificates come from |
//! | `query`, `subscription`, `watch`, `state`, `raw` | what is asked for, and what a watcher is told |
//! | `config_source`, `control_plane`, `address`, `sources` | where resources come from; equal ones are shared (C12) |
//! | `driver`, `tasks`, `exchange`, `stream`, `poll`, `file`, `shared`, `judge`, `values` | tasks, what they carry and how, the machine of the engine behind a lock, the judgement of responses, decoded messages |
//! | [`tree`] | listeners and clusters with everything below them, as snapshots |
//! | `events`, `metrics`, `dump`, `rejections`, `csds` | what happens, and what is held, for those who log, count, record or look |
//! | [`load`] | load reports |
//! | [`secrets`] | certificates and authorities of SDS, for rustls |
//! | `calls` | what becomes of an error in the calls of an application |
//! | [`transport`] | connections and streams of bytes |
//!
//! Everything is decided by [`trunkline_core::client`]; this module has sockets,
//! tasks and a clock.

mod address;
mod bootstrap;
mod builder;
mod calls;
mod config_source;
mod control_plane;
mod csds;
mod driver;
mod dump;
mod events;
mod exchange;
mod file;
mod handle;
mod judge;
pub mod load;
mod metrics;
mod poll;
#[cfg(feature = "channel")]
mod providers;
mod query;
mod raw;
mod rejections;
pub mod secrets;
mod settings;
mod shared;
mod sources;
mod state;
mod stream;
mod subscription;
mod tasks;
pub mod transport;
pub mod tree;
mod values;
mod watch;

pub use address::AddressError;
pub use bootstrap::{
    Authority, AuthoritySource, Bootstrap, ConfigError, DataSourcePolicy, DynamicParameters,
    FileWatcher, ListenerTemplates, Mistake, Place, Problem, RuntimeLayer, StaticResource,
    TargetError,
};
pub use builder::ClientBuilder;
pub use config_source::{ApiSource, ConfigSource, PathSource, Specifier, Transport};
pub use control_plane::{
    Address, ControlPlane, Features, Keepalive, Pem, Secret, Security, TlsOptions,
};
pub use csds::ClientStatus;
pub use dump::Held;
pub use events::{ClientEvent, Observer, StreamInfo};
pub use handle::Client;
pub use metrics::Sample;
pub use query::Query;
pub use raw::Raw;
pub use rejections::RejectedUpdate;
pub use settings::SourceError;
pub use state::{Loaded, State};
pub use subscription::Subscription;
pub use trunkline_core::client::{FallbackPolicy, Origin, RateLimit};
pub use trunkline_core::sink::{CacheState, Cause, DataErrors, WatchError};
pub use watch::{Watch, WatchMany};
