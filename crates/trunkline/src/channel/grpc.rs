//! What of Envoy's messages counts for a gRPC client: the fields that gRPC's own
//! designs name. Others are ignored (C57), so they are left out before the rules
//! of traffic compile a message.

use prost::Message as _;
use trunkline_proto::descriptor::full_name;
use trunkline_proto::envoy::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, CommonLbConfig, DiscoveryType, LbConfig, LbPolicy, RingHashLbConfig,
    common_lb_config::{LocalityConfigSpecifier, LocalityWeightedLbConfig},
};
use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, OutlierDetection};
use trunkline_proto::envoy::envoy::config::core::v3::HealthStatus;
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, LbEndpoint, LocalityLbEndpoints,
    cluster_load_assignment::Policy as AssignmentPolicy,
};
use trunkline_proto::envoy::envoy::config::route::v3::route::Action;
use trunkline_proto::envoy::envoy::config::route::v3::route_action::hash_policy::{
    Header, PolicySpecifier,
};
use trunkline_proto::envoy::envoy::config::route::v3::route_action::{
    ClusterSpecifier, HashPolicy, MaxStreamDuration,
};
use trunkline_proto::envoy::envoy::config::route::v3::route_match::PathSpecifier;
use trunkline_proto::envoy::envoy::config::route::v3::weighted_cluster::ClusterWeight;
use trunkline_proto::envoy::envoy::config::route::v3::{
    NonForwardingAction, RetryPolicy, Route, RouteAction, RouteConfiguration, RouteMatch,
    VirtualHost, WeightedCluster,
};
use trunkline_proto::envoy::envoy::extensions::load_balancing_policies::pick_first::v3::PickFirst as PickFirstMessage;
use trunkline_proto::envoy::envoy::r#type::v3::Percent;
use trunkline_proto::envoy::google::protobuf::{Any, Duration, UInt32Value, UInt64Value};
use trunkline_traffic::balance::Policy;

/// The header that stands for the identity of a channel in hash policies.
pub(super) const CHANNEL_ID: &str = "io.grpc.channel_id";

/// The policy by which calls go to one endpoint.
const PICK_FIRST: &str = "envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst";

/// The largest ring (A42).
const MAX_RING: u64 = 4096;

/// The most attempts of a call are one more (A6).
const MAX_RETRIES: u32 = 4;

/// The conditions of retries that are of gRPC (A44).
const RETRY_ON: [&str; 5] = [
    "cancelled",
    "deadline-exceeded",
    "internal",
    "resource-exhausted",
    "unavailable",
];

/// Returns a configuration with the routes of a virtual host, as far as gRPC
/// knows their fields. Its one virtual host matches every authority, because it
/// was chosen already.
pub(super) fn routes(host: &VirtualHost) -> RouteConfiguration {
    let virtual_host = VirtualHost {
        name: host.name.clone(),
        domains: vec!["*".to_owned()],
        routes: host.routes.iter().filter_map(route).collect(),
        retry_policy: host.retry_policy.as_ref().map(retry_policy),
        typed_per_filter_config: host.typed_per_filter_config.clone(),
        ..VirtualHost::default()
    };
    RouteConfiguration {
        virtual_hosts: vec![virtual_host],
        ..RouteConfiguration::default()
    }
}

/// Returns what of a route counts; `None` if gRPC passes it over (A28).
fn route(route: &Route) -> Option<Route> {
    let conditions = route.r#match.as_ref()?;
    let is_known = matches!(
        conditions.path_specifier,
        Some(PathSpecifier::Prefix(_) | PathSpecifier::Path(_) | PathSpecifier::SafeRegex(_))
    );
    if !is_known || !conditions.query_parameters.is_empty() {
        return None;
    }
    let action = match route.action.as_ref()? {
        Action::Route(action) => Action::Route(route_action(action)?),
        // A call that takes such a route fails.
        _ => Action::NonForwardingAction(NonForwardingAction {}),
    };
    Some(Route {
        name: route.name.clone(),
        r#match: Some(RouteMatch {
            path_specifier: conditions.path_specifier.clone(),
            case_sensitive: conditions.case_sensitive,
            headers: conditions.headers.clone(),
            runtime_fraction: conditions.runtime_fraction.clone(),
            ..RouteMatch::default()
        }),
        action: Some(action),
        typed_per_filter_config: route.typed_per_filter_config.clone(),
        ..Route::default()
    })
}

/// Returns what counts of an action that forwards; `None` if it says the
/// cluster in a way that gRPC does not know.
fn route_action(action: &RouteAction) -> Option<RouteAction> {
    let clusters = match action.cluster_specifier.as_ref()? {
        ClusterSpecifier::Cluster(name) => ClusterSpecifier::Cluster(name.clone()),
        ClusterSpecifier::WeightedClusters(weighted) => {
            let clusters = weighted.clusters.iter().map(|cluster| ClusterWeight {
                name: cluster.name.clone(),
                weight: cluster.weight,
                typed_per_filter_config: cluster.typed_per_filter_config.clone(),
                ..ClusterWeight::default()
            });
            ClusterSpecifier::WeightedClusters(WeightedCluster {
                clusters: clusters.collect(),
                ..WeightedCluster::default()
            })
        }
        _ => return None,
    };
    Some(RouteAction {
        cluster_specifier: Some(clusters),
        // gRPC has the limit of the stream only (A31).
        timeout: Some(Duration::default()),
        max_stream_duration: action.max_stream_duration.as_ref().map(max_stream_duration),
        hash_policy: action.hash_policy.iter().filter_map(hash_policy).collect(),
        retry_policy: action.retry_policy.as_ref().map(retry_policy),
        ..RouteAction::default()
    })
}

