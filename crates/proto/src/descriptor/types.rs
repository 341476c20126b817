//! The type URLs of the resources that xDS carries.

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident = $message:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = concat!("type.googleapis.com/", $message);)*

        /// All of them.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

types! {
    /// LDS.
    LISTENER = "envoy.config.listener.v3.Listener";
    /// RDS.
    ROUTE_CONFIGURATION = "envoy.config.route.v3.RouteConfiguration";
    /// SRDS.
    SCOPED_ROUTE_CONFIGURATION = "envoy.config.route.v3.ScopedRouteConfiguration";
    /// VHDS.
    VIRTUAL_HOST = "envoy.config.route.v3.VirtualHost";
    /// CDS.
    CLUSTER = "envoy.config.cluster.v3.Cluster";
    /// EDS.
    CLUSTER_LOAD_ASSIGNMENT = "envoy.config.endpoint.v3.ClusterLoadAssignment";
    /// LEDS.
    LB_ENDPOINT = "envoy.config.endpoint.v3.LbEndpoint";
    /// SDS.
    SECRET = "envoy.extensions.transport_sockets.tls.v3.Secret";
    /// RTDS.
    RUNTIME = "envoy.service.runtime.v3.Runtime";
    /// ECDS.
    TYPED_EXTENSION_CONFIG = "envoy.config.core.v3.TypedExtensionConfig";
}

/// Metadata, in a resource or in its wrapper.
pub const METADATA: &str = "type.googleapis.com/envoy.config.core.v3.Metadata";

/// The wrapper of a resource, with name, version and TTL (S58).
pub const RESOURCE: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";
