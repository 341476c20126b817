//! The checks against the descriptors, and of bytes against those of messages.

use prost_reflect::Kind;

use super::*;
use crate::descriptor::pool;

#[test]
fn every_check_is_of_a_message_that_exists() {
    for (message, ..) in CHECKS {
        assert!(pool().get_message_by_name(message).is_some(), "{message}");
    }
}

/// The numbers of fields that are written in the code by hand.
#[test]
fn fields_have_the_numbers_that_envoy_gave_them() {
    for (message, field, number) in [
        ("config.core.v3.HeaderValue", "value", format::VALUE),
        ("config.core.v3.SocketAddress", "address", address::ADDRESS),
        ("config.route.v3.VirtualHost", "domains", domains::DOMAINS),
        (
            "config.route.v3.WeightedCluster",
            "clusters",
            weights::CLUSTERS,
        ),
        (
            "config.route.v3.WeightedCluster.ClusterWeight",
            "weight",
            weights::WEIGHT,
        ),
        ("type.matcher.v3.RegexMatcher", "regex", regex::REGEX),
    ] {
        let of = pool().get_message_by_name(&format!("envoy.{message}"));
        let of = of.unwrap_or_else(|| panic!("{message}"));
        assert_eq!(of.get_field_by_name(field).unwrap().number(), number);
    }
}

#[test]
fn enums_have_the_numbers_that_envoy_gave_them() {
    let cluster = pool()
        .get_message_by_name("envoy.config.cluster.v3.Cluster")
        .unwrap();
    for (field, name, number) in [
        ("type", "LOGICAL_DNS", discovery::LOGICAL_DNS),
        ("type", "EDS", discovery::EDS),
        ("lb_policy", "RING_HASH", ring::RING_HASH),
        ("lb_policy", "MAGLEV", ring::MAGLEV),
    ] {
        let Kind::Enum(of) = cluster.get_field_by_name(field).unwrap().kind() else {
            panic!("{field} is an enum");
        };
        assert_eq!(of.get_value_by_name(name).unwrap().number(), number);
    }
}
