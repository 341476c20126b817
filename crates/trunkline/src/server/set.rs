//! Contents of a program that embeds the server: messages, written under the
//! name of an origin.

use std::fmt;
use std::io::Cursor;

use prost::Message as _;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::TypeUrl;
use trunkline_proto::discovery::{Any, DiscoveryResponse, Resource, ResourceName, name_of};

use super::Server;
use super::lease::{LeaseTtl, Lifetime};
use super::settle::Applied;
use crate::checked::{
    Dangling, Decoded, Document, Edit, Effect, Finding, Form, Guard, Proposal, Removal,
    ResourceEdit, decode,
};
use crate::wire::{self, write_constraints};

/// A resource as a message, such as Envoy's `Cluster`, encoded.
///
/// ```
/// use trunkline::ResourceMessage;
/// use trunkline::envoy::config::cluster::v3::Cluster;
///
/// let cluster = Cluster {
///     name: "backend".to_owned(),
///     ..Cluster::default()
/// };
/// let message = ResourceMessage::of(&cluster);
/// ```
#[derive(Clone, Debug)]
pub struct ResourceMessage(Any);

impl ResourceMessage {
    /// Encodes a message.
    #[must_use]
    pub fn of<M: prost::Message + prost::Name>(message: &M) -> Self {
        Self(Any {
            type_url: format!("type.googleapis.com/{}", M::full_name()),
            value: message.encode_to_vec().into(),
        })
    }

    /// Makes the resource a variant for some clients only: those whose
    /// parameters match (TP2).
    ///
    /// ```
    /// use trunkline::ResourceMessage;
    /// use trunkline::envoy::config::cluster::v3::Cluster;
    ///
    /// let cluster = ResourceMessage::of(&Cluster::default());
    /// let variant = cluster.for_clients(&"env=prod AND NOT version=v1".parse()?);
    /// # Ok::<(), trunkline::core::params::ConstraintError>(())
    /// ```
    #[must_use]
    pub fn for_clients(self, clients: &Constraints) -> Self {
        let name = name_of(&self.0.value).unwrap_or_default().to_owned();
        let wrapper = Resource {
            name: name.clone(),
            resource_name: Some(ResourceName {
                name,
                dynamic_parameter_constraints: Some(write_constraints(clients.expr())),
            }),
            resource: Some(self.0),
            ..Resource::default()
        };
        Self(Any {
            type_url: Resource::TYPE_URL.to_owned(),
            value: wrapper.encode_to_vec().into(),
        })
    }

    /// Makes a resource of this type from its encoded body.
    #[must_use]
    pub fn encoded(type_url: &TypeUrl, body: bytes::Bytes) -> Self {
        Self(Any {
            type_url: type_url.to_string(),
            value: body,
        })
    }
}

/// How strictly a change of an origin is judged, and how long its resources
/// stay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The treatment of a reference to a resource that is not there.
    pub(crate) dangling: Dangling,
    /// Whether a change that removes much is held.
    pub(crate) guard: Guard,
    pub(crate) lifetime: Lifetime,
}

impl Manner {
    /// Returns the manner of a program, which means what it says: nothing is
    /// held, and a dangling reference is a warning.
    fn of_program(lifetime: Lifetime) -> Self {
        Self {
            dangling: Dangling::Warn,
            guard: Guard::Off,
            lifetime,
        }
    }
}

/// A change of contents that was made.
#[derive(Clone, Debug, Default)]
pub struct Accepted {
    /// Its effect.
    pub applied: Applied,
    /// Warnings, such as references that lead nowhere.
    pub warnings: Vec<Finding>,
}

/// A change of contents that was rejected: nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Rejected {
    /// The reasons.
    pub findings: Vec<Finding>,
}

impl fmt::Display for Rejected {
    /// Writes the first reason, and how many there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.findings[..] {
            [] => f.write_str("rejected"),
            [only] => write!(f, "{only}"),
            [first, others @ ..] => write!(f, "{first}; and {} more", others.len()),
        }
    }
}

impl Server {
    /// Makes the resources of an origin exactly these: others of it are
    /// removed, in one change. They are checked, each by Envoy's rules and all
    /// with those of other origins.
    ///
    /// ```
    /// use trunkline::envoy::config::cluster::v3::Cluster;
    /// use trunkline::{ResourceMessage, Server, kind};
    ///
    /// let server = Server::default();
    /// let cluster = Cluster {
    ///     name: "backend".to_owned(),
    ///     ..Cluster::default()
    /// };
    /// let accepted = server.set("my-origin", [ResourceMessage::of(&cluster)])?;
    /// assert_eq!(accepted.applied.counts.created, 1);
    /// server.set("my-origin", [])?;
    /// assert_eq!(server.all(&kind::CDS.into()).len(), 0);
    /// # Ok::<(), trunkline::Rejected>(())
    /// ```
    ///
    /// # Errors
    /// A resource breaks a rule, contradicts another, or belongs to another
    /// origin; nothing has changed.
    pub fn set(
        &self,
        origin: &str,
        resources: impl IntoIterator<Item = ResourceMessage>,
    ) -> Result<Accepted, Rejected> {
        let edit = ResourceEdit {
            replaces_origin: true,
            ..ResourceEdit::of_document(Document::empty(&"".into()))
        };
        self.change(
            origin,
            resources,
            edit,
            Manner::of_program(Lifetime::Permanent),
        )
    }

