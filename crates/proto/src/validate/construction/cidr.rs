//! Ranges of addresses whose prefix must be an IP address: in RBAC, and in the
//! matches of filter chains. Of other ranges it is not known that Envoy rejects
//! them.

use prost_reflect::DynamicMessage;

use super::address::may_be_ip;
use super::read::{Part, has, inner, messages, report_at, text};
use super::rejected::Rejected;
use crate::validate::walk::Walk;

const PREFIX: &str = "address_prefix";
const REMEDY: &str = "write one, and the length of the prefix in prefix_len";

/// The messages of RBAC that have a range.
const OF_RBAC: [&str; 2] = [
    "envoy.config.rbac.v3.Permission",
    "envoy.config.rbac.v3.Principal",
];

/// The ranges of the match of a filter chain.
const OF_MATCH: [&str; 3] = [
    "prefix_ranges",
    "direct_source_prefix_ranges",
    "source_prefix_ranges",
];

/// Reports a range of RBAC whose prefix is not an IP address.
pub(super) fn check_range(walk: &mut Walk, range: &DynamicMessage) {
    if !walk.is_in_message(|name| OF_RBAC.contains(&name)) {
        return;
    }
    if let Some(rejected) = find_mistake(range) {
        report_at(walk, range, &[Part::Field(PREFIX)], rejected);
    }
}

/// Reports the ranges of a listener's filter chains whose prefix is not an IP
/// address. Envoy ignores them with a `filter_chain_matcher`, and those of the
/// default filter chain always.
pub(super) fn check_chains(walk: &mut Walk, listener: &DynamicMessage) {
    if has(listener, "filter_chain_matcher") {
        return;
    }
    for (index, chain) in messages(listener, "filter_chains").into_iter().enumerate() {
        let Some(chain_match) = inner(chain, "filter_chain_match") else {
            continue;
        };
        for field in OF_MATCH {
            for (range_index, range) in messages(chain_match, field).into_iter().enumerate() {
                let Some(rejected) = find_mistake(range) else {
                    continue;
                };

                let place = [
                    Part::Field("filter_chains"),
                    Part::Index(index),
                    Part::Field("filter_chain_match"),
                    Part::Field(field),
                    Part::Index(range_index),
                    Part::Field(PREFIX),
                ];
                report_at(walk, listener, &place, rejected);
            }
        }
    }
}

/// Returns the mistake of a range. Returns `None` if its prefix may be an IP
/// address.
fn find_mistake(range: &DynamicMessage) -> Option<Rejected> {
    let prefix = text(range, PREFIX);
    let rejected = || Rejected::NoIp {
        found: prefix.to_owned(),
        remedy: REMEDY,
    };
    (!may_be_ip(prefix)).then(rejected)
}
