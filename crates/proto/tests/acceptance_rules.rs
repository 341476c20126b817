//! What holds of every body: names, profiles, bounds, and garbage.
#![allow(clippy::expect_used, reason = "all of this is tests")]

use std::net::SocketAddr;
use std::sync::LazyLock;

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;
use trunkline_proto::acceptance::{
    IgnoreReason, MAX_FINDINGS, MAX_TEXT, Policy, Problem, ResourceType, Types, Unsupported,
    accept, decode, is_at,
};
use trunkline_proto::descriptor::types;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::core::v3::CidrRange;
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, LbEndpoint, LocalityLbEndpoints,
};
use trunkline_proto::envoy::envoy::config::listener::v3::{
    FilterChain, FilterChainMatch, Listener,
};
use trunkline_proto::envoy::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use trunkline_proto::envoy::google::protobuf::UInt32Value;
use trunkline_proto::text::{self, Options};

fn bytes(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

fn resource(yaml: &str) -> (String, Bytes) {
    let mut read = text::read("f.yaml", yaml, &Options::default());
    assert_eq!(read.errors, []);
    let resource = read.resources.pop().expect("a resource");
    (resource.type_url, resource.body)
}

#[test]
fn c27_a_rejection_has_the_name_if_it_could_be_read() {
    let cluster = Cluster {
        name: "c".to_owned(),
        ..Cluster::default()
    };
    let rejection = decode::<Cluster>(&bytes(&cluster), &Policy::grpc()).unwrap_err();
    assert_eq!(rejection.name.as_deref(), Some("c"));
    assert_eq!(rejection.type_url, types::CLUSTER);

    let garbage = Bytes::from_static(b"\x0a\xff");
    let rejection = decode::<Cluster>(&garbage, &Policy::grpc()).unwrap_err();
    assert_eq!(rejection.name, None);
    let [reason] = &rejection.reasons[..] else {
        panic!("{rejection}");
    };
    assert!(matches!(reason.problem, Problem::Malformed { .. }));
}

#[test]
fn a_type_that_is_not_known_is_rejected() {
    let body = Bytes::new();
    let rejection = accept("a/b.C", &body, &Policy::grpc()).unwrap_err();
    assert_eq!(rejection.to_string(), "the type a/b.C is not known");
    for url in types::ALL {
        assert!(Types::standard().contains(url), "{url}");
    }
}

#[test]
fn each_profile_has_its_own_rules() {
    let domains_twice = r#"
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r
virtual_hosts: [{name: v, domains: [a]}, {name: w, domains: [a]}]
"#;
    let no_domains = r#"
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r
virtual_hosts: [{name: v}]
"#;
    let in_order = r#"
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r
virtual_hosts: [{name: v, domains: [a]}]
"#;
    let reasons = |yaml: &str, policy: &Policy| {
        let (url, body) = resource(yaml);
        let result = accept(&url, &body, policy);
        result.map_or_else(|rejection| rejection.to_string(), |_| String::new())
    };
    let rejected = "virtual_hosts[1].domains[0]: the domain \"a\" is one of virtual_hosts[0] too; \
         a route configuration may have it once: remove one";
    let broken = "virtual_hosts[0].domains: has 0 items, must have at least 1";

    let [generic, grpc, envoy] = [Policy::generic(), Policy::grpc(), Policy::envoy()];
    assert_eq!(reasons(domains_twice, &generic), "");
    assert_eq!(reasons(domains_twice, &grpc), "");
    assert_eq!(reasons(domains_twice, &envoy), rejected);
    assert_eq!(reasons(no_domains, &generic), broken);
    assert_eq!(reasons(no_domains, &grpc), "");
    assert_eq!(reasons(no_domains, &envoy), broken);
    for policy in [generic, grpc, envoy] {
        assert_eq!(reasons(in_order, &policy), "");
    }
}

/// A missing name is one reason, though a rule on the field speaks of it too.
#[test]
fn c27_every_profile_needs_a_name() {
    for policy in [Policy::generic(), Policy::grpc(), Policy::envoy()] {
        let body = bytes(&VirtualHost {
            domains: vec!["a".to_owned()],
            ..VirtualHost::default()
        });
        let rejection = decode::<VirtualHost>(&body, &policy).unwrap_err();
        assert_eq!(rejection.name, None);
        assert_eq!(
            rejection.to_string(),
            "name: is required and missing; set it"
        );
    }
}

#[test]
fn c56_an_endpoint_alone_is_checked_too() {
    let body = bytes(&LbEndpoint::default());
    let rejection = decode::<LbEndpoint>(&body, &Policy::grpc()).unwrap_err();
    assert_eq!(
        rejection.to_string(),
        "endpoint: is required and missing; set it"
    );
    assert_eq!(LbEndpoint::default().name(), None);
}

#[test]
fn c26_the_reasons_of_a_body_are_bounded_and_the_rest_is_counted() {
    let locality = LocalityLbEndpoints {
        lb_endpoints: vec![LbEndpoint::default(); 1000],
        load_balancing_weight: Some(UInt32Value { value: 1 }),
        locality: Some(Default::default()),
        ..LocalityLbEndpoints::default()
    };
    let unweighted = LocalityLbEndpoints::default();
    let mut assignment = ClusterLoadAssignment {
        cluster_name: "c".to_owned(),
        endpoints: vec![locality],
        ..ClusterLoadAssignment::default()
    };
    let decode =
        |assignment: &_| decode::<ClusterLoadAssignment>(&bytes(assignment), &Policy::grpc());
    let rejection = decode(&assignment).unwrap_err();
    assert_eq!(rejection.reasons.len(), MAX_FINDINGS);
    assert_eq!(rejection.omitted, 1000 - MAX_FINDINGS);
    assert!(rejection.to_string().len() <= MAX_TEXT);

    assignment.endpoints = vec![unweighted; 1000];
    let report = decode(&assignment).expect("localities are skipped").report;
    assert_eq!(report.ignored.len(), MAX_FINDINGS);
    assert_eq!(report.omitted, 1000 - MAX_FINDINGS);
    assert!(
        report
            .ignored
            .iter()
            .all(|it| it.why == IgnoreReason::NoWeight)
    );
}

/// A control plane may send a product of lists that nobody could compare.
#[test]
fn c61_the_combinations_of_a_match_are_bounded() {
    let range = |n: u32| CidrRange {
        address_prefix: format!("10.{}.{}.0", n / 256, n % 256),
        prefix_len: Some(UInt32Value { value: 24 }),
    };
    let ranges: Vec<_> = (0..5000).map(range).collect();
    let chain = FilterChain {
        filter_chain_match: Some(FilterChainMatch {
            prefix_ranges: ranges.clone(),
            source_prefix_ranges: ranges,
            source_ports: (0..5000).collect(),
            ..FilterChainMatch::default()
        }),
        ..FilterChain::default()
    };
    let listener = Listener {
        name: "l".to_owned(),
        filter_chains: vec![chain; 20],
        ..Listener::default()
    };
    let body = bytes(&listener);
    let rejection = decode::<Listener>(&body, &Policy::grpc()).unwrap_err();
    let problems = rejection.reasons.iter().map(|reason| &reason.problem);
    assert!(
        problems
            .into_iter()
            .any(|p| matches!(p, Problem::TooMany(_)))
    );
}

#[test]
fn c61_a_listener_is_for_one_address() {
    let (_, body) = resource(
        r#"
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
address: {socket_address: {address: "::1", port_value: 80}}
"#,
    );
    let listener = Listener::decode(body).expect("a listener");
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    assert!(is_at(&listener, address("[0:0::1]:80")));
    assert!(!is_at(&listener, address("[::1]:81")));
    assert!(!is_at(&listener, address("127.0.0.1:80")));
    assert!(!is_at(&Listener::default(), address("[::1]:80")));
}

/// A message is decoded once, and shared from then on.
#[test]
fn a_message_is_shared_with_those_who_keep_it() {
    let body = bytes(&RouteConfiguration {
        name: "r".to_owned(),
        ..RouteConfiguration::default()
    });
    let accepted = accept(types::ROUTE_CONFIGURATION, &body, &Policy::grpc());
    let accepted = accepted.expect("it is valid");
    assert!(accepted.report.is_empty());
    let first = accepted.downcast::<RouteConfiguration>().expect("routes");
    let second = accepted.downcast::<RouteConfiguration>().expect("routes");
    assert!(std::sync::Arc::ptr_eq(&first, &second));
}

/// All cases of all rules, to begin with.
static SEEDS: LazyLock<Vec<(String, Bytes)>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/acceptance");
    let files = std::fs::read_dir(folder).expect("the cases");
    let mut seeds = Vec::new();
    for file in files {
        let path = file.expect("a file").path();
        let text = std::fs::read_to_string(path).expect("a text");
        seeds.extend(text.split("---\n").map(resource));
    }
    seeds
});

fn policies() -> [Policy; 4] {
    let strict = Policy {
        unsupported: Unsupported::Strict,
        ..Policy::grpc()
    };
    [Policy::generic(), Policy::grpc(), strict, Policy::envoy()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Bytes of a valid body that are changed, cut or doubled are accepted or
    /// rejected, with a text in its bounds.
    #[test]
    fn c26_c27_garbage_is_rejected_and_nothing_else_happens(
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
        cut in any::<prop::sample::Index>(),
        is_doubled in any::<bool>(),
    ) {
        let policies = policies();
        for (url, body) in SEEDS.iter() {
            let mut changed = body.to_vec();
            if changed.is_empty() {
                continue;
            }
            let place = at.index(changed.len());
            changed[place] = with;
            changed.truncate(cut.index(changed.len()) + 1);
            if is_doubled {
                changed.extend_from_slice(body);
            }
            let changed = Bytes::from(changed);
            for policy in &policies {
                if let Err(rejection) = accept(url, &changed, policy) {
                    prop_assert!(!rejection.reasons.is_empty());
                    prop_assert!(rejection.reasons.len() <= MAX_FINDINGS);
                    prop_assert!(rejection.to_string().len() <= MAX_TEXT);
                }
            }
        }
    }
}