    /// Makes the resources of an origin exactly these, as [`Self::set`] does,
    /// and gives it a lease, or renews the one that it has. Unless the lease is
    /// [renewed](Self::renew) in this time, the resources are removed. `set`
    /// and `put` make them permanent again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use trunkline::envoy::config::cluster::v3::Cluster;
    /// use trunkline::{LeaseTtl, ResourceMessage, Server};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::default();
    /// let cluster = ResourceMessage::of(&Cluster::default());
    /// let ttl = LeaseTtl::new(Duration::from_secs(30))?;
    /// server.set_leased("pod-7", [cluster.clone()], ttl)?;
    /// // As long as the writer lives:
    /// if !server.renew("pod-7") {
    ///     server.set_leased("pod-7", [cluster], ttl)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As those of [`Self::set`]; there are too many leases, or there is no
    /// runtime. Nothing has changed.
    pub fn set_leased(
        &self,
        origin: &str,
        resources: impl IntoIterator<Item = ResourceMessage>,
        ttl: LeaseTtl,
    ) -> Result<Accepted, Rejected> {
        let edit = ResourceEdit {
            replaces_origin: true,
            ..ResourceEdit::of_document(Document::empty(&"".into()))
        };
        self.change(
            origin,
            resources,
            edit,
            Manner::of_program(Lifetime::Leased(ttl)),
        )
    }

    /// Adds resources to those of an origin, or replaces those of the same
    /// names; others stay. They are checked as by [`Self::set`].
    ///
    /// # Errors
    /// As those of [`Self::set`]; nothing has changed.
    pub fn put(
        &self,
        origin: &str,
        resources: impl IntoIterator<Item = ResourceMessage>,
    ) -> Result<Accepted, Rejected> {
        let edit = ResourceEdit::of_document(Document::empty(&"".into()));
        self.change(
            origin,
            resources,
            edit,
            Manner::of_program(Lifetime::Permanent),
        )
    }

    /// Removes resources of an origin. A name that does not exist is no
    /// mistake.
    ///
    /// # Errors
    /// A name belongs to another origin; nothing has changed.
    pub fn remove(
        &self,
        origin: &str,
        names: impl IntoIterator<Item = (TypeUrl, Name)>,
    ) -> Result<Accepted, Rejected> {
        let removals = names.into_iter().map(|(type_url, name)| Removal {
            type_url,
            name,
            variant: None,
        });
        let edit = ResourceEdit {
            removals: removals.collect(),
            ..ResourceEdit::of_document(Document::empty(&"".into()))
        };
        self.change(origin, [], edit, Manner::of_program(Lifetime::Kept))
    }

    /// Settles an edit of an origin that writes these resources, and applies
    /// it.
    pub(crate) fn change(
        &self,
        origin: &str,
        resources: impl IntoIterator<Item = ResourceMessage>,
        edit: ResourceEdit,
        manner: Manner,
    ) -> Result<Accepted, Rejected> {
        let decoded = decode_messages(resources)?;
        let document = decoded.document;
        let proposal = Proposal {
            origin,
            edits: vec![Edit::Resources(ResourceEdit { document, ..edit })],
            dangling: manner.dangling,
            is_complete: true,
            effect: Effect::Applied,
            guard: manner.guard,
        };

        let mut settlement = self.shared.settle(origin, proposal, manner.lifetime);
        if let Some(rejection) = settlement.rejections.pop() {
            let findings = rejection.findings;
            return Err(Rejected { findings });
        }

        let mut warnings = decoded.warnings;
        warnings.append(&mut settlement.warnings);
        Ok(Accepted {
            applied: settlement.applied.unwrap_or_default(),
            warnings,
        })
    }
}

/// Decodes messages as a document without a name, each with its checks. The
/// error has all mistakes, contradictions among the resources included.
fn decode_messages(
    resources: impl IntoIterator<Item = ResourceMessage>,
) -> Result<Decoded, Rejected> {
    let response = DiscoveryResponse {
        resources: resources.into_iter().map(|message| message.0).collect(),
        ..DiscoveryResponse::default()
    };
    let bytes = Cursor::new(response.encode_to_vec());
    let decoded = decode(&"".into(), Form::Binary, bytes, &wire::text_options());
    // Bytes in memory can be read.
    let decoded = decoded.map_err(|_| Rejected {
        findings: Vec::new(),
    })?;
    match decoded.errors.is_empty() {
        true => Ok(decoded),
        false => Err(Rejected {
            findings: decoded.into_all_errors(),
        }),
    }
}
