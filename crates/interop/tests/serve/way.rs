//! The ways in which Envoy subscribes.

use interop::{Mode, bootstrap};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Ads(Mode),
    /// ADS by the client inside Envoy that will replace both of today's.
    Unified(Mode),
    /// A stream for each type.
    Streams(Mode),
    Rest,
}

pub(crate) const SOTW: Way = Way::Ads(Mode::Sotw);
pub(crate) const DELTA: Way = Way::Ads(Mode::Delta);

const UNIFIED: &str = "layered_runtime: {layers: [{name: unified, \
                       static_layer: {envoy.reloadable_features.unified_mux: true}}]}\n";

impl Way {
    pub(crate) fn bootstrap(self, port: u16) -> String {
        match self {
            Self::Ads(mode) => bootstrap::ads(port, mode, "n1"),
            Self::Unified(mode) => bootstrap::ads(port, mode, "n1") + UNIFIED,
            Self::Streams(mode) => bootstrap::streams(port, mode, "n1"),
            Self::Rest => bootstrap::rest(port, "n1"),
        }
    }

    /// The source that resources name for others, in YAML.
    pub(crate) fn source(self) -> String {
        match self {
            Self::Ads(_) | Self::Unified(_) => bootstrap::ADS.to_owned(),
            Self::Streams(mode) => bootstrap::stream_source(mode),
            Self::Rest => bootstrap::rest_source(),
        }
    }
}
