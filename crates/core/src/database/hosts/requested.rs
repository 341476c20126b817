//! The hosts that have subscribers. When a wildcard is added or removed, the
//! hosts under it are found here.
//!
//! Sorted by the reversed host: hosts with a common suffix are together.

use std::collections::BTreeSet;

use super::EntryId;
use crate::hosts::Domain;

/// The hosts that have subscribers.
#[derive(Debug, Default)]
pub(in super::super) struct RequestedHosts(BTreeSet<(Box<str>, EntryId)>);

impl RequestedHosts {
    /// Adds a host of a route configuration.
    pub(super) fn insert(&mut self, route: &str, host: &str, entry: EntryId) {
        self.0.insert((reversed_key(route, host).into(), entry));
    }

    /// Removes a host.
    pub(super) fn remove(&mut self, route: &str, host: &str, entry: EntryId) {
        self.0.remove(&(reversed_key(route, host).into(), entry));
    }

    /// Returns whether no host has a subscriber.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all requested hosts.
    pub(in super::super) fn entries(&self) -> impl Iterator<Item = EntryId> + '_ {
        self.0.iter().map(|(_, entry)| *entry)
    }

    /// Returns the requested hosts of a route configuration that a domain
    /// matches. For a suffix only hosts that end like it are visited, for a
    /// prefix all hosts of the route configuration.
    pub(super) fn hosts_matching(&self, route: &str, domain: Domain<'_>) -> Vec<EntryId> {
        // Hosts are reversed in the keys, so those that end like the domain
        // begin alike and are together.
        let common_start = match domain {
            Domain::Exact(text) | Domain::Suffix(text) => reversed_key(route, text),
            Domain::Prefix(_) | Domain::Any => reversed_key(route, ""),
        };
        let first_key = (common_start.as_str().into(), EntryId(0));
        let later_keys = self.0.range(first_key..);
        let candidates = later_keys.take_while(|(key, _)| key.starts_with(&common_start));

        let matching_keys = candidates.filter(|(key, _)| domain.matches(&host_of_key(key, route)));
        matching_keys.map(|(_, entry)| *entry).collect()
    }
}

/// Returns the key of a host: the route configuration, a slash, and the host
/// with its characters reversed.
fn reversed_key(route: &str, host: &str) -> String {
    let mut key = String::with_capacity(route.len() + 1 + host.len());
    key.push_str(route);
    key.push('/');
    key.extend(host.chars().rev());
    key
}

/// Returns the host of a key, whose route configuration this is.
fn host_of_key(key: &str, route: &str) -> String {
    key[route.len() + 1..].chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_under_a_domain_are_found() {
        let mut requested = RequestedHosts::default();
        let names = [
            "r/a.foo.com",
            "r/b.foo.com",
            "r/foo.com",
            "r2/a.foo.com",
            "r/é.bar",
        ];
        for (index, name) in names.iter().enumerate() {
            let (route, host) = name.split_once('/').unwrap();
            requested.insert(route, host, EntryId(index as u32));
        }
        let under = |requested: &RequestedHosts, text| {
            let mut found = requested.hosts_matching("r", Domain::of(text));
            found.sort_unstable();
            found
                .into_iter()
                .map(|id| names[id.0 as usize])
                .collect::<Vec<_>>()
        };
        assert_eq!(
            under(&requested, "*.foo.com"),
            ["r/a.foo.com", "r/b.foo.com"]
        );
        assert_eq!(under(&requested, "foo.com"), ["r/foo.com"]);
        assert_eq!(under(&requested, "a.*"), ["r/a.foo.com"]);
        assert_eq!(under(&requested, "*.bar"), ["r/é.bar"]);
        assert_eq!(under(&requested, "*").len(), 4);
        requested.remove("r", "a.foo.com", EntryId(0));
        assert_eq!(under(&requested, "*.foo.com"), ["r/b.foo.com"]);
    }
}
