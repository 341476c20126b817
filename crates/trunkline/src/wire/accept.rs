//! From an encoded message to a resource that the engine can serve.

use bytes::Bytes;
use trunkline_core::name::Name;
use trunkline_core::params::{CasesError, ConstraintError, Constraints};
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_proto::Path;
use trunkline_proto::canonical::CanonicalError;
use trunkline_proto::conditions::{ConditionError, ConditionProblem};
use trunkline_proto::facts::{self, FactsError};
use trunkline_proto::validate::Violation;

use super::constraints::ConstraintReadError;
use super::host_name;
use super::shared::Shared;

/// Why a message cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// It is not a message of its type.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// It has no name.
    #[error("a {type_url} without a name; give it one")]
    NoName {
        /// Its type.
        type_url: TypeUrl,
    },
    /// It has one name outside and another inside.
    #[error(
        "is called {outside:?} by what is around it and {inside:?} by itself; \
         clients need both to be the same"
    )]
    TwoNames {
        /// The name in the wrapper.
        outside: Name,
        /// The other one, in the wrapper or in the body.
        inside: Name,
    },
    /// Its TTL is not a valid duration.
    #[error("the ttl must be more than 0s; leave it out for a resource that stays")]
    Ttl,
    /// Its constraints cannot be read.
    #[error(transparent)]
    Constraints(#[from] ConstraintReadError),
    /// A virtual host that no client could subscribe to.
    #[error(
        "the virtual host {name:?} does not say which route configuration it is of; \
         name it <route configuration>/<name>"
    )]
    Unrouted {
        /// Its name.
        name: Name,
    },
    /// A part of it is wrong.
    #[error("{path}: {source}")]
    At {
        /// Which part.
        path: Path,
        /// The error.
        source: Box<AcceptError>,
    },
    /// An annotation for this server is wrong.
    #[error(transparent)]
    Said(ConditionProblem),
    /// A condition where it means nothing.
    #[error(
        "a condition in the metadata around a resource means nothing; write it as \
         resource_name.dynamic_parameter_constraints, or in the resource"
    )]
    ConditionAround,
    /// A condition cannot be read.
    #[error("the condition {text:?}: {source}; write such as env=prod AND NOT version=v1")]
    Condition {
        /// The text as written.
        text: String,
        /// The error.
        source: ConstraintError,
    },
    /// Its conditions make too many variants.
    #[error(transparent)]
    Cases(CasesError),
    /// Its variants are too large.
    #[error("its variants have more than {limit} bytes together: use fewer conditions")]
    VariantsTooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// A variant without the parts that some clients do not get breaks a rule
    /// of Envoy.
    #[error("for clients with {clients} too little is left of it: {violation}")]
    Variant {
        /// The clients of the variant.
        clients: Constraints,
        /// The rule.
        violation: Box<Violation>,
    },
}

impl AcceptError {
    /// Splits the error into the path of the part that is wrong, and the
    /// reason. The path is empty if the resource is wrong as a whole.
    #[must_use]
    pub fn place(self) -> (Path, Self) {
        match self {
            Self::At { path, source } => {
                let (inner, source) = source.place();
                (path.join(&inner), source)
            }
            whole => (Path::default(), whole),
        }
    }
}

impl From<ConditionError> for AcceptError {
    fn from(error: ConditionError) -> Self {
        Self::At {
            path: error.path,
            source: Box::new(Self::Said(error.problem)),
        }
    }
}

impl From<CanonicalError> for AcceptError {
    fn from(error: CanonicalError) -> Self {
        Self::Facts(error.into())
    }
}

impl From<ConstraintError> for AcceptError {
    fn from(error: ConstraintError) -> Self {
        Self::Constraints(error.into())
    }
}

/// Makes a resource of a body, with the name that is in it, the facts that make
/// before break needs (S73), and a version made from its bytes (S71).
///
/// The bytes are served as they are, so the caller has to encode equal messages
/// to equal bytes.
///
/// # Errors
/// If the body is not of its type, or has no name, or is a virtual host whose
/// name has no route configuration.
pub fn accept(type_url: &TypeUrl, body: Bytes) -> Result<Resource, AcceptError> {
    let facts = facts::of(type_url.as_str(), &body)?;
    let Some(name) = &facts.name else {
        let type_url = type_url.clone();
        return Err(AcceptError::NoName { type_url });
    };

    let name = Name::new(name);
    if host_name::is_host(type_url.as_str()) {
        host_name::check_name(&name)?;
    }
    Ok(Resource {
        facts: Shared::default().convert_facts(facts, None),
        ..Resource::new(name, body)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use trunkline_core::facts::Reference;
    use trunkline_core::kind;
    use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, cluster};

    #[test]
    fn a_cluster_refers_to_its_endpoints() {
        let message = Cluster {
            name: "c".into(),
            cluster_discovery_type: Some(cluster::ClusterDiscoveryType::Type(
                cluster::DiscoveryType::Eds.into(),
            )),
            eds_cluster_config: Some(cluster::EdsClusterConfig::default()),
            ..Cluster::default()
        };
        let body = Bytes::from(message.encode_to_vec());
        let resource = accept(&kind::CDS.into(), body.clone()).unwrap();
        assert_eq!(resource.name.as_str(), "c");
        assert_eq!(resource.body, Some(body));
        let endpoints = Reference {
            type_url: kind::EDS.into(),
            name: "c".into(),
        };
        assert!(resource.facts().refers_to(&endpoints));
    }

    #[test]
    fn s36_the_base_sets_of_a_virtual_host_are_known() {
        let text = format!(
            "\"@type\": {}\nname: r/v\ndomains: [d]\n\
             metadata: {{filter_metadata: {{trunkline: {{base_sets: [b, a]}}}}}}",
            kind::VHDS
        );
        let read = trunkline_proto::text::read("v.yaml", &text, &Default::default());
        let body = read.resources[0].body.clone();
        let resource = accept(&kind::VHDS.into(), body).unwrap();
        assert_eq!(resource.facts().base_sets(), [Box::from("a"), "b".into()]);
    }

    #[test]
    fn a_resource_needs_a_name_and_a_body_of_its_type() {
        let url = TypeUrl::from(kind::CDS);
        let nameless = accept(&url, Bytes::new());
        assert_eq!(
            nameless,
            Err(AcceptError::NoName {
                type_url: url.clone()
            })
        );
        let odd = accept(&url, Bytes::from_static(b"\xff"));
        assert!(matches!(odd, Err(AcceptError::Facts(_))));
    }

    #[test]
    fn s36_a_virtual_host_says_which_route_configuration_it_is_of() {
        let url = TypeUrl::from(kind::VHDS);
        let host = |name: &str| {
            let len = u8::try_from(name.len()).unwrap();
            let body = [&[0x0a, len], name.as_bytes(), b"\x12\x01d"].concat();
            accept(&url, body.into())
        };
        assert_eq!(host("a/r/v").unwrap().name.as_str(), "a/r/v");
        for name in ["v", "/v", "r/"] {
            let name = Name::new(name);
            assert_eq!(host(name.as_str()), Err(AcceptError::Unrouted { name }));
        }
    }
}
