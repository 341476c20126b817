//! The domains of a route configuration without VHDS: each at most once,
//! whatever the letters' case. With VHDS, virtual hosts are resources, and
//! their domains are compared over all documents.

use std::collections::{HashMap, HashSet};

use prost_reflect::DynamicMessage;

use super::read::{Part, all_encoded_texts, encoded_values, has, messages, report_at, texts};
use super::rejected::Rejected;
use crate::conditions::has_condition;
use crate::validate::walk::Walk;
use crate::vhosts::{VHDS, VIRTUAL_HOSTS};

/// `VirtualHost.domains`.
pub(super) const DOMAINS: u32 = 2;

/// Reports each domain that an earlier virtual host, or the same one, has
/// already.
pub(super) fn check_duplicates(walk: &mut Walk, route: &DynamicMessage) {
    if has(route, "vhds") {
        return;
    }

    let mut hosts_by_domain = HashMap::new();
    for (host_index, host) in messages(route, "virtual_hosts").into_iter().enumerate() {
        if has_condition(host) {
            continue;
        }
        for (domain_index, domain) in texts(host, "domains").enumerate() {
            let (first_host, first_domain) = *hosts_by_domain
                .entry(domain.to_ascii_lowercase())
                .or_insert((host_index, domain_index));
            if (first_host, first_domain) == (host_index, domain_index) {
                continue;
            }

            let place = [
                Part::Field("virtual_hosts"),
                Part::Index(host_index),
                Part::Field("domains"),
                Part::Index(domain_index),
            ];
            let rejected = Rejected::SameDomain {
                domain: domain.to_owned(),
                first: format!("virtual_hosts[{first_host}]"),
            };
            report_at(walk, route, &place, rejected);
        }
    }
}

/// Returns whether an encoded route configuration has VHDS, or no domain twice.
/// One with capital letters is left to the check.
pub(super) fn is_plain(route: &[u8]) -> bool {
    let has_vhds = encoded_values(route, VHDS).next().is_some();
    has_vhds || has_different_domains(route)
}

/// Returns whether all domains differ and are in lower case. Returns `false` if
/// the bytes are not a message.
fn has_different_domains(route: &[u8]) -> bool {
    let mut domains = HashSet::new();
    let mut is_new = |domain| {
        let has_capitals = |domain: &str| domain.bytes().any(|byte| byte.is_ascii_uppercase());
        !has_capitals(domain) && domains.insert(domain)
    };
    let mut hosts = encoded_values(route, VIRTUAL_HOSTS);
    hosts.all(|host| host.is_some_and(|host| all_encoded_texts(host, DOMAINS, &mut is_new)))
}
