//! The messages of both protocols, as sessions and sinks read and write them.
//!
//! The transport decodes protobuf into requests, and encodes responses. Names
//! in a request are as the client wrote them, in a response they are canonical.

use std::ops::Deref;
use std::sync::Arc;

pub use crate::initial_versions::InitialVersions;
use crate::name::Name;
use crate::params::{Constraints, Params};
use crate::resource::{Nonce, Resource, ResourceError, TypeUrl, Version};
use crate::resource_list::ResourceList;

/// The protocol variant of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// State of the world: every request lists all subscriptions.
    Sotw,
    /// Incremental: requests and responses have the changes.
    Delta,
}

/// The client of a stream, as far as the rules need to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The name of the node.
    pub id: String,
    /// The group that the node belongs to.
    pub cluster: String,
    /// The name of the program: `envoy`, `gRPC C-core linux Python` and the
    /// like.
    pub user_agent: String,
    /// The features that the client supports.
    pub client_features: Vec<String>,
    /// The dynamic parameters of its plain subscriptions (TP2), as a sink sends
    /// them. A server derives them from the whole node instead.
    pub params: Params,
}

/// A name that a client subscribes to, maybe with parameters of its own (TP2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locator {
    /// The name, a glob, or `*`.
    pub name: String,
    /// The parameters; `None` means those of the stream.
    pub params: Option<Params>,
}

impl From<&str> for Locator {
    /// Makes a plain name, without parameters.
    fn from(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            params: None,
        }
    }
}

/// The subscriptions of a client. Each state-of-the-world request of a type
/// repeats them, and most do without a change: clones share one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locators(Arc<Vec<Locator>>);

impl Locators {
    /// Returns whether two are the same list, and not only equal.
    #[must_use]
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the list itself; copies it if it is shared.
    #[must_use]
    pub fn into_vec(self) -> Vec<Locator> {
        Arc::unwrap_or_clone(self.0)
    }
}

impl From<Vec<Locator>> for Locators {
    fn from(list: Vec<Locator>) -> Self {
        Self(Arc::new(list))
    }
}

impl FromIterator<Locator> for Locators {
    fn from_iter<I: IntoIterator<Item = Locator>>(list: I) -> Self {
        Vec::from_iter(list).into()
    }
}

impl Deref for Locators {
    type Target = [Locator];

    fn deref(&self) -> &[Locator] {
        &self.0
    }
}

impl<const N: usize> PartialEq<[Locator; N]> for Locators {
    fn eq(&self, other: &[Locator; N]) -> bool {
        **self == *other
    }
}

/// Why a client NACKs a response. The text is for people only (S64).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDetail {
    /// A gRPC status code.
    pub code: i32,
    /// The client's words.
    pub message: String,
}

/// A state-of-the-world `DiscoveryRequest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SotwRequest {
    /// Present on the first request of a stream at least (S1).
    pub node: Option<Node>,
    /// Empty only on a stream that carries one type (S3).
    pub type_url: Option<TypeUrl>,
    /// All subscriptions of the client, each time.
    pub names: Locators,
    /// The last version that the client ACKed; `None` if none.
    pub version: Option<Version>,
    /// The response that this acknowledges; `None` if none.
    pub nonce: Option<Nonce>,
    /// The request is a NACK if there is an error (S11).
    pub error: Option<ErrorDetail>,
}

/// A state-of-the-world `DiscoveryResponse`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SotwResponse {
    /// The type of all its resources.
    pub type_url: TypeUrl,
    /// The version of all that the client holds with this response.
    pub version: Version,
    /// Names this response on its stream.
    pub nonce: Nonce,
    /// The whole set, or the changed resources, by type.
    pub resources: ResourceList,
    /// Names whose resource is not available, and why (TP3).
    pub errors: Vec<(Name, Arc<ResourceError>)>,
    /// The first names that a whole set does not list any more, so that the
    /// client removes them. For reports: they are not on the wire.
    pub removed: Vec<Name>,
}

