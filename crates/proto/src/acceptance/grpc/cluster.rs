//! Clusters: their type, and what each type needs (C13, C14, C57).

use super::{
    address, check_duration, config_source, decode_body, lb_policy, metadata, outlier, tls,
};
use crate::acceptance::extensions::AGGREGATE;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::descriptor::full_name;
use crate::envoy::envoy::config::cluster::v3::Cluster;
use crate::envoy::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, CustomClusterType, DiscoveryType,
};
use crate::envoy::envoy::config::core::v3::TypedExtensionConfig;
use crate::envoy::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use crate::envoy::envoy::extensions::clusters::aggregate::v3::ClusterConfig;
use crate::envoy::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;

const SUPPORTED: &str = "a type of cluster that is supported";
const HTTP_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// Checks a cluster.
pub(in crate::acceptance) fn check(findings: &mut Findings<'_>, cluster: &Cluster) {
    let root = Place::ROOT;
    check_type(cluster, findings);
    lb_policy::check(cluster, findings);
    tls::check_cluster(cluster, findings);
    if let Some(detection) = &cluster.outlier_detection {
        outlier::check(detection, &root.field("outlier_detection"), findings);
    }
    if let Some(server) = &cluster.lrs_server {
        config_source::check_self(server, &root.field("lrs_server"), findings);
    }
    if let Some(config) = &cluster.upstream_config {
        check_upstream(config, &root.field("upstream_config"), findings);
    }
    metadata::check(cluster.metadata.as_ref(), &root, findings);
}

/// Checks how the endpoints of a cluster are found. A type that is not
/// supported is a value of a supported field (C57).
fn check_type(cluster: &Cluster, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    let number = match &cluster.cluster_discovery_type {
        Some(ClusterDiscoveryType::ClusterType(custom)) => return check_custom(custom, findings),
        Some(ClusterDiscoveryType::Type(number)) => *number,
        None => DiscoveryType::Static as i32,
    };
    let of_type = DiscoveryType::try_from(number);
    let supported = &findings.policy().cluster_types;
    match of_type {
        Ok(of_type) if supported.contains(of_type.as_str_name()) => match of_type {
            DiscoveryType::Eds => check_eds(cluster, findings),
            DiscoveryType::LogicalDns => check_dns(cluster, findings),
            _ => {}
        },
        Ok(of_type) => {
            let problem = Problem::value(of_type.as_str_name(), SUPPORTED);
            findings.reject(&root.field("type"), problem);
        }
        Err(_) => findings.reject(&root.field("type"), Problem::value(number, SUPPORTED)),
    }
}

/// Checks that a cluster whose endpoints come by EDS has a source for them.
pub(in crate::acceptance) fn check_source(findings: &mut Findings<'_>, cluster: &Cluster) {
    let is_eds = cluster.cluster_discovery_type
        == Some(ClusterDiscoveryType::Type(DiscoveryType::Eds as i32));
    let eds = cluster.eds_cluster_config.as_ref();
    if is_eds && eds.is_none_or(|eds| eds.eds_config.is_none()) {
        let place = Place::ROOT.field("eds_cluster_config");
        findings.reject(&place.field("eds_config"), Problem::Missing);
    }
}

/// Checks a cluster whose endpoints come by EDS.
fn check_eds(cluster: &Cluster, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    let place = root.field("eds_cluster_config");
    let Some(config) = &cluster.eds_cluster_config else {
        return findings.reject(&place, Problem::Missing);
    };
    config_source::check(
        config.eds_config.as_ref(),
        &place.field("eds_config"),
        findings,
    );
    // C13: the endpoints of a cluster with a structured name cannot have the
    // same name, since that holds the type.
    if cluster.name.starts_with("xdstp:") && config.service_name.is_empty() {
        findings.reject(&place.field("service_name"), Problem::ServiceName);
    }
}

/// Checks a cluster whose endpoints are what a DNS name resolves to (A37).
fn check_dns(cluster: &Cluster, findings: &mut Findings<'_>) {
    let one = |found| Problem::Count {
        found,
        allowed: "one, in a LOGICAL_DNS cluster",
    };
    let root = Place::ROOT;
    let place = root.field("load_assignment");
    let Some(assignment) = &cluster.load_assignment else {
        return findings.reject(&place, Problem::Missing);
    };
    let [locality] = &assignment.endpoints[..] else {
        let count = assignment.endpoints.len();
        return findings.reject(&place.field("endpoints"), one(count));
    };
    let place = place.item("endpoints", 0);
    let [endpoint] = &locality.lb_endpoints[..] else {
        let count = locality.lb_endpoints.len();
        return findings.reject(&place.field("lb_endpoints"), one(count));
    };
    let place = place.item("lb_endpoints", 0);
    let place = place.field("endpoint");
    let Some(HostIdentifier::Endpoint(endpoint)) = &endpoint.host_identifier else {
        return findings.reject(&place, Problem::Missing);
    };
    let place = place.field("address");
    let Some(socket) = address::check_socket(endpoint.address.as_ref(), &place, findings) else {
        return;
    };
    let place = place.field("socket_address");
    if socket.address.is_empty() {
        findings.reject(&place.field("address"), Problem::Missing);
    }
    if !socket.resolver_name.is_empty() {
        let place = place.field("resolver_name");
        findings.reject(&place, Problem::value(&socket.resolver_name, "empty"));
    }
    address::check_port(socket, &place, findings);
}

/// Checks a cluster of a custom type: an aggregate (A37), or one that the
/// policy names.
fn check_custom(custom: &CustomClusterType, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    let place = root.field("cluster_type");
    let place = place.field("typed_config");
    let Some(config) = &custom.typed_config else {
        return findings.reject(&place, Problem::Missing);
    };
    let name = full_name(&config.type_url);
    if !findings.policy().cluster_types.contains(name) {
        let name = clip(name, MAX_VALUE).to_owned();
        return findings.reject(&place, Problem::Extension(name));
    }
    if name == AGGREGATE {
        let aggregate: Option<ClusterConfig> =
            decode_body(AGGREGATE, &config.value, &place, findings);
        if aggregate.is_some_and(|aggregate| aggregate.clusters.is_empty()) {
            findings.reject(&place.field("clusters"), Problem::Missing);
        }
    }
}

/// Checks the options of connections to a cluster (A75).
fn check_upstream(config: &TypedExtensionConfig, place: &Place<'_>, findings: &mut Findings<'_>) {
    let place = place.field("typed_config");
    let Some(any) = &config.typed_config else {
        return findings.reject(&place, Problem::Missing);
    };
    let name = full_name(&any.type_url);
    if name != HTTP_OPTIONS {
        let name = clip(name, MAX_VALUE).to_owned();
        return findings.reject(&place, Problem::Extension(name));
    }
    let options: Option<HttpProtocolOptions> =
        decode_body(HTTP_OPTIONS, &any.value, &place, findings);
    let common = options.and_then(|options| options.common_http_protocol_options);
    if let Some(common) = common {
        let place = place.field("common_http_protocol_options");
        let place = place.field("idle_timeout");
        check_duration(common.idle_timeout.as_ref(), &place, findings);
    }
}