/// Returns the limit of a call: the one for the header `grpc-timeout`, whether
/// the call has that or not, or else the plain one (A31).
fn max_stream_duration(limits: &MaxStreamDuration) -> MaxStreamDuration {
    MaxStreamDuration {
        max_stream_duration: limits
            .grpc_timeout_header_max
            .or(limits.max_stream_duration),
        ..MaxStreamDuration::default()
    }
}

/// Returns a hash policy by a header, or by the identity of the channel; `None`
/// for another one (A42).
fn hash_policy(policy: &HashPolicy) -> Option<HashPolicy> {
    let specifier = match policy.policy_specifier.as_ref()? {
        PolicySpecifier::Header(header) => {
            // Values of binary headers are not seen (A42).
            if header.header_name.ends_with("-bin") {
                return None;
            }
            PolicySpecifier::Header(header.clone())
        }
        PolicySpecifier::FilterState(state) if state.key == CHANNEL_ID => {
            PolicySpecifier::Header(Header {
                header_name: CHANNEL_ID.to_owned(),
                regex_rewrite: None,
            })
        }
        _ => return None,
    };
    Some(HashPolicy {
        terminal: policy.terminal,
        policy_specifier: Some(specifier),
    })
}

/// Returns what counts of a retry policy: conditions of gRPC (A44), and at most
/// [`MAX_RETRIES`] retries (A6).
fn retry_policy(policy: &RetryPolicy) -> RetryPolicy {
    let words = policy.retry_on.split(',').map(str::trim);
    let conditions: Vec<_> = words.filter(|word| RETRY_ON.contains(word)).collect();
    let retries = policy.num_retries.map_or(1, |number| number.value);
    RetryPolicy {
        retry_on: conditions.join(","),
        num_retries: Some(UInt32Value {
            value: retries.min(MAX_RETRIES),
        }),
        retry_back_off: policy.retry_back_off,
        ..RetryPolicy::default()
    }
}

/// Returns how the first endpoint is picked, if calls of a cluster go to the
/// first that can be connected to; `None` if they do not. They do for the
/// addresses of DNS (A37), and for a list of policies that has `pick_first`
/// before any that is known (A62).
pub(super) fn pick_first(cluster: &Cluster) -> Option<PickFirst> {
    let list = cluster.load_balancing_policy.as_ref();
    let mut configs = list
        .into_iter()
        .flat_map(|list| &list.policies)
        .map(|policy| {
            let extension = policy.typed_extension_config.as_ref();
            extension.and_then(|extension| extension.typed_config.as_ref())
        });
    let is_pick_first = |any: &&Any| full_name(&any.type_url) == PICK_FIRST;
    let place = configs.position(|any| any.as_ref().is_some_and(is_pick_first));
    let Some(place) = place else {
        let is_by_dns = cluster.cluster_discovery_type
            == Some(ClusterDiscoveryType::Type(DiscoveryType::LogicalDns.into()));
        return is_by_dns.then(PickFirst::default);
    };

    // A policy before it that can be used comes first (A62).
    let mut earlier = cluster.clone();
    let list = earlier.load_balancing_policy.as_mut()?;
    let config = list.policies[place].typed_extension_config.take()?;
    list.policies.truncate(place);
    if Policy::compile(&balancing(&earlier)).is_ok() {
        return None;
    }
    let config = PickFirstMessage::decode(&*config.typed_config?.value).ok()?;
    Some(PickFirst {
        shuffles: config.shuffle_address_list,
    })
}

/// How the first endpoint is picked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PickFirst {
    /// Whether the order of addresses is a random one.
    pub(super) shuffles: bool,
}

/// Returns what of a cluster decides about its balancing: the policy, and
/// localities by weight. Health plays no part, but that an endpoint can be
/// used.
pub(super) fn balancing(cluster: &Cluster) -> Cluster {
    let list = cluster.load_balancing_policy.as_ref();
    let has_ring = list.is_some_and(|list| {
        let mut configs = list.policies.iter().filter_map(|policy| {
            let extension = policy.typed_extension_config.as_ref()?;
            extension.typed_config.as_ref()
        });
        configs.any(|config| config.type_url.ends_with("RingHash"))
    });
    let by_weight = LocalityConfigSpecifier::LocalityWeightedLbConfig(LocalityWeightedLbConfig {});
    Cluster {
        name: cluster.name.clone(),
        lb_policy: cluster.lb_policy,
        lb_config: lb_config(cluster),
        load_balancing_policy: cluster.load_balancing_policy.clone(),
        common_lb_config: Some(CommonLbConfig {
            healthy_panic_threshold: Some(Percent { value: 0.0 }),
            locality_config_specifier: (list.is_none() || has_ring).then_some(by_weight),
            ..CommonLbConfig::default()
        }),
        ..Cluster::default()
    }
}

