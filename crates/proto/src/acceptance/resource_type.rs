//! The Rust types of resources.

use prost::Message;

use super::findings::Findings;
use super::grpc;
use super::policy::Profile;
use crate::descriptor::types;
use crate::envoy::envoy::config::cluster::v3::Cluster;
use crate::envoy::envoy::config::core::v3::TypedExtensionConfig;
use crate::envoy::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use crate::envoy::envoy::config::listener::v3::Listener;
use crate::envoy::envoy::config::route::v3::{
    RouteConfiguration, ScopedRouteConfiguration, VirtualHost,
};
use crate::envoy::envoy::extensions::transport_sockets::tls::v3::Secret;
use crate::envoy::envoy::service::runtime::v3::Runtime;

/// A type of resources that can be accepted. A program may implement it for a
/// type of its own, and add that to [`Types`](super::Types).
///
/// ```
/// use bytes::Bytes;
/// use prost::Message;
/// use trunkline_proto::acceptance::{self, Findings, Place, Policy, Problem, ResourceType};
///
/// #[derive(Clone, PartialEq, Message)]
/// struct Quota {
///     #[prost(string, tag = "1")]
///     name: String,
///     #[prost(uint32, tag = "2")]
///     limit: u32,
/// }
///
/// impl ResourceType for Quota {
///     const TYPE_URL: &'static str = "type.googleapis.com/myorg.Quota";
///
///     fn name(&self) -> Option<&str> {
///         Some(&self.name)
///     }
///
///     fn check(&self, findings: &mut Findings<'_>) {
///         if self.limit == 0 {
///             findings.reject(&Place::ROOT.field("limit"), Problem::Missing);
///         }
///     }
/// }
///
/// let body = Bytes::from_static(b"\x0a\x01q\x10\x05");
/// let quota = acceptance::decode::<Quota>(&body, &Policy::generic()).unwrap();
/// assert_eq!(quota.message.limit, 5);
/// ```
pub trait ResourceType: Message + Default + Send + Sync + 'static {
    /// The type URL.
    const TYPE_URL: &'static str;

    /// The field that holds the name.
    const NAME_FIELD: &'static str = "name";

    /// Returns the name in the body; `None` if the type has none.
    fn name(&self) -> Option<&str>;

    /// Checks the message. The implementations here check by gRPC's rules, if
    /// that is the profile; other profiles are checked by descriptors.
    fn check(&self, findings: &mut Findings<'_>) {
        let _ = findings;
    }
}

/// Implements the trait for a message with a field `name` and a check of gRPC.
macro_rules! resource_types {
    ($($message:ident = $url:ident, $name:ident, $check:expr;)*) => {
        $(impl ResourceType for $message {
            const TYPE_URL: &'static str = types::$url;
            const NAME_FIELD: &'static str = stringify!($name);

            fn name(&self) -> Option<&str> {
                Some(&self.$name)
            }

            fn check(&self, findings: &mut Findings<'_>) {
                if findings.policy().profile == Profile::Grpc {
                    let check: fn(&mut Findings<'_>, &Self) = $check;
                    check(findings, self);
                }
            }
        })*
    };
}

resource_types! {
    Listener = LISTENER, name, grpc::listener::check;
    RouteConfiguration = ROUTE_CONFIGURATION, name, grpc::routes::check;
    VirtualHost = VIRTUAL_HOST, name, grpc::routes::check_virtual_host;
    ClusterLoadAssignment = CLUSTER_LOAD_ASSIGNMENT, cluster_name, grpc::endpoints::check_endpoints;
    // gRPC has none of these, and so no rules for them.
    ScopedRouteConfiguration = SCOPED_ROUTE_CONFIGURATION, name, |_, _| {};
    Secret = SECRET, name, |_, _| {};
    Runtime = RUNTIME, name, |_, _| {};
    TypedExtensionConfig = TYPED_EXTENSION_CONFIG, name, |_, _| {};
}

/// Every client rejects a cluster whose endpoints come from nowhere, and servers
/// count on it: it is how a set says "keep the one that you have" (S82).
impl ResourceType for Cluster {
    const TYPE_URL: &'static str = types::CLUSTER;

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }

    /// Checks all rules for gRPC, and for other clients only that the endpoints
    /// come from somewhere. Descriptors check that for Envoy.
    fn check(&self, findings: &mut Findings<'_>) {
        match findings.policy().profile {
            Profile::Grpc => grpc::cluster::check_cluster(findings, self),
            Profile::Generic => grpc::cluster::check_source(findings, self),
            Profile::Envoy => {}
        }
    }
}

/// Its name is in its collection, not in its body.
impl ResourceType for LbEndpoint {
    const TYPE_URL: &'static str = types::LB_ENDPOINT;

    fn name(&self) -> Option<&str> {
        None
    }

    fn check(&self, findings: &mut Findings<'_>) {
        if findings.policy().profile == Profile::Grpc {
            grpc::endpoints::check_alone(findings, self);
        }
    }
}
