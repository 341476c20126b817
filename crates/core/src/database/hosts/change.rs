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

impl Table {
    /// Updates the index after the contents of a virtual host changed from
    /// `old`. Returns the requested hosts whose answer may have changed.
    pub(in super::super) fn move_domains(&mut self, id: EntryId, old: &Content) -> Vec<EntryId> {
        if self.hosts.is_none() {
            return Vec::new();
        }
        let before = old.resources().to_vec();
        let after = self.entry(id).content.resources().to_vec();
        if let Some(hosts) = &mut self.hosts {
            hosts.base.change(id, &before, &after);
        }
        let name = self.entry(id).name.clone();
        let (before, after) = (domains_of(&before), domains_of(&after));
        let Some(HostName { route, .. }) = HostName::split(name.as_str()) else {
            return Vec::new();
        };
        let mut all = [before.as_slice(), &after].concat();
        all.sort_unstable();
        all.dedup();
        let moved = all.iter().copied();
        let moved: Vec<_> = moved
            .filter(|d| before.contains(d) != after.contains(d))
            .collect();
        let affected = self.affected_wildcards(route, &moved, id);
        if let Some(hosts) = &mut self.hosts {
            hosts.forget_rewrites(id);
            for domain in moved {
                match after.contains(&domain) {
                    true => hosts.insert(route, domain, id),
                    false => hosts.remove(route, domain, id),
                }
            }
        }
        let mut affected_hosts = self.requested_matching(route, &all);
        for (owner, wildcard, exclusive) in affected {
            let hosts = self.hosts.as_deref();
            if hosts.is_some_and(|hosts| {
                hosts.is_exclusive(&self.entries, owner, wildcard) != exclusive
            }) {
                let own = own_domains(self.entry(owner));
                affected_hosts.extend(self.requested_matching(route, &own));
                affected_hosts.push(owner);
            }
        }
        affected_hosts
    }

    /// The wildcards of other virtual hosts whose exclusiveness may change with
    /// some domains, and whether they are exclusive now.
    fn affected_wildcards<'d>(
        &self,
        route: &str,
        moved: &[Domain<'d>],
        by: EntryId,
    ) -> Vec<(EntryId, Domain<'d>, bool)> {
        let Some(hosts) = &self.hosts else {
            return Vec::new();
        };
        // Virtual hosts for different clients may have the same wildcard.
        let covering = moved.iter().flat_map(|domain| {
            let same = Some(*domain).filter(|domain| domain.is_wildcard());
            hosts
                .covering_wildcards(route, *domain)
                .into_iter()
                .chain(same)
        });
        let mut covering: Vec<_> = covering.collect();
        covering.sort_unstable();
        covering.dedup();
        let owners = covering.into_iter().flat_map(|wildcard| {
            let owners = hosts.owners(&self.entries, route, wildcard).into_iter();
            let others = owners.filter(move |owner| *owner != by);
            others.map(move |owner| (owner, wildcard))
        });
        owners
            .map(|(owner, wildcard)| {
                let exclusive = hosts.is_exclusive(&self.entries, owner, wildcard);
                (owner, wildcard, exclusive)
            })
            .collect()
    }

    /// The requested hosts that one of these domains matches.
    fn requested_matching(&self, route: &str, domains: &[Domain<'_>]) -> Vec<EntryId> {
        let hosts = self
            .hosts
            .as_deref()
            .filter(|hosts| !hosts.requested.is_empty());
        let under = |hosts: &HostIndex| {
            let found = domains
                .iter()
                .flat_map(|d| hosts.requested.matching(route, *d));
            found.collect()
        };
        hosts.map_or_else(Vec::new, under)
    }
}

impl Database {
    /// Updates whether the hosts of a route configuration are matched without
    /// ports.
    pub(in super::super) fn update_portless(&mut self, type_id: TypeId, entry: EntryId) {
        let routes = self.table(type_id);
        if routes.url.as_str() != kind::RDS {
            return;
        }
        let (name, variants) = (routes.entry(entry).name.clone(), routes.entry(entry));
        let variants = variants.content.resources();
        let portless = !variants.is_empty() && variants.iter().all(|r| r.facts().ignores_port());
        let hosts = match self.find_type(&TypeUrl::from(kind::VHDS)) {
            Some(hosts) => hosts,
            None if !portless => return,
            None => self.type_id(&TypeUrl::from(kind::VHDS)),
        };
        let table = self.table_mut(hosts);
        let requested = table.hosts.as_mut().map(|hosts| {
            let entries = &table.entries;
            hosts.set_portless(entries, name.as_str(), portless)
        });
        for host in requested.into_iter().flatten() {
            self.notify_all_subscribers(hosts, host);
        }
    }
}
