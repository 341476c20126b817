//! Mirror policies: copies of a request for other clusters.

use trunkline_proto::acceptance::Place;
use trunkline_proto::envoy::envoy::config::route::v3::route_action::RequestMirrorPolicy;

use super::redirect::split_port;
use crate::findings::Findings;
use crate::request::Request;
use crate::runtime::{Runtime, RuntimeFraction};

/// A policy by which requests are copied.
#[derive(Debug, Clone)]
pub(super) struct MirrorPolicy {
    cluster: Box<str>,
    cluster_header: Box<str>,
    fraction: Option<RuntimeFraction>,
    host: MirrorHost,
}

#[derive(Debug, Clone)]
enum MirrorHost {
    /// That of the request, with `-shadow` before its port.
    Suffixed,
    Kept,
    Literal(Box<str>),
}

/// A copy of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror<'t> {
    /// The cluster that it goes to.
    pub cluster: &'t str,
    /// The host that it has.
    pub host: String,
}

impl MirrorPolicy {
    /// Compiles a mirror policy. Returns `None` if its fraction cannot be
    /// compiled.
    pub(super) fn compile(
        message: &RequestMirrorPolicy,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let fraction = message.runtime_fraction.as_ref().and_then(|fraction| {
            RuntimeFraction::compile(fraction, &place.field("runtime_fraction"), findings)
        });

        let host = match message.host_rewrite_literal.as_str() {
            "" if message.disable_shadow_host_suffix_append => MirrorHost::Kept,
            "" => MirrorHost::Suffixed,
            literal => MirrorHost::Literal(literal.into()),
        };

        Some(Self {
            cluster: message.cluster.as_str().into(),
            cluster_header: message.cluster_header.to_ascii_lowercase().into(),
            fraction,
            host,
        })
    }

    /// Returns the copy to make of a request. `host` is the host that the
    /// request has at the upstream. Returns `None` if the request is outside of
    /// the fraction, or no cluster is named.
    pub(super) fn apply<'t>(
        &'t self,
        request: &Request<'t>,
        host: &str,
        runtime: &Runtime,
        random: u64,
    ) -> Option<Mirror<'t>> {
        let fraction = self.fraction.as_ref();
        if fraction.is_some_and(|fraction| !fraction.includes(runtime, random)) {
            return None;
        }

        let cluster = match self.cluster_header.is_empty() {
            true => &*self.cluster,
            false => str::from_utf8(request.header(&self.cluster_header)?).ok()?,
        };

        if cluster.is_empty() {
            return None;
        }

        let mirror_host = match &self.host {
            MirrorHost::Kept => host.to_owned(),
            MirrorHost::Literal(literal) => literal.as_ref().to_owned(),
            MirrorHost::Suffixed => match split_port(host) {
                Some((name, port)) => format!("{name}-shadow:{port}"),
                None => format!("{host}-shadow"),
            },
        };

        Some(Mirror {
            cluster,
            host: mirror_host,
        })
    }
}
