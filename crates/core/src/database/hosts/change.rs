//! Finds the requested hosts whose answer may change with the domains of a
//! virtual host.

use super::super::content::Content;
use super::super::entry::EntryId;
use super::super::table::Table;
use super::super::{Database, TypeId};
use super::{HostIndex, domains_of, own_domains};
use crate::hosts::{Domain, HostName};
use crate::kind;
use crate::resource::TypeUrl;

/// The domains of a virtual host that change. All lists are sorted.
struct DomainChange<'d> {
    /// The domains before or after the change.
    domains: Vec<Domain<'d>>,
    added: Vec<Domain<'d>>,
    removed: Vec<Domain<'d>>,
}

impl<'d> DomainChange<'d> {
    /// Compares the domains before and after a change; both lists are sorted.
    fn new(old_domains: &[Domain<'d>], new_domains: &[Domain<'d>]) -> Self {
        let mut domains = [old_domains, new_domains].concat();
        domains.sort_unstable();
        domains.dedup();

        let find_missing = |sorted_domains: &[Domain<'d>]| {
            let missing_domains = domains
                .iter()
                .filter(|domain| sorted_domains.binary_search(domain).is_err());
            missing_domains.copied().collect()
        };
        Self {
            added: find_missing(old_domains),
            removed: find_missing(new_domains),
            domains,
        }
    }
}

/// A wildcard of a virtual host, and whether it was exclusive at some time
/// ([`HostIndex::is_exclusive`]).
struct WildcardState<'d> {
    owner: EntryId,
    wildcard: Domain<'d>,
    is_exclusive: bool,
}

impl Table {
    /// Updates the index after the contents of a virtual host changed from
    /// `old`. Returns the requested hosts whose answer may have changed; none
    /// if the type has no hosts.
    pub(in super::super) fn move_domains(&mut self, id: EntryId, old: &Content) -> Vec<EntryId> {
        if self.hosts.is_none() {
            return Vec::new();
        }

        let old_variants = old.resources();
        let new_variants = self.entry(id).content.resources().to_vec();
        if let Some(hosts) = &mut self.hosts {
            hosts.base.move_host(id, old_variants, &new_variants);
        }
        let name = self.entry(id).name.clone();
        let Some(HostName { route, .. }) = HostName::split(name.as_str()) else {
            return Vec::new();
        };

        let change = DomainChange::new(&domains_of(old_variants), &domains_of(&new_variants));
        // Their states before the change are compared with those after it.
        let old_states = self.affected_wildcards(route, &change, id);
        if let Some(hosts) = &mut self.hosts {
            hosts.apply_change(route, &change, id);
        }

        let mut affected_hosts = self.requested_hosts_matching(route, &change.domains);
        affected_hosts.extend(self.hosts_of_changed_wildcards(route, &old_states));
        affected_hosts
    }

    /// Returns the wildcards of other virtual hosts whose exclusiveness may
    /// change with the domains of `changed_host`, and whether they are
    /// exclusive now.
    fn affected_wildcards<'d>(
        &self,
        route: &str,
        change: &DomainChange<'d>,
        changed_host: EntryId,
    ) -> Vec<WildcardState<'d>> {
        let Some(hosts) = &self.hosts else {
            return Vec::new();
        };

        let mut states = Vec::new();
        for wildcard in hosts.wildcards_affected_by(route, change) {
            let owners = hosts.owners(&self.entries, route, wildcard).into_iter();
            for owner in owners.filter(|owner| *owner != changed_host) {
                states.push(WildcardState {
                    owner,
                    wildcard,
                    is_exclusive: hosts.is_exclusive(&self.entries, owner, wildcard),
                });
            }
        }
        states
    }

    /// Returns the virtual hosts whose wildcards are exclusive now and were not
    /// before, or the reverse, and the requested hosts that they match: such a
    /// virtual host is sent in another form.
    fn hosts_of_changed_wildcards(
        &self,
        route: &str,
        old_states: &[WildcardState<'_>],
    ) -> Vec<EntryId> {
        let Some(hosts) = &self.hosts else {
            return Vec::new();
        };
        let mut affected_hosts = Vec::new();
        for state in old_states {
            let is_exclusive = hosts.is_exclusive(&self.entries, state.owner, state.wildcard);
            if is_exclusive != state.is_exclusive {
                let domains = own_domains(self.entry(state.owner));
                affected_hosts.extend(self.requested_hosts_matching(route, &domains));
                affected_hosts.push(state.owner);
            }
        }
        affected_hosts
    }

    /// Returns the requested hosts of a route configuration that one of these
    /// domains matches. A host that two of them match is there twice.
    fn requested_hosts_matching(&self, route: &str, domains: &[Domain<'_>]) -> Vec<EntryId> {
        let Some(hosts) = &self.hosts else {
            return Vec::new();
        };
        if hosts.requested.is_empty() {
            return Vec::new();
        }
        let matching_hosts = domains
            .iter()
            .flat_map(|domain| hosts.requested.hosts_matching(route, *domain));
        matching_hosts.collect()
    }
}

impl HostIndex {
    /// Returns the wildcards of a route configuration whose exclusiveness may
    /// change, sorted: those that cover a domain that is added or removed, and
    /// that domain itself if it is one, since virtual hosts for different
    /// clients may have the same wildcard.
    fn wildcards_affected_by<'d>(&self, route: &str, change: &DomainChange<'d>) -> Vec<Domain<'d>> {
        let mut wildcards = Vec::new();
        for domain in change.added.iter().chain(&change.removed) {
            wildcards.extend(self.covering_wildcards(route, *domain));
            if domain.is_wildcard() {
                wildcards.push(*domain);
            }
        }
        wildcards.sort_unstable();
        wildcards.dedup();
        wildcards
    }

    /// Updates the domains of a virtual host, and forgets its rewritten copies,
    /// which are of its old contents.
    fn apply_change(&mut self, route: &str, change: &DomainChange<'_>, owner: EntryId) {
        self.forget_rewrites(owner);
        for domain in &change.removed {
            self.remove(route, *domain, owner);
        }
        for domain in &change.added {
            self.insert(route, *domain, owner);
        }
    }
}

