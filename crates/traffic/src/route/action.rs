//! What a route does with a request.

use std::time::Duration;

use trunkline_proto::acceptance::Place;
use trunkline_proto::envoy::envoy::config::route::v3::{
    RouteAction, route_action::ClusterNotFoundResponseCode,
};

use super::cluster::Clusters;
use super::criteria::compile_each;
use super::direct::DirectResponse;
use super::hash_policy::HashPolicy;
use super::mirror::MirrorPolicy;
use super::path::PathMatcher;
use super::redirect::Redirect;
use super::rewrite::{HostRewrite, PathRewrite};
use super::virtual_host::{Inherited, hedges};
use crate::balance::{LbMetadata, lb_metadata};
use crate::findings::Findings;
use crate::request::Request;
use crate::retry::{RetryPolicy, RouteTimeouts, Timeouts};

/// The action of a route.
#[derive(Debug)]
pub enum Action {
    /// The request goes to a cluster.
    Forward(Box<Forwarding>),
    /// The client is sent elsewhere.
    Redirect(Box<Redirect>),
    /// The response is in the route.
    DirectResponse(DirectResponse),
    /// Nothing that a proxy could do: the route is for gRPC servers. Envoy's
    /// router answers as if the cluster did not exist.
    None,
}

/// How requests are forwarded.
#[derive(Debug)]
pub struct Forwarding {
    pub(super) clusters: Clusters,
    pub(super) path: PathRewrite,
    pub(super) host: HostRewrite,
    pub(super) appends_forwarded_host: bool,
    pub(super) hash_policies: Box<[HashPolicy]>,
    pub(super) mirrors: Box<[MirrorPolicy]>,
    pub(super) priority: Priority,
    pub(super) metadata: LbMetadata,
    retry: RetryPolicy,
    hedges: bool,
    timeouts: RouteTimeouts,
    not_found_status: u16,
    /// Upgrades by their type in lower case, and whether they are allowed.
    upgrades: Box<[(Box<str>, bool)]>,
}

/// The priority of a request, which has connection pools and circuit breakers
/// of its own (49).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Requests as a rule.
    #[default]
    Default,
    /// Requests that matter more.
    High,
}

impl Forwarding {
    /// Compiles the action of a route that forwards. Values that the action
    /// does not have come from `inherited`. Returns `None` if a part that
    /// routing needs cannot be compiled.
    pub(super) fn compile(
        message: &RouteAction,
        path: Option<&PathMatcher>,
        inherited: &Inherited<'_>,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        report_unsupported(message, place, findings);

        let metadata = lb_metadata(message.metadata_match.as_ref());
        let mut clusters = Clusters::compile(message, place, findings);
        if let Some(clusters) = &mut clusters {
            clusters.inherit_metadata(&metadata);
        }

        let path = PathRewrite::compile(message, path, place, findings);
        let host = HostRewrite::compile(message, place, findings);

        let policies = &message.hash_policy;
        let hash_policies = compile_each("hash_policy", policies, place, |message, place| {
            HashPolicy::compile(message, place, findings)
        });
        let mirror_policies = &message.request_mirror_policies;
        let mirrors = compile_each(
            "request_mirror_policies",
            mirror_policies,
            place,
            |message, place| MirrorPolicy::compile(message, place, findings),
        );

        Some(Self {
            clusters: clusters?,
            path: path?,
            host: host?,
            appends_forwarded_host: message.append_x_forwarded_host,
            hash_policies,
            mirrors: match mirrors.is_empty() {
                true => inherited.mirrors.into(),
                false => mirrors,
            },
            priority: match message.priority {
                1 => Priority::High,
                _ => Priority::Default,
            },
            metadata,
            retry: match &message.retry_policy {
                Some(policy) => {
                    RetryPolicy::compile(policy, &place.field("retry_policy"), findings)
                }
                None => inherited.retry.cloned().unwrap_or_default(),
            },
            hedges: match &message.hedge_policy {
                Some(policy) => hedges(Some(policy)),
                None => inherited.hedges,
            },
            timeouts: RouteTimeouts::compile(message),
            not_found_status: not_found_status(message),
            upgrades: read_upgrades(message),
        })
    }

    /// Returns whether requests of the route may go to a cluster by its name or
    /// its weight; one that a header names does not count.
    #[must_use]
    pub fn leads_to(&self, cluster: &str) -> bool {
        self.clusters.lead_to(cluster)
    }

    /// Returns the status of the response when the cluster does not exist.
    #[must_use]
    pub fn cluster_not_found_status(&self) -> u16 {
        self.not_found_status
    }

    /// Returns the retry policy: the route's, or the virtual host's.
    #[must_use]
    pub fn retry_policy(&self) -> &RetryPolicy {
        &self.retry
    }

    /// Returns whether an attempt that times out continues beside the next one
    /// (45). A client inside the mesh may say so itself.
    #[must_use]
    pub fn hedges(&self, request: &Request<'_>) -> bool {
        match request.headers.get("x-envoy-hedge-on-per-try-timeout") {
            Some(b"true") => true,
            Some(b"false") => false,
            _ => self.hedges,
        }
    }

    /// Returns the timeouts of a request. `idle` and `stream` are those of the
    /// connection manager, for a route without its own.
    #[must_use]
    pub fn timeouts(
        &self,
        request: &Request<'_>,
        idle: Option<Duration>,
        stream: Option<Duration>,
    ) -> Timeouts {
        self.timeouts.of_request(&self.retry, request, idle, stream)
    }

    /// Returns the priority.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Returns whether an upgrade, such as `websocket`, is allowed; `None` if
    /// the route does not say, and the connection manager decides.
    #[must_use]
    pub fn allows_upgrade(&self, upgrade: &str) -> Option<bool> {
        let mut upgrades = self.upgrades.iter();
        let entry = upgrades.find(|(name, _)| name.eq_ignore_ascii_case(upgrade));
        entry.map(|(_, is_allowed)| *is_allowed)
    }
}

/// Reports the fields of an action that are set and not supported.
fn report_unsupported(message: &RouteAction, place: &Place<'_>, findings: &mut Findings) {
    let fields = [
        ("early_data_policy", message.early_data_policy.is_some()),
        (
            "internal_redirect_policy",
            message.internal_redirect_policy.is_some(),
        ),
        (
            "retry_policy_typed_config",
            message.retry_policy_typed_config.is_some(),
        ),
    ];
    for (field, is_set) in fields {
        findings.unsupported(&place.field(field), is_set);
    }
}

/// Returns the status of the response when the cluster does not exist.
fn not_found_status(message: &RouteAction) -> u16 {
    match message.cluster_not_found_response_code() {
        ClusterNotFoundResponseCode::ServiceUnavailable => 503,
        ClusterNotFoundResponseCode::NotFound => 404,
        ClusterNotFoundResponseCode::InternalServerError => 500,
    }
}

/// Returns the upgrades by their type in lower case, and whether they are allowed.
fn read_upgrades(message: &RouteAction) -> Box<[(Box<str>, bool)]> {
    let upgrades = message.upgrade_configs.iter().map(|upgrade| {
        let is_enabled = upgrade.enabled.is_none_or(|enabled| enabled.value);
        (upgrade.upgrade_type.to_ascii_lowercase().into(), is_enabled)
    });
    upgrades.collect()
}