/// Returns the settings of the older kind of policy, with rings no larger than
/// [`MAX_RING`].
fn lb_config(cluster: &Cluster) -> Option<LbConfig> {
    if cluster.lb_policy() != LbPolicy::RingHash {
        return cluster.lb_config.clone();
    }
    let mut ring = match cluster.lb_config {
        Some(LbConfig::RingHashLbConfig(ring)) => ring,
        _ => RingHashLbConfig::default(),
    };
    let at_most = |size: Option<UInt64Value>, default: u64| {
        let value = size.map_or(default, |size| size.value).min(MAX_RING);
        Some(UInt64Value { value })
    };
    ring.minimum_ring_size = at_most(ring.minimum_ring_size, 1024);
    ring.maximum_ring_size = at_most(ring.maximum_ring_size, MAX_RING);
    Some(LbConfig::RingHashLbConfig(ring))
}

/// Returns what counts of the ejection of outliers: success rates and failure
/// percentages, and not errors in a row (A50).
pub(super) fn outlier_detection(detection: &OutlierDetection) -> OutlierDetection {
    let never = Some(UInt32Value { value: 0 });
    OutlierDetection {
        interval: detection.interval,
        base_ejection_time: detection.base_ejection_time,
        max_ejection_time: detection.max_ejection_time,
        max_ejection_percent: detection.max_ejection_percent,
        enforcing_consecutive_5xx: never,
        enforcing_consecutive_gateway_failure: never,
        enforcing_success_rate: detection.enforcing_success_rate,
        success_rate_minimum_hosts: detection.success_rate_minimum_hosts,
        success_rate_request_volume: detection.success_rate_request_volume,
        success_rate_stdev_factor: detection.success_rate_stdev_factor,
        failure_percentage_threshold: detection.failure_percentage_threshold,
        enforcing_failure_percentage: detection.enforcing_failure_percentage,
        failure_percentage_minimum_hosts: detection.failure_percentage_minimum_hosts,
        failure_percentage_request_volume: detection.failure_percentage_request_volume,
        ..OutlierDetection::default()
    }
}

/// Returns the endpoints of each priority as an assignment of its own, the best
/// first: those that nobody says are unhealthy, draining or degraded (A56).
///
/// A locality without a weight has no calls if another one of its priority has
/// one. Where none has, all are equal; gRPC would have no endpoint.
pub(super) fn priorities(assignment: &ClusterLoadAssignment) -> Vec<ClusterLoadAssignment> {
    let mut by_priority = std::collections::BTreeMap::<u32, Vec<LocalityLbEndpoints>>::new();
    for locality in &assignment.endpoints {
        let usable = locality
            .lb_endpoints
            .iter()
            .filter(|endpoint| is_usable(endpoint));
        let localities = by_priority.entry(locality.priority).or_default();
        localities.push(LocalityLbEndpoints {
            locality: locality.locality.clone(),
            lb_endpoints: usable.cloned().collect(),
            load_balancing_weight: locality.load_balancing_weight,
            ..LocalityLbEndpoints::default()
        });
    }

    let has_endpoint = |locality: &LocalityLbEndpoints| !locality.lb_endpoints.is_empty();
    let priorities = by_priority.into_values();
    let usable_priorities = priorities.filter(|localities| localities.iter().any(has_endpoint));
    usable_priorities
        .map(|localities| make_priority(assignment, localities))
        .collect()
}

/// Makes the assignment of one priority. It drops as many calls as `assignment`.
fn make_priority(
    assignment: &ClusterLoadAssignment,
    mut localities: Vec<LocalityLbEndpoints>,
) -> ClusterLoadAssignment {
    let has_weight = |locality: &LocalityLbEndpoints| locality.load_balancing_weight.is_some();
    if !localities.iter().any(has_weight) {
        for locality in &mut localities {
            locality.load_balancing_weight = Some(UInt32Value { value: 1 });
        }
    }

    let policy = assignment.policy.as_ref();
    let drop_overloads = policy.map(|policy| policy.drop_overloads.clone());
    ClusterLoadAssignment {
        cluster_name: assignment.cluster_name.clone(),
        endpoints: localities,
        policy: Some(AssignmentPolicy {
            drop_overloads: drop_overloads.unwrap_or_default(),
            // One endpoint that can be used is enough for all calls.
            overprovisioning_factor: Some(UInt32Value { value: u32::MAX }),
            ..AssignmentPolicy::default()
        }),
        ..ClusterLoadAssignment::default()
    }
}

/// Returns whether calls may go to an endpoint, by its health as the assignment
/// says it.
fn is_usable(endpoint: &LbEndpoint) -> bool {
    matches!(
        endpoint.health_status(),
        HealthStatus::Unknown | HealthStatus::Healthy
    )
}
