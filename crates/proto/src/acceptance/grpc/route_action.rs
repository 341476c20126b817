//! Where a route leads (C58, A28, A31, A42, A81).

use super::routes::Plugins;
use super::{check_duration, http_filters, matcher, retry};
use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::acceptance::report::IgnoreReason;
use crate::envoy::envoy::config::route::v3::route_action::hash_policy::PolicySpecifier;
use crate::envoy::envoy::config::route::v3::route_action::{
    ClusterSpecifier, HashPolicy, HostRewriteSpecifier,
};
use crate::envoy::envoy::config::route::v3::{RouteAction, WeightedCluster};

/// The one filter state that can be hashed (A42).
const CHANNEL_ID: &str = "io.grpc.channel_id";

/// Checks the action of a route, and returns whether the route is used. Without
/// `plugins`, every plugin counts as declared.
pub(super) fn check_action(
    action: &RouteAction,
    plugins: Option<&Plugins<'_>>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> bool {
    if !check_cluster(action, plugins, place, findings) {
        return false;
    }
    for (index, policy) in action.hash_policy.iter().enumerate() {
        check_hash(policy, &place.item("hash_policy", index), findings);
    }

    if let Some(max) = &action.max_stream_duration {
        let place = place.field("max_stream_duration");
        for (field, duration) in [
            ("max_stream_duration", &max.max_stream_duration),
            ("grpc_timeout_header_max", &max.grpc_timeout_header_max),
        ] {
            check_duration(duration.as_ref(), &place.field(field), findings);
        }
    }

    if let Some(HostRewriteSpecifier::AutoHostRewrite(rewrite)) = &action.host_rewrite_specifier
        && rewrite.value
        && !findings.policy().trusts_server
    {
        findings.ignore(&place.field("auto_host_rewrite"), IgnoreReason::Untrusted);
    }
    retry::check_retry_policy(action.retry_policy.as_ref(), place, findings);
    true
}

/// Checks the cluster of a route, and returns whether the route is used. A
/// route with another kind of cluster specifier is skipped (C58).
fn check_cluster(
    action: &RouteAction,
    plugins: Option<&Plugins<'_>>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> bool {
    match &action.cluster_specifier {
        Some(ClusterSpecifier::Cluster(name)) => {
            if name.is_empty() {
                findings.reject(&place.field("cluster"), Problem::Missing);
            }
        }
        Some(ClusterSpecifier::WeightedClusters(clusters)) => {
            check_weighted(clusters, &place.field("weighted_clusters"), findings);
        }
        Some(ClusterSpecifier::ClusterSpecifierPlugin(name)) => {
            return check_plugin(name, plugins, place, findings);
        }
        Some(
            ClusterSpecifier::ClusterHeader(_) | ClusterSpecifier::InlineClusterSpecifierPlugin(_),
        )
        | None => {
            findings.ignore(place, IgnoreReason::ClusterSpecifier);
            return false;
        }
    }
    true
}

/// Checks the plugin of a route, and returns whether the route is used. A route
/// to an optional plugin that is not supported is skipped. Without `plugins`,
/// every name is taken for a supported plugin.
fn check_plugin(
    name: &str,
    plugins: Option<&Plugins<'_>>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> bool {
    let is_supported = match plugins {
        None => Some(true),
        Some(plugins) => plugins.get(name).copied(),
    };

    let short_name = || clip(name, MAX_VALUE).to_owned();
    match is_supported {
        Some(true) => true,
        Some(false) => {
            findings.ignore(place, IgnoreReason::Plugin(short_name()));
            false
        }
        None => {
            let place = place.field("cluster_specifier_plugin");
            findings.reject(&place, Problem::UndeclaredPlugin(short_name()));
            true
        }
    }
}

/// Checks the weighted clusters of a route, and the sum of their weights. A
/// cluster of weight zero is ignored.
fn check_weighted(weighted: &WeightedCluster, place: &Place<'_>, findings: &mut Findings<'_>) {
    let mut weight_sum = 0_u64;
    for (index, cluster) in weighted.clusters.iter().enumerate() {
        let place = place.item("clusters", index);
        let weight = cluster.weight.as_ref().map_or(0, |weight| weight.value);
        if weight == 0 {
            findings.ignore(&place, IgnoreReason::ZeroWeight);
            continue;
        }
        weight_sum += u64::from(weight);
        if cluster.name.is_empty() {
            findings.reject(&place.field("name"), Problem::Missing);
        }
        http_filters::check_overrides(&cluster.typed_per_filter_config, &place, findings);
    }

    if weight_sum == 0 {
        findings.reject(&place.field("clusters"), Problem::ZeroWeights);
    } else if weight_sum > u64::from(u32::MAX) {
        findings.reject(&place.field("clusters"), Problem::LargeWeights(weight_sum));
    }
}

/// Checks a hash policy. A policy of an unsupported kind is ignored, since it
/// yields no hash (A42).
fn check_hash(policy: &HashPolicy, place: &Place<'_>, findings: &mut Findings<'_>) {
    match &policy.policy_specifier {
        Some(PolicySpecifier::Header(header)) => {
            let place = place.field("header");
            if header.header_name.is_empty() {
                findings.reject(&place.field("header_name"), Problem::Missing);
            }
            if let Some(rewrite) = &header.regex_rewrite {
                let place = place.field("regex_rewrite");
                let place = place.field("pattern");
                match &rewrite.pattern {
                    Some(pattern) => matcher::check_regex(pattern, &place, findings),
                    None => findings.reject(&place, Problem::Missing),
                }
            }
        }
        Some(PolicySpecifier::FilterState(state)) if state.key == CHANNEL_ID => {}
        _ => findings.ignore(place, IgnoreReason::HashPolicy),
    }
}
