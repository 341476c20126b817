//! The gRPC paths of streams.

use trunkline_core::kind;
use trunkline_core::message::Mode;
use trunkline_core::resource::TypeUrl;

/// Package and service, its SotW method, its delta method, its type.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

const ROWS: &[Row] = &[
    (
        "discovery.v3.AggregatedDiscoveryService",
        "StreamAggregatedResources",
        "DeltaAggregatedResources",
        None,
    ),
    (
        "listener.v3.ListenerDiscoveryService",
        "StreamListeners",
        "DeltaListeners",
        Some(kind::LDS),
    ),
    (
        "cluster.v3.ClusterDiscoveryService",
        "StreamClusters",
        "DeltaClusters",
        Some(kind::CDS),
    ),
    (
        "route.v3.RouteDiscoveryService",
        "StreamRoutes",
        "DeltaRoutes",
        Some(kind::RDS),
    ),
    (
        "route.v3.ScopedRoutesDiscoveryService",
        "StreamScopedRoutes",
        "DeltaScopedRoutes",
        Some(kind::SRDS),
    ),
    // Delta only (S66).
    (
        "route.v3.VirtualHostDiscoveryService",
        "",
        "DeltaVirtualHosts",
        Some(kind::VHDS),
    ),
    (
        "endpoint.v3.EndpointDiscoveryService",
        "StreamEndpoints",
        "DeltaEndpoints",
        Some(kind::EDS),
    ),
    (
        "endpoint.v3.LocalityEndpointDiscoveryService",
        "",
        "DeltaLocalityEndpoints",
        Some(kind::LEDS),
    ),
    (
        "secret.v3.SecretDiscoveryService",
        "StreamSecrets",
        "DeltaSecrets",
        Some(kind::SDS),
    ),
    (
        "runtime.v3.RuntimeDiscoveryService",
        "StreamRuntime",
        "DeltaRuntime",
        Some(kind::RTDS),
    ),
    (
        "extension.v3.ExtensionConfigDiscoveryService",
        "StreamExtensionConfigs",
        "DeltaExtensionConfigs",
        Some(kind::ECDS),
    ),
];

/// The full names of the services.
pub(super) fn services() -> impl Iterator<Item = String> {
    ROWS.iter().map(|row| format!("envoy.service.{}", row.0))
}

/// The variant that a stream of this path speaks, and its type, unless it is an
/// aggregated one; `None` if the path opens no stream.
pub(super) fn stream(path: &str) -> Option<(Mode, Option<TypeUrl>)> {
    let (service, method) = path.strip_prefix("/envoy.service.")?.split_once('/')?;
    let (_, sotw, delta, only) = ROWS.iter().find(|row| row.0 == service)?;
    let mode = match method {
        // A service without a SotW method has an empty one in its row.
        "" => return None,
        method if method == *sotw => Mode::Sotw,
        method if method == *delta => Mode::Delta,
        _ => return None,
    };
    Some((mode, only.map(TypeUrl::from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_protocol_and_perhaps_a_type() {
        let ads = "/envoy.service.discovery.v3.AggregatedDiscoveryService/";
        let of = |service: &str, method: &str| stream(&format!("{service}{method}"));
        assert_eq!(
            of(ads, "StreamAggregatedResources"),
            Some((Mode::Sotw, None))
        );
        assert_eq!(
            of(ads, "DeltaAggregatedResources"),
            Some((Mode::Delta, None))
        );
        let hosts = "/envoy.service.route.v3.VirtualHostDiscoveryService/";
        let only = Some(kind::VHDS.into());
        assert_eq!(of(hosts, "DeltaVirtualHosts"), Some((Mode::Delta, only)));
        assert_eq!(of(hosts, ""), None);
        assert_eq!(of(hosts, "StreamVirtualHosts"), None);
        assert_eq!(of("/x", "/y"), None);
    }

    #[test]
    fn every_type_has_a_service() {
        for url in kind::ALL {
            assert!(ROWS.iter().any(|row| row.3 == Some(*url)), "{url}");
        }
    }
}