impl Database {
    /// Updates whether the hosts of a route configuration are matched without
    /// ports, after its contents changed: they are if all its variants say so.
    /// If that changes, the subscribers of its requested hosts are notified.
    /// Entries of other types are ignored.
    pub(in super::super) fn update_portless(&mut self, type_id: TypeId, entry: EntryId) {
        let routes = self.table(type_id);
        if routes.url.as_str() != kind::RDS {
            return;
        }
        let route = routes.entry(entry);
        let name = route.name.clone();
        let variants = route.content.resources();
        let all_ignore_ports = variants
            .iter()
            .all(|variant| variant.facts().ignores_port());
        let is_portless = !variants.is_empty() && all_ignore_ports;

        let vhds_id = match self.find_type(&TypeUrl::from(kind::VHDS)) {
            Some(id) => id,
            // Hosts are matched with ports unless a route says otherwise.
            None if !is_portless => return,
            None => self.type_id(&TypeUrl::from(kind::VHDS)),
        };
        let table = self.table_mut(vhds_id);
        let Some(index) = &mut table.hosts else {
            return;
        };
        for host in index.set_portless(&table.entries, name.as_str(), is_portless) {
            self.notify_all_subscribers(vhds_id, host);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::change::Change;
    use crate::facts::{Facts, RareFacts};
    use crate::hosts::Domains;
    use crate::kind::{RDS, VHDS};
    use crate::params::ParamsId;
    use crate::resource::Resource;

    fn route(clients: Option<&str>, ignores_port: bool) -> Change {
        let rare = RareFacts {
            ignores_port,
            ..RareFacts::default()
        };
        let facts = Facts {
            rare: rare.boxed(),
            ..Facts::default()
        };
        let route = Resource {
            constraints: clients.map(|text| text.parse().unwrap()),
            facts: Some(Box::new(facts)),
            ..Resource::new("r".into(), "x".into())
        };
        Change::Upsert(RDS.into(), Arc::new(route))
    }

    #[test]
    fn s36_hosts_match_without_ports_while_all_variants_of_their_route_say_so() {
        let mut db = Database::new();
        db.apply(vec![route(None, false)]).unwrap();
        // A route configuration that needs no index makes none.
        assert_eq!(db.find_type(&VHDS.into()), None);
        let host = Resource {
            facts: Some(Box::new(Facts {
                domains: Domains::new(["a.com"]),
                ..Facts::default()
            })),
            ..Resource::new("r/a".into(), "x".into())
        };
        db.apply(vec![Change::Upsert(VHDS.into(), Arc::new(host))])
            .unwrap();
        let vhds = db.type_id(&VHDS.into());
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, vhds, ParamsId::EMPTY);
        db.subscribe(subscriber, &"r/a.com:80".into(), ParamsId::EMPTY);
        let remove = || Change::Remove(RDS.into(), "r".into());
        for (changes, is_portless, is_notified) in [
            (vec![route(None, true)], true, true),
            (vec![route(None, true)], true, false),
            (vec![remove()], false, true),
            (
                vec![route(Some("env=a"), true), route(Some("env=b"), false)],
                false,
                false,
            ),
            (vec![route(Some("env=b"), true)], true, true),
        ] {
            db.apply(changes).unwrap();
            let matches = db.has_exact_domain(vhds, &"r/a.com:80".into());
            assert_eq!(matches, is_portless);
            assert!(db.has_exact_domain(vhds, &"r/a.com".into()));
            let dirty = db.take_dirty(subscriber, usize::MAX);
            assert_eq!(!dirty.is_empty(), is_notified);
            assert_eq!(db.check(), Ok(()));
        }
    }

    #[test]
    fn s36_a_route_that_ignores_ports_may_come_before_its_hosts() {
        let mut db = Database::new();
        db.apply(vec![route(None, true)]).unwrap();
        let vhds = db.find_type(&VHDS.into()).unwrap();
        let normalized = db.explain_host(vhds, &"r/A.com:80".into(), ParamsId::EMPTY);
        assert_eq!(normalized.normalized, "a.com");
    }
}
