//! By which rules a body is checked.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::extensions::{self, HttpFilters};
use super::fields::SupportedFields;

/// Whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The rules on fields that the `.proto` files have.
    Generic,
    /// The checks of gRPC's clients and servers, from its gRFCs (C13, C14,
    /// C56 to C61).
    Grpc,
    /// The rules on fields, and what Envoy could not build.
    Envoy,
}

/// The treatment of a body with fields that are set and not supported (C57).
/// They are reported either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// The body is accepted, and the fields are ignored, as gRPC does.
    Lenient,
    /// The body is rejected.
    Strict,
}

/// By which rules a body is checked.
///
/// All lists of names may be extended:
///
/// ```
/// use trunkline_proto::acceptance::{HttpFilter, Policy, Usage};
///
/// let mut policy = Policy::grpc();
/// policy.certificate_providers.insert("default".into());
/// policy.lb_policies.insert("myorg.MyPolicy".into());
/// policy
///     .http_filters
///     .insert("myorg.MyFilter", HttpFilter::new(Usage::Both));
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    /// Whose rules apply.
    pub profile: Profile,
    /// What becomes of fields that are not supported.
    pub unsupported: Unsupported,
    /// The fields that are supported; `None` if all are.
    pub fields: Option<Arc<SupportedFields>>,
    /// The HTTP filters of gRPC's profile (C59).
    pub http_filters: HttpFilters,
    /// The types of clusters of gRPC's profile: the name of a `type` such as
    /// `EDS`, or the full name of the message in a `cluster_type`.
    pub cluster_types: BTreeSet<String>,
    /// The load balancing policies of gRPC's profile, by the full names of
    /// their messages.
    pub lb_policies: BTreeSet<String>,
    /// The cluster specifier plugins of gRPC's profile, by the full names of
    /// their messages.
    pub cluster_specifier_plugins: BTreeSet<String>,
    /// The names of the bootstrap's certificate providers (C60).
    pub certificate_providers: BTreeSet<String>,
    /// Whether the bootstrap says that the server is trusted
    /// (`trusted_xds_server`, C4).
    pub trusts_server: bool,
}

impl Policy {
    /// Makes the policy with the rules on fields, and no others.
    #[must_use]
    pub fn generic() -> Self {
        Self {
            profile: Profile::Generic,
            fields: None,
            ..Self::grpc()
        }
    }

    /// Returns the policy of gRPC: its rules and the extensions that it
    /// supports, without certificate providers, and with a server that is not
    /// trusted.
    #[must_use]
    pub fn grpc() -> Self {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            profile: Profile::Grpc,
            unsupported: Unsupported::Lenient,
            fields: Some(SupportedFields::grpc()),
            http_filters: HttpFilters::grpc(),
            cluster_types: names(extensions::CLUSTER_TYPES),
            lb_policies: names(extensions::LB_POLICIES),
            cluster_specifier_plugins: names(extensions::PLUGINS),
            certificate_providers: BTreeSet::new(),
            trusts_server: false,
        }
    }

    /// Makes the policy with the rules on fields, and those on what Envoy could not
    /// build.
    #[must_use]
    pub fn envoy() -> Self {
        Self {
            profile: Profile::Envoy,
            fields: None,
            ..Self::grpc()
        }
    }
}
