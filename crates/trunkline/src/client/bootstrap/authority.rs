//! Authorities: names `xdstp://authority/...` and the sources that know them
//! (E13, gRFC A47).

use std::sync::Arc;

use trunkline_core::params::Params;

use crate::client::{ApiSource, ConfigSource};

/// What a bootstrap says of an authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authority {
    /// Its servers; those of the bootstrap if it is `None`.
    pub servers: Option<Arc<ApiSource>>,
    /// The template of its listeners' names (C8).
    pub listener_template: Option<String>,
    /// The dynamic parameters of its names (TP2); those of the client if it is
    /// `None`.
    pub parameters: Option<Params>,
}

/// A source for the names of some authorities: one of Envoy's
/// `config_sources` (E13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthoritySource {
    /// The authorities.
    pub authorities: Vec<String>,
    /// Their source.
    pub source: ConfigSource,
}
