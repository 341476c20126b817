//! The index of domains, which finds the virtual host of a host. It has every
//! domain of every virtual host by route configuration, so that a lookup costs
//! the same for a thousand hosts and for a million.
//!
//! ```text
//!   route ─▶ the lengths of its wildcards ─┐
//!   (route, domain) ─▶ virtual hosts ◀─────┴── a host, by precedence
//!   (route, .label.suffix) ─▶ the number of domains under it
//!   route / tsoh ─▶ requested hosts, those with a common suffix together
//! ```

mod base;
mod change;
mod explain;
mod owners;
mod requested;
mod resolve;
mod rewrite;
mod route_domains;
mod suffix_counts;

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet};

use super::entry::{Entry, EntryId};
use super::shards::Shards;
use super::slab::Slab;
use crate::hosts::{Domain, HostName, strip_port};
use crate::resource::Resource;
use base::BaseSets;
pub use explain::{HostCandidate, HostExplanation, MatchedHost};
use requested::RequestedHosts;
pub use resolve::HostForm;
use rewrite::RewrittenHosts;
use route_domains::RouteDomains;
use suffix_counts::SuffixCounts;

/// The index of domains.
#[derive(Debug, Default)]
pub(super) struct HostIndex {
    hasher: DefaultHashBuilder,
    /// Every domain of every virtual host, once for each of them.
    domains: Shards<DomainEntry>,
    routes: HashMap<Box<str>, RouteDomains>,
    suffix_counts: SuffixCounts,
    base: BaseSets,
    /// Route configurations that ignore the port when they match hosts.
    portless: HashSet<Box<str>>,
    pub(super) requested: RequestedHosts,
    rewrites: RewrittenHosts,
}

/// One domain of one virtual host: eight bytes, since there are millions.
#[derive(Clone, Copy, Debug)]
struct DomainEntry {
    hash: u32,
    owner: EntryId,
}

impl HostIndex {
    /// Adds a domain of a virtual host. The caller adds each domain once,
    /// however many variants have it.
    pub(super) fn insert(&mut self, route: &str, domain: Domain<'_>, owner: EntryId) {
        let hash = self.hash(route, domain);
        let item = DomainEntry { hash, owner };
        self.domains
            .insert(spread(hash), item, |item| spread(item.hash));

        // The route's name is copied only for its first domain.
        if !self.routes.contains_key(route) {
            self.routes.insert(route.into(), RouteDomains::default());
        }
        if let Some(domains) = self.routes.get_mut(route) {
            domains.add(domain);
        }
        self.suffix_counts.add(route, domain);
    }

    /// Removes a domain of a virtual host, and its counts. One that is not
    /// there is ignored.
    pub(super) fn remove(&mut self, route: &str, domain: Domain<'_>, owner: EntryId) {
        let hash = self.hash(route, domain);
        let is_match = |item: &DomainEntry| item.hash == hash && item.owner == owner;
        if self.domains.remove(spread(hash), is_match).is_none() {
            return;
        }

        self.suffix_counts.remove(route, domain);
        if let Some(domains) = self.routes.get_mut(route) {
            domains.remove(domain);
            if domains.domains == 0 {
                self.routes.remove(route);
            }
        }
    }

    /// Returns the virtual hosts of a route configuration that have exactly
    /// this domain, sorted. Other domains with the same hash are left out.
    pub(super) fn owners(
        &self,
        entries: &Slab<Entry>,
        route: &str,
        domain: Domain<'_>,
    ) -> Vec<EntryId> {
        let hash = self.hash(route, domain);
        let items = self.domains.iter_hash(spread(hash));
        let candidates = items.filter(|item| item.hash == hash);
        let is_owner = |id: &EntryId| {
            let entry = entries.get(id.0);
            entry.is_some_and(|entry| has_domain(entry, route, domain))
        };

        let mut owners: Vec<_> = candidates.map(|item| item.owner).filter(is_owner).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// Returns the domains that may match a host, in order of precedence: the
    /// host itself, then suffixes, prefixes and `*`, the longest first.
    /// Wildcards have lengths that occur in the route configuration; not all of
    /// them need have an owner.
    pub(super) fn candidates<'h>(&self, route: &str, host: &'h str) -> Vec<Domain<'h>> {
        let Some(route) = self.routes.get(route) else {
            return Vec::new();
        };
        // A wildcard stands for at least one character.
        let shorter_lengths = |counts: &BTreeMap<usize, usize>| -> Vec<usize> {
            let shorter_counts = counts.range(..host.len()).rev();
            shorter_counts.map(|(length, _)| *length).collect()
        };

