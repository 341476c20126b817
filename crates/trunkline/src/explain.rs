//! Why a client gets what it gets for a host: what [`Server::explain_client`]
//! and [`Server::explain_node`] find out. For people; it changes nothing.
//!
//! [`Server::explain_client`]: crate::Server::explain_client
//! [`Server::explain_node`]: crate::Server::explain_node

use std::sync::Arc;

use trunkline_core::database::HostExplanation;
use trunkline_core::message::{ErrorDetail, Mode};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::NameStatus;

/// What there is to say of a host and a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// What the client would ask for: `<route configuration>/<host>`.
    pub asked: Name,
    /// Which virtual host it is, and why that one.
    pub host: HostExplanation,
    /// What the virtual host would hide if it were given whole; one of perhaps
    /// many, and only if it is found soon.
    pub hidden: Option<Hidden>,
    /// What the client gets without asking.
    pub base: BaseExplained,
    /// How it stands; `None` if the question was about no client that is
    /// connected.
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

/// What a client gets without asking, and whether the host is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseExplained {
    /// The rules that apply to the node, in words.
    pub rules: Vec<String>,
    /// The sets that they give it.
    pub sets: Vec<Box<str>>,
    /// Those of them that bring the host.
    pub by_sets: Vec<Box<str>>,
    /// Whether a rule brings the host by its name.
    pub by_name: bool,
}

/// A client that is connected.
#[derive(Clone, Debug, PartialEq)]
pub struct Connected {
    /// Whether it holds the route configuration.
    pub has_route: bool,
    /// Its streams that speak of virtual hosts.
    pub streams: Vec<HostOnStream>,
}

/// How a host stands on a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOnStream {
    /// Which stream.
    pub stream: u64,
    /// The protocol.
    pub mode: Mode,
    /// The only type of the stream; `None` on an aggregated one.
    pub only: Option<TypeUrl>,
    /// Whether the client may see virtual hosts at all.
    pub may_see: bool,
    /// How the host stands that it asks for; `None` if it does not.
    pub asked: Option<NameStatus>,
    /// What it holds of the virtual host that it is given, whatever brought
    /// that.
    pub holds: Option<Arc<Resource>>,
    /// What it last said of a virtual host that it rejects.
    pub error: Option<ErrorDetail>,
    /// Whether it asks for so many hosts that this one would not be
    /// remembered.
    pub is_full: bool,
}

/// Why there is nothing to explain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// What is not there yet cannot be told from what does not exist.
    #[error("the first contents are not complete; ask again when the server is ready")]
    NotReady,
    /// Nobody is connected who calls itself so.
    #[error("no client with the node id {node:?} is connected{}", hint(.near))]
    UnknownNode {
        /// The node.
        node: String,
        /// One that may have been meant.
        near: Option<String>,
    },
    /// It cannot be asked for.
    #[error("{host:?} is no host: it is empty, or has a slash in it")]
    NoHost {
        /// The host.
        host: String,
    },
    /// There is no such route configuration.
    #[error("there is no route configuration {route:?}{}", hint(.near))]
    NoRoute {
        /// Its name.
        route: String,
        /// One that may have been meant.
        near: Option<String>,
    },
    /// It is there, for others.
    #[error("no variant of the route configuration {route:?} is for this client")]
    NoVariant {
        /// Its name.
        route: String,
    },
    /// Its virtual hosts are all in itself.
    #[error(
        "the route configuration {route:?} has no `vhds`: its virtual hosts are all in itself, \
         and none is asked for on demand"
    )]
    NoVhds {
        /// Its name.
        route: String,
    },
}

fn hint(near: &Option<String>) -> String {
    match near {
        Some(near) => format!("; did you mean {near:?}?"),
        None => String::new(),
    }
}
