//! From messages to config sources and control planes: the same code for a
//! bootstrap and for resources that name a source of their own.
//!
//! ```text
//! ConfigSource ── source ──▶ ads, self, path
//!     ApiConfigSource ── api ──▶ transport, limits, servers
//!         GrpcService ── service ──▶ envoy_grpc: a static cluster (cluster, endpoints, tls)
//!                                    google_grpc: a target and credentials (google)
//! ```
//!
//! Everything that is wrong is reported, and `None` from a step means that the
//! reason has been.

mod api;
mod cluster;
mod data_source;
mod duration;
mod endpoints;
mod features;
mod google;
mod service;
mod source;
mod tls;

pub(super) use duration::parse_seconds;
pub(super) use features::set_feature;

use super::policy::Author;
use super::statics::Statics;
use crate::client::Address;

/// Resolves messages against the static resources of a bootstrap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolver<'a> {
    pub(super) statics: &'a Statics,
    pub(super) referrer: Referrer<'a>,
    /// What has to be set for an aggregated stream, if there is none.
    pub(super) missing_ads: Option<&'static str>,
}

/// Where the message is that is resolved.
#[derive(Clone, Copy, Debug)]
pub(super) enum Referrer<'a> {
    /// In the bootstrap.
    Bootstrap,
    /// In a resource that a control plane sent.
    Resource {
        /// Bounds of what it may name.
        policy: &'a super::DataSourcePolicy,
        /// The addresses of the control planes of the bootstrap.
        servers: &'a [Address],
        /// `self` means the aggregated stream (C14).
        self_is_ads: bool,
    },
}

impl<'a> Referrer<'a> {
    /// Returns who wrote the message.
    fn author(self) -> Author<'a> {
        match self {
            Self::Bootstrap => Author::Bootstrap,
            Self::Resource { policy, .. } => Author::ControlPlane(policy),
        }
    }
}