        let mut candidates = vec![Domain::Exact(host)];
        for length in shorter_lengths(&route.suffixes) {
            let suffix = host.get(host.len() - length..);
            candidates.extend(suffix.map(Domain::Suffix));
        }
        for length in shorter_lengths(&route.prefixes) {
            let prefix = host.get(..length);
            candidates.extend(prefix.map(Domain::Prefix));
        }
        candidates.extend((route.any > 0).then_some(Domain::Any));
        candidates
    }

    /// Returns whether a virtual host can be sent with this domain of its own
    /// as it is: no other virtual host has a domain under it, so it hides
    /// nothing. A wildcard counts as not exclusive if that is not known.
    pub(super) fn is_exclusive(
        &self,
        entries: &Slab<Entry>,
        owner: EntryId,
        domain: Domain<'_>,
    ) -> bool {
        let Some(entry) = entries.get(owner.0) else {
            return false;
        };

        let Some(HostName { route, .. }) = HostName::split(entry.name.as_str()) else {
            return false;
        };

        let domains = own_domains(entry);
        match domain {
            Domain::Exact(_) => true,
            Domain::Any => {
                let total = self.routes.get(route).map_or(0, |counts| counts.domains);
                total == domains.len()
            }
            Domain::Suffix(text) if text.starts_with('.') => {
                let covered_domains = domains
                    .iter()
                    .filter(|domain| suffix_counts::is_under(**domain, text));
                self.suffix_counts.count(route, text) == covered_domains.count()
            }
            // Domains under a part of a label are not counted, and every suffix
            // has precedence over a prefix: either may hide one.
            Domain::Suffix(_) | Domain::Prefix(_) => false,
        }
    }

    /// Returns the wildcards whose exclusiveness may change when this domain is
    /// added or removed: the suffixes at a label, and `*`, that are in the
    /// index and cover it.
    pub(super) fn covering_wildcards<'d>(
        &self,
        route: &str,
        domain: Domain<'d>,
    ) -> Vec<Domain<'d>> {
        let (Domain::Exact(text) | Domain::Suffix(text) | Domain::Prefix(text)) = domain else {
            return Vec::new();
        };

        let mut wildcards = Vec::new();
        // No suffix covers a prefix.
        if let Some(counts) = self.routes.get(route).filter(|_| !domain.is_prefix()) {
            let lengths = counts.suffixes.keys();
            let tails = lengths.filter_map(|length| text.get(text.len().checked_sub(*length)?..));
            let label_tails = tails.filter(|tail| tail.starts_with('.'));
            wildcards.extend(label_tails.map(Domain::Suffix));
        }
        wildcards.push(Domain::Any);

        wildcards.retain(|wildcard| *wildcard != domain && self.has_hash_of(route, *wildcard));
        wildcards
    }

    /// Returns whether the index has a domain, or another with the same hash.
    fn has_hash_of(&self, route: &str, domain: Domain<'_>) -> bool {
        let hash = self.hash(route, domain);
        let mut items = self.domains.iter_hash(spread(hash));
        items.any(|item| item.hash == hash)
    }

    /// Returns a host as its route configuration matches it: in lower case, and
    /// without its port if the route configuration ignores ports.
    pub(super) fn normalize(&self, name: HostName<'_>) -> String {
        let is_portless = self.portless.contains(name.route);
        let host = if is_portless {
            strip_port(name.host)
        } else {
            name.host
        };
        host.to_ascii_lowercase()
    }

    /// Adds a host that has a subscriber. A name without a route configuration
    /// is no host, and is ignored.
    pub(super) fn add_requested(&mut self, name: &str, entry: EntryId) {
        if let Some(name) = HostName::split(name) {
            let host = self.normalize(name);
            self.requested.insert(name.route, &host, entry);
        }
    }

    /// Removes a host that has no subscriber any more, and forgets the virtual
    /// hosts that were rewritten for it.
    pub(super) fn remove_requested(&mut self, name: &str, entry: EntryId) {
        if let Some(name) = HostName::split(name) {
            let host = self.normalize(name);
            self.requested.remove(name.route, &host, entry);
        }
        self.forget_rewrites(entry);
    }

    /// Sets whether a route configuration ignores ports. If that changes, its
    /// requested hosts are normalized in another way: they are removed and
    /// added again, and returned.
    pub(super) fn set_portless(
        &mut self,
        entries: &Slab<Entry>,
        route: &str,
        is_portless: bool,
    ) -> Vec<EntryId> {
        if self.portless.contains(route) == is_portless {
            return Vec::new();
        }
        let requested_hosts = self.requested.hosts_matching(route, Domain::Any);
        let with_name = |id: &EntryId| {
            let entry = entries.get(id.0)?;
            Some((entry.name.as_str(), *id))
        };

        for (name, id) in requested_hosts.iter().filter_map(with_name) {
            self.remove_requested(name, id);
        }
        if is_portless {
            self.portless.insert(route.into());
        } else {
            self.portless.remove(route);
        }
        for (name, id) in requested_hosts.iter().filter_map(with_name) {
            self.add_requested(name, id);
        }
        requested_hosts
    }

    /// Forgets the virtual hosts that were rewritten for a requested host, or
    /// from a virtual host.
    pub(super) fn forget_rewrites(&mut self, entry: EntryId) {
        self.rewrites.forget(entry);
    }

    /// Returns the number of domains of all virtual hosts, and that of
    /// requested hosts.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.domains.len(), self.requested.entries().count())
    }

    /// Returns the hash by which a domain of a route configuration is found.
    pub(super) fn hash(&self, route: &str, domain: Domain<'_>) -> u32 {
        self.hasher.hash_one((route, domain)) as u32
    }
}

