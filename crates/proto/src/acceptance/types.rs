//! The types of resources by their type URLs.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;

use super::findings::Findings;
use super::place::{Place, clip};
use super::policy::Policy;
use super::problem::{MAX_VALUE, Problem};
use super::rejection::Rejection;
use super::resource_type::ResourceType;
use super::{Accepted, decode, malformed_rejection};
use crate::envoy::envoy::config::cluster::v3::Cluster;
use crate::envoy::envoy::config::core::v3::TypedExtensionConfig;
use crate::envoy::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use crate::envoy::envoy::config::listener::v3::Listener;
use crate::envoy::envoy::config::route::v3::{
    RouteConfiguration, ScopedRouteConfiguration, VirtualHost,
};
use crate::envoy::envoy::extensions::transport_sockets::tls::v3::Secret;
use crate::envoy::envoy::service::runtime::v3::Runtime;

/// Types of resources, to accept a body whose type is known at run time only.
///
/// ```
/// use bytes::Bytes;
/// use trunkline_proto::acceptance::{Policy, Types};
/// use trunkline_proto::descriptor::types;
/// use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
/// use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterLoadAssignment;
///
/// let body = Bytes::from_static(b"\x0a\x01e");
/// let accepted = Types::standard()
///     .accept(types::CLUSTER_LOAD_ASSIGNMENT, &body, &Policy::grpc())
///     .unwrap();
/// assert_eq!(accepted.name.as_deref(), Some("e"));
/// let endpoints = accepted.downcast::<ClusterLoadAssignment>().unwrap();
/// assert_eq!(endpoints.cluster_name, "e");
/// assert!(accepted.downcast::<Cluster>().is_none());
/// ```
#[derive(Clone, Default)]
pub struct Types {
    by_url: HashMap<&'static str, Accept>,
}

type Accept = fn(&Bytes, &Policy) -> Result<Accepted, Rejection>;

static STANDARD: LazyLock<Types> = LazyLock::new(|| {
    Types::default()
        .with::<Listener>()
        .with::<RouteConfiguration>()
        .with::<ScopedRouteConfiguration>()
        .with::<VirtualHost>()
        .with::<Cluster>()
        .with::<ClusterLoadAssignment>()
        .with::<LbEndpoint>()
        .with::<Secret>()
        .with::<Runtime>()
        .with::<TypedExtensionConfig>()
});

impl Types {
    /// Returns the types that xDS carries.
    #[must_use]
    pub fn standard() -> &'static Self {
        &STANDARD
    }

    /// Returns these types with `T` added, or replaced if its type URL is among
    /// them.
    #[must_use]
    pub fn with<T: ResourceType>(mut self) -> Self {
        self.by_url.insert(T::TYPE_URL, accept_as::<T>);
        self
    }

    /// Returns whether a type is one of these.
    #[must_use]
    pub fn contains(&self, type_url: &str) -> bool {
        self.by_url.contains_key(type_url)
    }

    /// Decodes a body and checks it.
    ///
    /// # Errors
    /// The type is unknown, the bytes are not of the type, or the body breaks a
    /// rule of the policy.
    pub fn accept(
        &self,
        type_url: &str,
        body: &Bytes,
        policy: &Policy,
    ) -> Result<Accepted, Rejection> {
        match self.by_url.get(type_url) {
            Some(accept) => accept(body, policy),
            None => {
                let mut findings = Findings::new(policy);
                let type_url = clip(type_url, MAX_VALUE);
                let problem = Problem::UnknownType(type_url.to_owned());
                findings.reject(&Place::ROOT, problem);
                Err(malformed_rejection(findings, type_url))
            }
        }
    }
}

impl fmt::Debug for Types {
    /// Writes the type URLs; the values are functions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_url.keys()).finish()
    }
}

/// Decodes and checks a body of the type `T`, and erases the type of the
/// message.
fn accept_as<T: ResourceType>(body: &Bytes, policy: &Policy) -> Result<Accepted, Rejection> {
    let accepted = decode::<T>(body, policy)?;
    let message: Arc<dyn Any + Send + Sync> = accepted.message;
    Ok(Accepted {
        name: accepted.name,
        message,
        report: accepted.report,
    })
}
