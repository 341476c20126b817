//! Why a client gets what it gets: the results of [`Server::explain_host`] and
//! [`Server::explain_resource`]. For people; nothing is changed.
//!
//! ```
//! use std::sync::Arc;
//! use trunkline::explain::Asker;
//! use trunkline::{Change, Resource, Server, core::params::Params, kind};
//!
//! let server = Server::default();
//! let cluster = Arc::new(Resource::new("backend".into(), "...".into()));
//! server.apply(vec![Change::Upsert(kind::CDS.into(), cluster)])?;
//! let params = Params::new([("env", "prod")])?;
//! let why = server.explain_resource(
//!     Asker::Params(&params),
//!     &kind::CDS.into(),
//!     &"backend".into(),
//! )?;
//! assert!(why.variants[0].unmet.is_empty()); // this client gets it
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Server::explain_host`]: crate::Server::explain_host
//! [`Server::explain_resource`]: crate::Server::explain_resource

use std::sync::Arc;

use trunkline_core::database::HostExplanation;
use trunkline_core::message::{ErrorDetail, Mode};
use trunkline_core::name::Name;
use trunkline_core::params::Params;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::NameStatus;
use trunkline_proto::discovery::Node;

/// The client that a question is about.
#[derive(Clone, Copy, Debug)]
pub enum Asker<'a> {
    /// A client that is connected, by the id of its node.
    Client(&'a str),
    /// A client whose node is this one.
    Node(&'a Node),
    /// A client with these parameters (TP2).
    Params(&'a Params),
}

/// A parameter of a client, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Its origin, in words.
    pub by: String,
}

/// Why a client gets a variant of a resource, or none.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceExplained {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// The client's parameters, by which variants are chosen.
    pub params: Vec<Parameter>,
    /// Every variant.
    pub variants: Vec<VariantExplained>,
    /// The state on each of the client's streams; `None` if the question was
    /// about no connected client.
    pub client: Option<Vec<OnStream>>,
}

/// A variant, and whether the client matches it.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantExplained {
    /// The variant.
    pub resource: Arc<Resource>,
    /// The constraints that the client does not meet; it gets the variant of
    /// which this is empty.
    pub unmet: Vec<String>,
}

/// The state of a resource on a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct OnStream {
    /// The number of the stream.
    pub stream: u64,
    /// The protocol.
    pub mode: Mode,
    /// The only type of the stream; `None` on an aggregated one.
    pub only: Option<TypeUrl>,
    /// Whether the client is authorised to see the type.
    pub may_see: bool,
    /// The state of the subscription; `None` if the client has none.
    pub asked: Option<NameStatus>,
    /// The resource in the client cache, by whatever subscription.
    pub holds: Option<Arc<Resource>>,
    /// The error of the client's last NACK of the type.
    pub error: Option<ErrorDetail>,
}

/// Why a client gets a virtual host, or none, for a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The name that the client subscribes to: `<route configuration>/<host>`.
    pub asked: Name,
    /// The virtual host that matches, and why that one.
    pub host: HostExplanation,
    /// A domain that the virtual host would hide if it were sent with all its
    /// domains; one of perhaps many, and only if a short search finds it.
    pub hidden: Option<Hidden>,
    /// The client's parameters, by which variants are chosen.
    pub params: Vec<Parameter>,
    /// The client's base subscriptions.
    pub base: BaseExplained,
    /// The client's streams; `None` if the question was about no connected
    /// client.
    pub client: Option<Connected>,
}

/// A domain under a wildcard of another virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The virtual host that it belongs to.
    pub name: Name,
    /// The domain.
    pub domain: String,
}

/// The base subscriptions of a client, and whether the host is among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseExplained {
    /// The rules that apply to the node, in words.
    pub rules: Vec<String>,
    /// The base sets that the rules give it.
    pub sets: Vec<Box<str>>,
    /// The sets that contain the host.
    pub by_sets: Vec<Box<str>>,
    /// Whether a rule names the host itself.
    pub by_name: bool,
}

/// A client that is connected.
#[derive(Clone, Debug, PartialEq)]
pub struct Connected {
    /// Whether its client cache has the route configuration.
    pub has_route: bool,
    /// Its streams with a subscription to virtual hosts.
    pub streams: Vec<HostOnStream>,
}

/// The state of a host on a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOnStream {
    /// The state of the host's subscription, and the virtual host in the client
    /// cache.
    pub on: OnStream,
    /// Whether the stream has its limit of unbounded hosts, so that this one
    /// would be refused.
    pub is_full: bool,
}

/// Why there is nothing to explain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// Not loaded yet: a missing resource cannot be told from one that does not
    /// exist.
    #[error("the first contents are not complete; ask again when the server is ready")]
    NotReady,
    /// No connected client has this node id.
    #[error("no client with the node id {node:?} is connected{}", suggest(.near))]
    UnknownNode {
        /// The node.
        node: String,
        /// A similar node id.
        near: Option<String>,
    },
    /// There is no such resource.
    #[error("there is no {kind} {name:?}{}", suggest(.near))]
    NoResource {
        /// Its type, in short.
        kind: String,
        /// Its name.
        name: Name,
        /// A similar name.
        near: Option<String>,
    },
    /// Not a host that a client can subscribe to.
    #[error("{host:?} is no host: it is empty, or has a slash in it")]
    NoHost {
        /// The host.
        host: String,
    },
    /// There is no such route configuration.
    #[error("there is no route configuration {route:?}{}", suggest(.near))]
    NoRoute {
        /// Its name.
        route: String,
        /// A similar name.
        near: Option<String>,
    },
    /// It exists, but not for this client.
    #[error("no variant of the route configuration {route:?} is for this client")]
    NoVariant {
        /// Its name.
        route: String,
    },
    /// It has no `vhds`: all its virtual hosts are inside of it.
    #[error(
        "the route configuration {route:?} has no `vhds`: its virtual hosts are all in itself, \
         and none is asked for on demand"
    )]
    NoVhds {
        /// Its name.
        route: String,
    },
}

/// Writes a suggestion for the end of a message; empty if no name is similar.
fn suggest(near: &Option<String>) -> String {
    match near {
        Some(near) => format!("; did you mean {near:?}?"),
        None => String::new(),
    }
}