/// Spreads a short hash over all bits of a long one.
pub(super) fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns whether an entry is a virtual host of a route configuration, and one
/// of its variants has exactly this domain.
fn has_domain(entry: &Entry, route: &str, domain: Domain<'_>) -> bool {
    let entry_route = HostName::split(entry.name.as_str()).map(|name| name.route);
    let mut variants = entry.content.resources().iter();
    entry_route == Some(route) && variants.any(|variant| variant.facts().domains.contains(domain))
}

/// Returns the domains of all variants of a virtual host, sorted, without
/// repetition.
pub(super) fn own_domains(entry: &Entry) -> Vec<Domain<'_>> {
    domains_of(entry.content.resources())
}

/// Returns the domains of some variants, sorted, without repetition.
pub(super) fn domains_of(variants: &[Arc<Resource>]) -> Vec<Domain<'_>> {
    let mut domains = Vec::new();
    for variant in variants {
        domains.extend(variant.facts().domains.iter());
    }
    domains.sort_unstable();
    domains.dedup();
    domains
}

#[cfg(test)]
mod tests {
    use super::super::{Database, TypeId};
    use super::*;
    use crate::change::Change;

    use crate::fixture::put_host;

    use crate::kind::VHDS;

    /// Tables tell most keys apart by the highest bits of their hashes.
    #[test]
    fn short_hashes_differ_in_their_highest_bits() {
        let highest = (0..1000).map(|hash| spread(hash) >> 57);
        let highest: std::collections::BTreeSet<u64> = highest.collect();
        assert_eq!(highest.len(), 128);
    }

    fn host(name: &str, domains: &[&str]) -> Change {
        put_host(name, domains, None, &[])
    }

    fn database(hosts: Vec<Change>) -> (Database, TypeId) {
        let mut db = Database::new();
        db.apply(hosts).unwrap();
        let vhds = db.type_id(&VHDS.into());
        (db, vhds)
    }

    fn remove(db: &mut Database, name: &str) {
        db.apply(vec![Change::Remove(VHDS.into(), name.into())])
            .unwrap();
    }

    fn texts(domains: Vec<Domain<'_>>) -> Vec<String> {
        domains.into_iter().map(|d| d.to_string()).collect()
    }

    #[test]
    fn a_wildcard_is_a_candidate_while_a_virtual_host_has_one_of_its_length() {
        let (mut db, vhds) = database(vec![
            host("r/a", &["*.foo.com", "x.*", "*"]),
            host("r/b", &["*.bar.com"]),
            host("r/c", &["c.com"]),
        ]);
        let candidates = |db: &Database| {
            let index = db.table(vhds).hosts.as_ref().unwrap();
            texts(index.candidates("r", "x.foo.com"))
        };
        assert_eq!(candidates(&db), ["x.foo.com", "*.foo.com", "x.*", "*"]);
        let index = db.table(vhds).hosts.as_ref().unwrap();
        let longer = texts(index.candidates("r", "long.foo.com"));
        assert_eq!(longer, ["long.foo.com", "*.foo.com", "lo*", "*"]);
        remove(&mut db, "r/a");
        assert_eq!(candidates(&db), ["x.foo.com", "*.foo.com"]);
        remove(&mut db, "r/b");
        assert_eq!(candidates(&db), ["x.foo.com"]);
        remove(&mut db, "r/c");
        assert_eq!(candidates(&db), [""; 0]);
        let index = db.table(vhds).hosts.as_ref().unwrap();
        assert!(index.routes.is_empty());
    }

