//! A request as it leaves: its cluster, path, host and copies.

use std::borrow::Cow;
use std::net::IpAddr;

use super::action::Forwarding;
use super::cluster::ChosenCluster;
use super::hash_policy;
use super::mirror::Mirror;
use super::path::PathMatcher;
use super::rewrite::HostRewrite;
use crate::balance::LbMetadata;
use crate::request::Request;
use crate::runtime::Runtime;

/// What routing depends on besides the request.
#[derive(Debug, Clone, Copy)]
pub struct Context<'c> {
    /// One random number for each request. It serves fractions, weights and
    /// mirrors.
    pub random: u64,
    /// The runtime.
    pub runtime: &'c Runtime,
    /// The address of the client, for hash policies.
    pub peer: Option<IpAddr>,
}

/// The decision on a request that is forwarded.
#[derive(Debug, Clone)]
pub struct Forward<'t> {
    /// The cluster.
    pub cluster: ChosenCluster<'t>,
    /// The new path, if it is rewritten. `x-envoy-original-path` then has the
    /// one before.
    pub path: Option<String>,
    /// The new host, if it is rewritten. Where a header says it, mutations may
    /// change it yet; [`RouteMatch::leave`](super::RouteMatch::leave) knows.
    pub host: Option<Cow<'t, str>>,
    /// Whether the endpoint's name becomes the host, once one is picked.
    pub host_of_endpoint: bool,
    /// Whether the old host is appended to `x-forwarded-host`.
    pub appends_forwarded_host: bool,
    /// The hash for ring hash and maglev.
    pub hash: Option<u64>,
    /// The metadata that endpoints must have, where the cluster has subsets.
    pub metadata: Option<&'t LbMetadata>,
    /// Copies for other clusters.
    pub mirrors: Vec<Mirror<'t>>,
}

impl Forwarding {
    /// Decides how to forward a request: the cluster, the new path and host,
    /// the hash and the mirrors.
    pub(super) fn forward<'t>(
        &'t self,
        matcher: &PathMatcher,
        request: &Request<'t>,
        context: &Context<'_>,
    ) -> Forward<'t> {
        let hash = hash_policy::hash(&self.hash_policies, request, context.peer);
        let cluster = self.clusters.choose(request, context.random, || hash);
        let cluster_host = cluster.entry.and_then(|entry| entry.host_rewrite());
        let host = self.host.apply(&Request {
            authority: cluster_host.unwrap_or(request.authority),
            ..*request
        });
        let host = host.or(cluster_host.map(Cow::Borrowed));

        let forwarded_host = host.as_deref().unwrap_or(request.authority);
        let mirrors = self.mirrors.iter();
        let mirrors = mirrors
            .filter_map(|policy| {
                policy.apply(request, forwarded_host, context.runtime, context.random)
            })
            .collect();

        let metadata = cluster
            .entry
            .map_or(&self.metadata, |entry| &entry.metadata);
        Forward {
            metadata: (!metadata.is_empty()).then_some(metadata),
            cluster,
            path: self.path.apply(request.path, matcher),
            host,
            host_of_endpoint: matches!(self.host, HostRewrite::Endpoint),
            appends_forwarded_host: self.appends_forwarded_host,
            hash,
            mirrors,
        }
    }

    /// Returns the cookies that the request misses and that hash policies make:
    /// the proxy chooses their values and hashes the request anew.
    pub fn missing_cookies<'t>(
        &'t self,
        request: &'t Request<'_>,
    ) -> impl Iterator<Item = &'t str> {
        let policies = self.hash_policies.iter();
        policies.filter_map(|policy| policy.missing_cookie(request))
    }
}
