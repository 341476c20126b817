//! The paths of discovery: gRPC methods of streams, and where types are polled.
//!
//! A server finds what a path asks for, a client the path that asks for it.

use trunkline_core::kind;
use trunkline_core::message::Mode;
use trunkline_core::resource::TypeUrl;

/// A discovery service and its methods.
struct Row {
    /// The package and the name of the service.
    service: &'static str,
    /// The method of state of the world; empty if the service has none.
    sotw: &'static str,
    /// The delta method.
    delta: &'static str,
    /// The type of the service; `None` if it is the aggregated one.
    only: Option<&'static str>,
}

/// The form of a stream.
#[cfg(feature = "server")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamForm {
    /// The protocol that the stream speaks.
    pub(crate) mode: Mode,
    /// The only type of the stream; `None` on an aggregated one.
    pub(crate) only: Option<TypeUrl>,
}

const ROWS: &[Row] = &[
    Row {
        service: "discovery.v3.AggregatedDiscoveryService",
        sotw: "StreamAggregatedResources",
        delta: "DeltaAggregatedResources",
        only: None,
    },
    Row {
        service: "listener.v3.ListenerDiscoveryService",
        sotw: "StreamListeners",
        delta: "DeltaListeners",
        only: Some(kind::LDS),
    },
    Row {
        service: "cluster.v3.ClusterDiscoveryService",
        sotw: "StreamClusters",
        delta: "DeltaClusters",
        only: Some(kind::CDS),
    },
    Row {
        service: "route.v3.RouteDiscoveryService",
        sotw: "StreamRoutes",
        delta: "DeltaRoutes",
        only: Some(kind::RDS),
    },
    Row {
        service: "route.v3.ScopedRoutesDiscoveryService",
        sotw: "StreamScopedRoutes",
        delta: "DeltaScopedRoutes",
        only: Some(kind::SRDS),
    },
    // Delta only (S66).
    Row {
        service: "route.v3.VirtualHostDiscoveryService",
        sotw: "",
        delta: "DeltaVirtualHosts",
        only: Some(kind::VHDS),
    },
    Row {
        service: "endpoint.v3.EndpointDiscoveryService",
        sotw: "StreamEndpoints",
        delta: "DeltaEndpoints",
        only: Some(kind::EDS),
    },
    Row {
        service: "endpoint.v3.LocalityEndpointDiscoveryService",
        sotw: "",
        delta: "DeltaLocalityEndpoints",
        only: Some(kind::LEDS),
    },
    Row {
        service: "secret.v3.SecretDiscoveryService",
        sotw: "StreamSecrets",
        delta: "DeltaSecrets",
        only: Some(kind::SDS),
    },
    Row {
        service: "runtime.v3.RuntimeDiscoveryService",
        sotw: "StreamRuntime",
        delta: "DeltaRuntime",
        only: Some(kind::RTDS),
    },
    Row {
        service: "extension.v3.ExtensionConfigDiscoveryService",
        sotw: "StreamExtensionConfigs",
        delta: "DeltaExtensionConfigs",
        only: Some(kind::ECDS),
    },
];

/// Returns the full names of the discovery services.
#[cfg(feature = "server")]
pub(crate) fn service_names() -> impl Iterator<Item = String> {
    ROWS.iter()
        .map(|row| format!("envoy.service.{}", row.service))
}

/// Returns the form of the stream that a path opens; `None` for any other path.
#[cfg(feature = "server")]
pub(crate) fn stream_of_path(path: &str) -> Option<StreamForm> {
    let (service, method) = path.strip_prefix("/envoy.service.")?.split_once('/')?;
    let row = ROWS.iter().find(|row| row.service == service)?;
    let mode = match method {
        // A service without a SotW method has an empty one in its row.
        "" => return None,
        method if method == row.sotw => Mode::Sotw,
        method if method == row.delta => Mode::Delta,
        _ => return None,
    };
    Some(StreamForm {
        mode,
        only: row.only.map(TypeUrl::from),
    })
}

/// Returns the path of a stream's method: of the only type of the stream, or of
/// the aggregated service. Returns `None` if there is no such method.
#[cfg(feature = "client")]
pub(crate) fn path_of_stream(mode: Mode, only: Option<&TypeUrl>) -> Option<String> {
    let only = only.map(TypeUrl::as_str);
    let row = ROWS.iter().find(|row| row.only == only)?;
    let method = match mode {
        Mode::Sotw => row.sotw,
        Mode::Delta => row.delta,
    };
    (!method.is_empty()).then(|| format!("/envoy.service.{}/{method}", row.service))
}

/// Every path that can be polled, and its type: the paths of Envoy's services.
pub(crate) const POLLED: &[(&str, &str)] = &[
    ("/v3/discovery:clusters", kind::CDS),
    ("/v3/discovery:endpoints", kind::EDS),
    ("/v3/discovery:extension_configs", kind::ECDS),
    ("/v3/discovery:listeners", kind::LDS),
    ("/v3/discovery:routes", kind::RDS),
    ("/v3/discovery:runtime", kind::RTDS),
    ("/v3/discovery:scoped-routes", kind::SRDS),
    ("/v3/discovery:secrets", kind::SDS),
];

/// Returns the path at which a type is polled; `None` if it is not.
#[cfg(feature = "client")]
pub(crate) fn path_of_poll(kind: &TypeUrl) -> Option<&'static str> {
    let of = |(path, known): &(&'static str, &str)| (*known == kind.as_str()).then_some(*path);
    POLLED.iter().find_map(of)
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;

    #[cfg(feature = "client")]
    #[test]
    fn a_protocol_and_perhaps_a_type_have_a_path() {
        let vhds = kind::VHDS.into();
        assert_eq!(path_of_stream(Mode::Sotw, Some(&vhds)), None);
        assert_eq!(
            path_of_stream(Mode::Delta, Some(&vhds)).as_deref(),
            Some("/envoy.service.route.v3.VirtualHostDiscoveryService/DeltaVirtualHosts")
        );
        assert_eq!(
            path_of_stream(Mode::Sotw, None).as_deref(),
            Some(
                "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
            )
        );
        assert_eq!(path_of_stream(Mode::Sotw, Some(&"other".into())), None);
        assert_eq!(
            path_of_poll(&kind::CDS.into()),
            Some("/v3/discovery:clusters")
        );
        assert_eq!(path_of_poll(&vhds), None);
    }

    #[cfg(feature = "server")]
    #[test]
    fn a_path_is_a_protocol_and_perhaps_a_type() {
        let ads = "/envoy.service.discovery.v3.AggregatedDiscoveryService/";
        let of = |service: &str, method: &str| {
            let form = stream_of_path(&format!("{service}{method}"))?;
            Some((form.mode, form.only))
        };
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

    #[cfg(feature = "client")]
    #[test]
    fn a_client_opens_what_a_server_serves() {
        for only in [None, Some(kind::CDS), Some(kind::VHDS)] {
            let only = only.map(TypeUrl::from);
            let path = path_of_stream(Mode::Delta, only.as_ref()).unwrap();
            let form = stream_of_path(&path).unwrap();
            assert_eq!((form.mode, form.only), (Mode::Delta, only));
        }
        assert_eq!(path_of_stream(Mode::Sotw, Some(&kind::VHDS.into())), None);
    }

    #[test]
    fn every_type_has_a_service() {
        for url in kind::ALL {
            assert!(ROWS.iter().any(|row| row.only == Some(*url)), "{url}");
        }
    }
}