    #[test]
    fn a_wildcard_is_exclusive_while_no_other_virtual_host_has_a_domain_under_it() {
        let (mut db, vhds) = database(vec![
            host("r/any", &["*", "own.com"]),
            host(
                "r/wild",
                &["*.foo.com", "own.foo.com", "*-x.foo.com", "p.*"],
            ),
            host("r/b", &["b.foo.com"]),
            host("s/other", &["c.foo.com"]),
        ]);
        let exclusive = |db: &Database, owner: &str, domain: &str| {
            let table = db.table(vhds);
            let index = table.hosts.as_ref().unwrap();
            let owner = table.find(owner).unwrap();
            index.is_exclusive(&table.entries, owner, Domain::of(domain))
        };
        assert!(!exclusive(&db, "r/any", "*"));
        assert!(exclusive(&db, "r/any", "own.com"));
        assert!(!exclusive(&db, "r/wild", "*.foo.com"));
        remove(&mut db, "r/b");
        assert!(exclusive(&db, "r/wild", "*.foo.com"));
        assert!(exclusive(&db, "r/wild", "own.foo.com"));
        assert!(!exclusive(&db, "r/wild", "*-x.foo.com"));
        assert!(!exclusive(&db, "r/wild", "p.*"));
        assert!(!exclusive(&db, "r/any", "*"));
        remove(&mut db, "r/wild");
        assert!(exclusive(&db, "r/any", "*"));
    }

    #[test]
    fn the_wildcards_over_a_domain_are_those_that_a_virtual_host_has() {
        let (mut db, vhds) = database(vec![
            host("r/a", &["*.foo.com", "*.net", "*-foo.com", "x.*"]),
            host("r/any", &["*"]),
        ]);
        let covering = |db: &Database, domain| {
            let index = db.table(vhds).hosts.as_ref().unwrap();
            texts(index.covering_wildcards("r", Domain::of(domain)))
        };
        assert_eq!(covering(&db, "a.foo.com"), ["*.foo.com", "*"]);
        assert_eq!(covering(&db, "*.a.foo.com"), ["*.foo.com", "*"]);
        assert_eq!(covering(&db, "*.foo.com"), ["*"]);
        assert_eq!(covering(&db, "a-foo.com"), ["*"]);
        assert_eq!(covering(&db, "a.net.*"), ["*"]);
        assert_eq!(covering(&db, "*"), [""; 0]);
        remove(&mut db, "r/any");
        assert_eq!(covering(&db, "a.foo.com"), ["*.foo.com"]);
        assert_eq!(covering(&db, "a.com"), [""; 0]);
    }

    #[test]
    fn other_domains_with_the_same_hash_are_left_out() {
        let (mut db, vhds) = database(vec![
            host("r/a", &["a.com"]),
            host("r/b", &["b.com"]),
            host("s/c", &["a.com"]),
        ]);
        let [a, b, c] = ["r/a", "r/b", "s/c"].map(|name| db.find(vhds, &name.into()).unwrap());
        let table = db.table_mut(vhds);
        let index = table.hosts.as_mut().unwrap();
        // As if the hash of their domains were that of `a.com` of `r`.
        index.insert("r", Domain::of("a.com"), b);
        index.insert("r", Domain::of("a.com"), c);
        let owners = index.owners(&table.entries, "r", Domain::of("a.com"));
        assert_eq!(owners, [a]);
    }

    #[test]
    fn domains_differ_in_their_hashes() {
        let index = HostIndex::default();
        let hosts: Vec<_> = (0..1000).map(|nth| format!("{nth}.com")).collect();
        let hashes = hosts.iter().map(|host| index.hash("r", Domain::of(host)));
        let hashes: HashSet<u32> = hashes.collect();
        assert!(hashes.len() > 990);
    }
}
