//! Why a client gets what it gets: what [`Server::explain_host`] and
//! [`Server::explain_resource`] find out. For people; it changes nothing.
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

/// Of whom it is asked.
#[derive(Clone, Copy, Debug)]
pub enum Asker<'a> {
    /// A client that is connected, by the id of its node.
    Client(&'a str),
    /// One that describes itself like this.
    Node(&'a Node),
    /// One with these parameters (TP2).
    Params(&'a Params),
}

/// A parameter of a client, and how it came by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Who says so, in words.
    pub by: String,
}

/// What there is to say of a resource and a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceExplained {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// By which parameters the client is given variants.
    pub params: Vec<Parameter>,
    /// Every variant.
    pub variants: Vec<VariantExplained>,
    /// The streams of the client on which it stands; `None` if the question
    /// was about no client that is connected.
    pub client: Option<Vec<OnStream>>,
}

/// A variant, and whether it is the one.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantExplained {
    /// The variant.
    pub resource: Arc<Resource>,
    /// What it asks for and the client does not fulfil; if that is nothing, it
    /// is the one.
    pub unmet: Vec<String>,
}

/// How a resource stands on a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct OnStream {
    /// Which stream.
    pub stream: u64,
    /// The protocol.
    pub mode: Mode,
    /// The only type of the stream; `None` on an aggregated one.
    pub only: Option<TypeUrl>,
    /// Whether the client may see the type at all.
    pub may_see: bool,
    /// How the name stands that it asks for; `None` if it does not.
    pub asked: Option<NameStatus>,
    /// What it holds of it, whatever brought that.
    pub holds: Option<Arc<Resource>>,
    /// What it last said of something of the type that it rejects.
    pub error: Option<ErrorDetail>,
}

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
    /// By which parameters the client is given variants.
    pub params: Vec<Parameter>,
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
    /// How the host stands that it asks for, and what it holds of the virtual
    /// host that it is given.
    pub on: OnStream,
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
    /// There is no such resource.
    #[error("there is no {kind} {name:?}{}", hint(.near))]
    NoResource {
        /// Its type, in short.
        kind: String,
        /// Its name.
        name: Name,
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
