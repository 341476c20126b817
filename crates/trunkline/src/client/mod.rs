//! The client: a bootstrap in, watches out.

mod bootstrap;
mod config_source;
mod control_plane;

pub use bootstrap::{
    Authority, AuthoritySource, Bootstrap, ConfigError, DataSourcePolicy, DynamicParameters,
    FileWatcher, ListenerTemplates, Mistake, Place, Problem, StaticResource, TargetError,
};
pub use config_source::{ApiSource, ConfigSource, PathSource, RateLimit, Specifier, Transport};
pub use control_plane::{
    Address, ControlPlane, Features, Keepalive, Pem, Secret, Security, TlsOptions,
};
