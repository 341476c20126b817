//! What can be wrong with a bootstrap or a config source, and the remedies.

use trunkline_core::params::ParamsError;
use trunkline_proto::text;

/// What is wrong, and what to do. No value of a secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A mistake in the text, or a broken rule of a message.
    #[error(transparent)]
    Text(text::Problem),
    /// A file cannot be read.
    #[error("cannot be read: {reason}; check the path and its permissions")]
    Unreadable {
        /// The reason of the system.
        reason: String,
    },
    /// Neither variable of gRPC's bootstrap is set (C1).
    #[error(
        "no bootstrap is named; set GRPC_XDS_BOOTSTRAP to a file, \
         or GRPC_XDS_BOOTSTRAP_CONFIG to its contents"
    )]
    NoVariable,
    /// A value of another kind than the field takes.
    #[error("expected {expected}, found {found}")]
    Kind {
        /// The kind that the field takes.
        expected: &'static str,
        /// The kind that is there.
        found: &'static str,
    },
    /// A field that is needed is not set.
    #[error("{field} is missing; {remedy}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What to write.
        remedy: &'static str,
    },
    /// A field is set that means nothing here, or that is not supported.
    #[error("{what} is not supported here; {remedy}")]
    Unsupported {
        /// The field or its value.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A field is ignored. A warning.
    #[error("{what} is ignored; {remedy}")]
    Ignored {
        /// The field or its value.
        what: String,
        /// What happens instead, or what to do.
        remedy: &'static str,
    },
    /// A source is the aggregated stream, and there is none.
    #[error("the source is the aggregated stream, which is not set up; add {field}")]
    NoAds {
        /// The field that sets it up.
        field: &'static str,
    },
    /// A control plane is a cluster that the bootstrap does not have.
    #[error(
        "no static cluster is named {name:?}{}",
        did_you_mean(.near.as_deref())
    )]
    UnknownCluster {
        /// The cluster as written.
        name: String,
        /// The nearest name.
        near: Option<String>,
    },
    /// A control plane is a cluster whose endpoints are not in the bootstrap.
    #[error(
        "a cluster of the type {kind} cannot be a control plane, because its endpoints are not in \
         the bootstrap; make it STATIC, STRICT_DNS or LOGICAL_DNS"
    )]
    Discovered {
        /// The type of the cluster.
        kind: String,
    },
    /// Two static resources of one type have one name.
    #[error("a second {kind} is named {name:?}; rename or remove one")]
    Duplicate {
        /// The kind of resource.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// An address or the target of a control plane.
    #[error("{text:?} is no address of a control plane: {reason}; write such as {example}")]
    Address {
        /// The address as written.
        text: String,
        /// Why it is none.
        reason: &'static str,
        /// One that would be.
        example: &'static str,
    },
    /// TLS that would trust everybody.
    #[error(
        "the certificate of the server would not be verified; \
         add a validation_context with a trusted_ca, or with system_root_certs: {{}}"
    )]
    NoCa,
    /// A token that anybody on the way can read. A warning.
    #[error(
        "the token of the control plane is sent without TLS, and anybody on the way can read it; \
         use TLS, or a control plane on this machine"
    )]
    PlainToken,
    /// A static secret that the bootstrap does not have, or of another kind.
    #[error("no static secret {name:?} holds a {kind}; add it to static_resources.secrets")]
    UnknownSecret {
        /// The name.
        name: String,
        /// The kind of secret.
        kind: &'static str,
    },
    /// A control plane names a file or a variable that it may not.
    #[error("a control plane may not name the {kind} {name:?}; allow it by a DataSourcePolicy")]
    NotAllowed {
        /// A file or an environment variable.
        kind: &'static str,
        /// Its path or its name.
        name: String,
    },
    /// A control plane names a control plane that the bootstrap does not (C15).
    #[error("a control plane may not name {target:?}; use a server of the bootstrap")]
    UnknownServer {
        /// The target.
        target: String,
    },
    /// An environment variable that holds a value is not set.
    #[error("the environment variable {name:?} is not set, or is no UTF-8; set it")]
    Variable {
        /// Its name.
        name: String,
    },
    /// A number, a duration or a text that does not fit.
    #[error("is not valid: {reason}")]
    Invalid {
        /// The reason, and the remedy.
        reason: &'static str,
    },
    /// The template of an authority leads to another one (C8).
    #[error("the template must start with {start:?}; change its authority")]
    Template {
        /// The start that it needs.
        start: String,
    },
    /// A locator that is no collection of resources.
    #[error("{text:?} is no collection; write such as xdstp://authority/{kind}/*")]
    Locator {
        /// The locator as written.
        text: String,
        /// The type of its resources.
        kind: &'static str,
    },
    /// None of the credentials is supported (C2).
    #[error("none of the types {types} is supported; use one of insecure, tls")]
    Credentials {
        /// The types.
        types: String,
    },
    /// Parameters that are too many or too long (TP2).
    #[error("{0}; use fewer or shorter ones")]
    Params(ParamsError),
}

/// Returns the end of a sentence that proposes the nearest name, or to add the
/// cluster.
fn did_you_mean(near: Option<&str>) -> String {
    match near {
        Some(near) => format!(", did you mean {near:?}?"),
        None => "; add it to static_resources.clusters".to_owned(),
    }
}
