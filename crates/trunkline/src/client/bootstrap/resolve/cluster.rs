//! A static cluster as a control plane.

use std::time::Duration;

use prost::Message as _;
use trunkline_proto::descriptor::full_name;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType,
};
use trunkline_proto::envoy::envoy::config::core::v3::Http2ProtocolOptions;
use trunkline_proto::envoy::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use trunkline_proto::envoy::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    UpstreamProtocolOptions, explicit_http_config::ProtocolConfig,
};

use super::super::problem::Problem;
use super::super::report::Scope;
use super::{Resolver, duration, endpoints, features};
use crate::client::{Address, ControlPlane, Features, Keepalive, Security};

/// The key of the options of HTTP.
const HTTP_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// How long the answer to a ping may take, if nothing else is said.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Types of clusters by the names of their extensions.
const EXTENSIONS: [(&str, DiscoveryType); 4] = [
    ("envoy.cluster.static", DiscoveryType::Static),
    ("envoy.cluster.strict_dns", DiscoveryType::StrictDns),
    ("envoy.cluster.logical_dns", DiscoveryType::LogicalDns),
    ("envoy.cluster.dns", DiscoveryType::StrictDns),
];

/// The parts of a control plane that its cluster knows.
pub(super) struct Upstream {
    address: Address,
    alternatives: Vec<Address>,
    security: Security,
    features: Features,
    connect_timeout: Duration,
    keepalive: Option<Keepalive>,
    /// Whether the cluster is set up for gRPC.
    pub(super) speaks_http2: bool,
    /// The path of the cluster.
    pub(super) path: String,
}

impl From<Upstream> for ControlPlane {
    fn from(upstream: Upstream) -> Self {
        Self {
            alternatives: upstream.alternatives,
            security: upstream.security,
            features: upstream.features,
            connect_timeout: upstream.connect_timeout,
            keepalive: upstream.keepalive,
            ..Self::plaintext(upstream.address)
        }
    }
}

impl Resolver<'_> {
    /// Resolves the static cluster of a name. An unknown name is a mistake at
    /// `reference`, the field that has the name.
    pub(super) fn resolve_cluster(self, name: &str, reference: &Scope<'_>) -> Option<Upstream> {
        let Some((index, cluster)) = self.statics.cluster(name) else {
            return reference.mistake(Problem::UnknownCluster {
                name: name.to_owned(),
                near: self.statics.nearest_cluster(name),
            });
        };
        let path = format!("static_resources.clusters[{index}]");
        let scope = &reference.at_path(&path);

        let addresses = read_discovery(cluster, scope)
            .and_then(|kind| endpoints::read_addresses(cluster, kind, scope));
        let security = self.resolve_security(cluster, scope);
        let features = features::from_metadata(cluster.metadata.as_ref(), scope);
        let connect_timeout = duration::read_or(
            cluster.connect_timeout.as_ref(),
            ControlPlane::CONNECT_TIMEOUT,
            &scope.field("connect_timeout"),
        );
        let http2 = read_http2(cluster);
        let keepalive = http2.as_ref().map_or(Some(None), |http2| {
            read_keepalive(http2, &scope.field("typed_extension_protocol_options"))
        });

        let mut addresses = addresses?.into_iter();
        Some(Upstream {
            address: addresses.next()?,
            alternatives: addresses.collect(),
            security: security?,
            features,
            connect_timeout: connect_timeout?,
            keepalive: keepalive?,
            speaks_http2: http2.is_some(),
            path,
        })
    }
}

/// Returns how the endpoints of a cluster are discovered. A cluster whose
/// endpoints come from a control plane is a mistake.
fn read_discovery(cluster: &Cluster, scope: &Scope<'_>) -> Option<DiscoveryType> {
    let kind = match cluster.cluster_discovery_type.as_ref() {
        None => return Some(DiscoveryType::Static),
        Some(ClusterDiscoveryType::Type(number)) => DiscoveryType::try_from(*number).ok(),
        Some(ClusterDiscoveryType::ClusterType(custom)) => {
            let mut extensions = EXTENSIONS.iter();
            match extensions.find(|(name, _)| *name == custom.name) {
                Some((_, kind)) => Some(*kind),
                None => {
                    let kind = custom.name.clone();
                    let scope = scope.field("cluster_type.name");
                    return scope.mistake(Problem::Discovered { kind });
                }
            }
        }
    };
    match kind {
        Some(DiscoveryType::Static | DiscoveryType::StrictDns | DiscoveryType::LogicalDns) => kind,
        unsupported => {
            let kind = unsupported.map_or("unknown", |kind| kind.as_str_name());
            let kind = kind.to_owned();
            scope.field("type").mistake(Problem::Discovered { kind })
        }
    }
}

/// Returns the options of HTTP/2, from the older field or the newer one. `None`
/// means a cluster that speaks HTTP/1.
fn read_http2(cluster: &Cluster) -> Option<Http2ProtocolOptions> {
    #[expect(deprecated, reason = "older bootstraps have them there")]
    let older_options = cluster.http2_protocol_options.clone();
    if older_options.is_some() {
        return older_options;
    }

    let options = cluster.typed_extension_protocol_options.get(HTTP_OPTIONS)?;
    if full_name(&options.type_url) != HTTP_OPTIONS {
        return None;
    }
    let options = HttpProtocolOptions::decode(options.value.as_slice()).ok()?;
    match options.upstream_protocol_options? {
        UpstreamProtocolOptions::ExplicitHttpConfig(config) => match config.protocol_config? {
            ProtocolConfig::Http2ProtocolOptions(options) => Some(options),
            _ => None,
        },
        UpstreamProtocolOptions::UseDownstreamProtocolConfig(config) => {
            config.http2_protocol_options
        }
        UpstreamProtocolOptions::AutoConfig(config) => config.http2_protocol_options,
    }
}

/// Reads the pings of HTTP/2. Returns `Some(None)` if the cluster sends none, and
/// `None` after a mistake.
fn read_keepalive(options: &Http2ProtocolOptions, scope: &Scope<'_>) -> Option<Option<Keepalive>> {
    let Some(settings) = options.connection_keepalive.as_ref() else {
        return Some(None);
    };
    let Some(interval) = settings.interval.as_ref() else {
        return Some(None);
    };
    Some(Some(Keepalive {
        interval: duration::read(interval, scope)?,
        timeout: duration::read_or(settings.timeout.as_ref(), PING_TIMEOUT, scope)?,
    }))
}