/// An incremental `DeltaDiscoveryRequest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaRequest {
    /// Present on the first request of a stream at least (S1).
    pub node: Option<Node>,
    /// Empty only on a stream that carries one type (S3).
    pub type_url: Option<TypeUrl>,
    /// New subscriptions.
    pub subscribe: Vec<Locator>,
    /// Subscriptions that end.
    pub unsubscribe: Vec<Locator>,
    /// The versions that the client holds; they count in the first request for
    /// a type only (S49).
    pub initial_versions: InitialVersions,
    /// The response that this acknowledges; `None` if none.
    pub nonce: Option<Nonce>,
    /// The request is a NACK if there is an error (S11).
    pub error: Option<ErrorDetail>,
}

/// An incremental `DeltaDiscoveryResponse`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaResponse {
    /// The type of all its resources.
    pub type_url: TypeUrl,
    /// Names this response on its stream.
    pub nonce: Nonce,
    /// New and changed resources.
    pub resources: ResourceList,
    /// Names of removed resources.
    pub removed: Vec<Name>,
    /// Removed variants (TP2). One without constraints is the variant for all
    /// clients, which others replace.
    pub removed_variants: Vec<(Name, Option<Constraints>)>,
    /// Names whose resource is not available, and why (TP3).
    pub errors: Vec<(Name, Arc<ResourceError>)>,
}

/// A request of either protocol variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// State of the world.
    Sotw(SotwRequest),
    /// Incremental.
    Delta(DeltaRequest),
}

/// A response of either protocol variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// State of the world.
    Sotw(SotwResponse),
    /// Incremental.
    Delta(DeltaResponse),
}

impl From<SotwResponse> for Response {
    fn from(response: SotwResponse) -> Self {
        Self::Sotw(response)
    }
}

impl From<DeltaResponse> for Response {
    fn from(response: DeltaResponse) -> Self {
        Self::Delta(response)
    }
}

impl Response {
    /// Returns the type of its resources.
    #[must_use]
    pub fn type_url(&self) -> &TypeUrl {
        match self {
            Self::Sotw(response) => &response.type_url,
            Self::Delta(response) => &response.type_url,
        }
    }

    /// Returns the nonce of the response.
    #[must_use]
    pub fn nonce(&self) -> &Nonce {
        match self {
            Self::Sotw(response) => &response.nonce,
            Self::Delta(response) => &response.nonce,
        }
    }

    /// Returns the response if it is incremental; `None` if it is of state of
    /// the world.
    #[must_use]
    pub fn into_delta(self) -> Option<DeltaResponse> {
        match self {
            Self::Delta(response) => Some(response),
            Self::Sotw(_) => None,
        }
    }

    /// Returns the response if it is of state of the world; `None` if it is
    /// incremental.
    #[must_use]
    pub fn into_sotw(self) -> Option<SotwResponse> {
        match self {
            Self::Sotw(response) => Some(response),
            Self::Delta(_) => None,
        }
    }
}

/// One resource in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireResource {
    /// The resource.
    pub resource: Arc<Resource>,
    /// How much of it is sent.
    pub form: Form,
}

/// How much of a resource is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All of it; on a state-of-the-world stream, the body alone.
    Full,
    /// State of the world only: in a `Resource`, with its name and TTL (S58).
    Wrapped,
    /// Name, version and TTL without the body: it is still good (S59).
    Heartbeat,
}

impl WireResource {
    /// Makes a resource that is sent in full.
    #[must_use]
    pub fn full(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            form: Form::Full,
        }
    }

    /// Makes a resource for a state-of-the-world stream. A resource with a TTL
    /// or constraints is wrapped, if the client reads a wrapper (`may_wrap`);
    /// otherwise its body alone is sent. A TTL that cannot be sent is removed:
    /// it needs a wrapper, and a type that allows one (`may_have_ttl`) (S58,
    /// S59).
    #[must_use]
    pub(crate) fn for_sotw(
        mut resource: Arc<Resource>,
        may_wrap: bool,
        may_have_ttl: bool,
    ) -> Self {
        let may_send_ttl = may_wrap && may_have_ttl;
        if resource.ttl.is_some() && !may_send_ttl {
            Arc::make_mut(&mut resource).ttl = None;
        }

        let needs_wrapper = resource.ttl.is_some() || resource.constraints.is_some();
        let form = if may_wrap && needs_wrapper {
            Form::Wrapped
        } else {
            Form::Full
        };
        Self { resource, form }
    }
}
