//! The messages of both protocols as the machines see them.
//!
//! These are not the wire's: the transport turns protobuf into them and back.
//! Names are still as the peer wrote them in requests, and canonical in
//! responses.

use std::sync::Arc;

pub use crate::initial_versions::InitialVersions;
use crate::name::Name;
use crate::params::{Constraints, Params};
use crate::resource::{Nonce, Resource, ResourceError, TypeUrl, Version};
use crate::resource_list::ResourceList;

/// Which of the two protocols a stream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// State of the world: every request lists everything.
    Sotw,
    /// Incremental: requests and responses say what changed.
    Delta,
}

/// Which client a stream speaks for, as far as the rules care.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The node's own name.
    pub id: String,
    /// The group it counts itself to.
    pub cluster: String,
    /// Which program it is: `envoy`, `gRPC C-core linux Python` and the like.
    pub user_agent: String,
    /// What it says it can do.
    pub client_features: Vec<String>,
}

/// A name that a client asks for, perhaps with parameters of its own (TP2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locator {
    /// The name, a glob, or `*`.
    pub name: String,
    /// The parameters; `None` means those of the stream.
    pub params: Option<Params>,
}

impl From<&str> for Locator {
    fn from(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            params: None,
        }
    }
}

/// Why a client rejects a response. The text is for people only (S64).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDetail {
    /// gRPC's status code.
    pub code: i32,
    /// What the client says.
    pub message: String,
}

/// A state-of-the-world `DiscoveryRequest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SotwRequest {
    /// Present on the first request of a stream at least (S1).
    pub node: Option<Node>,
    /// Empty only on a stream that carries one type (S3).
    pub type_url: Option<TypeUrl>,
    /// All that the client asks for, each time.
    pub names: Vec<Locator>,
    /// The last version that the client accepted; `None` if none.
    pub version: Option<Version>,
    /// The response that this answers; `None` if none.
    pub nonce: Option<Nonce>,
    /// Present: the response is rejected (S11).
    pub error: Option<ErrorDetail>,
}

/// A state-of-the-world `DiscoveryResponse`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SotwResponse {
    /// The type of all its resources.
    pub type_url: TypeUrl,
    /// The version of the state that this response brings about.
    pub version: Version,
    /// Names this response on its stream.
    pub nonce: Nonce,
    /// The whole set, or a part, by type.
    pub resources: ResourceList,
    /// Names that cannot be given, and why (TP3).
    pub errors: Vec<(Name, Arc<ResourceError>)>,
}

/// An incremental `DeltaDiscoveryRequest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaRequest {
    /// Present on the first request of a stream at least (S1).
    pub node: Option<Node>,
    /// Empty only on a stream that carries one type (S3).
    pub type_url: Option<TypeUrl>,
    /// What the client asks for from now on.
    pub subscribe: Vec<Locator>,
    /// What it asks for no longer.
    pub unsubscribe: Vec<Locator>,
    /// What it holds; counts in the first request for a type only (S49).
    pub initial_versions: InitialVersions,
    /// The response that this answers; `None` if none.
    pub nonce: Option<Nonce>,
    /// Present: the response is rejected (S11).
    pub error: Option<ErrorDetail>,
}

/// An incremental `DeltaDiscoveryResponse`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaResponse {
    /// The type of all its resources.
    pub type_url: TypeUrl,
    /// Names this response on its stream.
    pub nonce: Nonce,
    /// What changed.
    pub resources: ResourceList,
    /// What is gone, by name.
    pub removed: Vec<Name>,
    /// Which variants are gone (TP2); without constraints, the one for all, in
    /// whose place others came.
    pub removed_variants: Vec<(Name, Option<Constraints>)>,
    /// Names that cannot be given, and why (TP3).
    pub errors: Vec<(Name, Arc<ResourceError>)>,
}

/// A request in the variant that the stream speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// State of the world.
    Sotw(SotwRequest),
    /// Incremental.
    Delta(DeltaRequest),
}

/// A response in the variant that the stream speaks.
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
    /// The type that it is about.
    #[must_use]
    pub fn type_url(&self) -> &TypeUrl {
        match self {
            Self::Sotw(response) => &response.type_url,
            Self::Delta(response) => &response.type_url,
        }
    }

    /// Names it on its stream.
    #[must_use]
    pub fn nonce(&self) -> &Nonce {
        match self {
            Self::Sotw(response) => &response.nonce,
            Self::Delta(response) => &response.nonce,
        }
    }

    /// The incremental one, if it is.
    #[must_use]
    pub fn into_delta(self) -> Option<DeltaResponse> {
        match self {
            Self::Delta(response) => Some(response),
            Self::Sotw(_) => None,
        }
    }

    /// The one of state of the world, if it is.
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
    /// Everything; on a state-of-the-world stream, the body alone.
    Full,
    /// State of the world only: in a `Resource`, with all that belongs to it (S58).
    Wrapped,
    /// Name, version and ttl without the body: it is still good (S59).
    Heartbeat,
}

impl WireResource {
    /// The whole resource.
    #[must_use]
    pub fn full(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            form: Form::Full,
        }
    }

    /// In a `Resource` if there is a reason and the peer reads it; without a
    /// ttl where that is a danger (S58, S59).
    #[must_use]
    pub(crate) fn for_sotw(mut resource: Arc<Resource>, may_wrap: bool, ttl: bool) -> Self {
        if resource.ttl.is_some() && !(may_wrap && ttl) {
            Arc::make_mut(&mut resource).ttl = None;
        }
        let reason = resource.ttl.is_some() || resource.constraints.is_some();
        let form = match may_wrap && reason {
            true => Form::Wrapped,
            false => Form::Full,
        };
        Self { resource, form }
    }
}
