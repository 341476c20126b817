//! The client: a bootstrap in, watches out.

mod config_source;
mod control_plane;
pub mod transport;

pub use config_source::{ApiSource, ConfigSource, PathSource, RateLimit, Specifier, Transport};
pub use control_plane::{Address, ControlPlane, Features, Pem, Secret, Security, TlsOptions};
