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
use crate::envoy::envoy::config::endpoint::v3::Endpoint;
use crate::envoy::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use crate::envoy::envoy::extensions::clusters::aggregate::v3::ClusterConfig;
use crate::envoy::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;

const SUPPORTED: &str = "a type of cluster that is supported";
const HTTP_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// Checks a cluster by the rules of gRPC.
pub(in crate::acceptance) fn check_cluster(findings: &mut Findings<'_>, cluster: &Cluster) {
    let root = Place::ROOT;
    check_type(cluster, findings);
    lb_policy::check_policy_fields(cluster, findings);
    tls::check_cluster(cluster, findings);
    if let Some(detection) = &cluster.outlier_detection {
        outlier::check_detection(detection, &root.field("outlier_detection"), findings);
    }
    if let Some(server) = &cluster.lrs_server {
        config_source::check_self(server, &root.field("lrs_server"), findings);
    }
    if let Some(config) = &cluster.upstream_config {
        check_upstream(config, &root.field("upstream_config"), findings);
    }
    metadata::check_metadata(cluster.metadata.as_ref(), &root, findings);
}

/// Checks the discovery type of a cluster. An unsupported type is a value of a
/// supported field, so it is a reason to reject (C57).
fn check_type(cluster: &Cluster, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    let number = match &cluster.cluster_discovery_type {
        Some(ClusterDiscoveryType::ClusterType(custom)) => return check_custom(custom, findings),
        Some(ClusterDiscoveryType::Type(number)) => *number,
        None => DiscoveryType::Static as i32,
    };

    let discovery_type = DiscoveryType::try_from(number);
    let supported = &findings.policy().cluster_types;
    match discovery_type {
        Ok(discovery_type) if supported.contains(discovery_type.as_str_name()) => {
            match discovery_type {
                DiscoveryType::Eds => check_eds(cluster, findings),
                DiscoveryType::LogicalDns => check_dns(cluster, findings),
                _ => {}
            }
        }
        Ok(discovery_type) => {
            let problem = Problem::value(discovery_type.as_str_name(), SUPPORTED);
            findings.reject(&root.field("type"), problem);
        }
        Err(_) => findings.reject(&root.field("type"), Problem::value(number, SUPPORTED)),
    }
}

/// Checks that a cluster of type EDS has a source for its endpoints.
pub(in crate::acceptance) fn check_source(findings: &mut Findings<'_>, cluster: &Cluster) {
    let is_eds = cluster.cluster_discovery_type
        == Some(ClusterDiscoveryType::Type(DiscoveryType::Eds as i32));
    let eds = cluster.eds_cluster_config.as_ref();
    if is_eds && eds.is_none_or(|eds| eds.eds_config.is_none()) {
        let place = Place::ROOT.field("eds_cluster_config");
        findings.reject(&place.field("eds_config"), Problem::Missing);
    }
}

/// Checks a cluster of type EDS.
fn check_eds(cluster: &Cluster, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    let place = root.field("eds_cluster_config");
    let Some(config) = &cluster.eds_cluster_config else {
        return findings.reject(&place, Problem::Missing);
    };
    config_source::check_source(
        config.eds_config.as_ref(),
        &place.field("eds_config"),
        findings,
    );

    // C13: a structured name contains the type, so the endpoints cannot have
    // the name of the cluster.
    if cluster.name.starts_with("xdstp:") && config.service_name.is_empty() {
        findings.reject(&place.field("service_name"), Problem::ServiceName);
    }
}

/// Checks a cluster of type LOGICAL_DNS, which has exactly one endpoint with a
/// host name (A37).
fn check_dns(cluster: &Cluster, findings: &mut Findings<'_>) {
    let not_one_problem = |found| Problem::Count {
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
        return findings.reject(&place.field("endpoints"), not_one_problem(count));
    };
    let place = place.item("endpoints", 0);
    let [endpoint] = &locality.lb_endpoints[..] else {
        let count = locality.lb_endpoints.len();
        return findings.reject(&place.field("lb_endpoints"), not_one_problem(count));
    };

    let place = place.item("lb_endpoints", 0);
    let place = place.field("endpoint");
    let Some(HostIdentifier::Endpoint(endpoint)) = &endpoint.host_identifier else {
        return findings.reject(&place, Problem::Missing);
    };
    check_dns_address(endpoint, &place.field("address"), findings);
}

/// Checks the address of the endpoint of a LOGICAL_DNS cluster: a host name
/// and a port, without a resolver (A37).
fn check_dns_address(endpoint: &Endpoint, place: &Place<'_>, findings: &mut Findings<'_>) {
    let Some(socket) = address::check_socket(endpoint.address.as_ref(), place, findings) else {
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
/// policy supports.
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

/// Checks the options of the connections to a cluster (A75).
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
