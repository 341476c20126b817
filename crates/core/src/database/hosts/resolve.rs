//! Resolves a host to the resource that its client gets.

use std::sync::Arc;

use super::super::content::Choice;
use super::super::entry::EntryId;
use super::super::table::{Table, Work};
use super::super::{Database, TypeId};
use super::own_domains;
use super::rewrite::{self, Rewrite};
use crate::hosts::{Domain, HostName};
use crate::name::Name;
use crate::params::{ParamsId, ParamsTable};
use crate::resource::Resource;

/// The form in which a virtual host is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostForm {
    /// As its author wrote it.
    Whole,
    /// Without its wildcards, since another virtual host has a domain under
    /// one.
    WithoutWildcards,
    /// For this host alone: a wildcard matched it, and another virtual host has
    /// a domain under that.
    Narrowed,
}

/// A virtual host that matches a host.
pub(super) struct HostMatch {
    pub(super) owner: EntryId,
    pub(super) choice: Choice,
    by_wildcard: bool,
}

impl Table {
    /// The choice of a host for a client: the virtual host that has it as a
    /// domain, else the one that has it as its name or alias, in a form that
    /// hides nothing. `None` if the type has no hosts, or the table is a cache.
    pub(in super::super) fn choose_host(
        &mut self,
        id: EntryId,
        params: ParamsId,
        table: &mut ParamsTable,
        work: &mut Work,
    ) -> Option<Choice> {
        if self.hosts.is_none() || self.is_cache {
            return None;
        }
        let name = self.entry(id).name.clone();
        if let Some(found) = self.match_host(&name, params, table, work) {
            return Some(self.rewritten_choice(id, &name, found));
        }
        for found in self.matches_by_name(id, params, table, work) {
            match self.rewritten_choice(id, &name, found) {
                Choice::Absent => {}
                choice => return Some(choice),
            }
        }
        Some(Choice::Absent)
    }

    /// The virtual hosts that have the host as their name or alias.
    pub(super) fn matches_by_name(
        &mut self,
        id: EntryId,
        params: ParamsId,
        table: &mut ParamsTable,
        work: &mut Work,
    ) -> Vec<HostMatch> {
        let owners = self.owners(id).to_vec();
        let owners = [id].into_iter().chain(owners);
        owners
            .map(|owner| HostMatch {
                owner,
                choice: self.own_choice(owner, params, table, work),
                by_wildcard: false,
            })
            .collect()
    }

    fn rewritten_choice(&mut self, requested: EntryId, name: &Name, found: HostMatch) -> Choice {
        let source = found.choice.resource();
        let rewritten =
            source.and_then(|source| self.rewrite_host(requested, name, source, &found));
        let rewritten = rewritten.map(|(resource, _)| resource);
        match found.choice {
            Choice::Failed(error, _) => Choice::Failed(error, rewritten),
            _ => rewritten.map_or(Choice::Absent, Choice::Resource),
        }
    }

    /// The virtual host that a domain gives a host.
    pub(super) fn match_host(
        &mut self,
        name: &Name,
        params: ParamsId,
        table: &mut ParamsTable,
        work: &mut Work,
    ) -> Option<HostMatch> {
        let name = HostName::split(name.as_str())?;
        let (route, host) = (name.route, self.hosts.as_ref()?.normalize(name));
        for domain in self.hosts.as_ref()?.candidates(route, &host) {
            for owner in self.domain_owners(route, domain) {
                work.entries += 1;
                let choice = self.own_choice(owner, params, table, work);
                // Variants of one virtual host may differ in their domains.
                let has_it = |r: &Arc<Resource>| r.facts().domains.contains(domain);
                if choice.resource().is_some_and(has_it) {
                    return Some(HostMatch {
                        owner,
                        choice,
                        by_wildcard: domain.is_wildcard(),
                    });
                }
            }
        }
        None
    }

    pub(super) fn domain_owners(&self, route: &str, domain: Domain<'_>) -> Vec<EntryId> {
        let hosts = self.hosts.as_ref();
        hosts.map_or_else(Vec::new, |hosts| hosts.owners(&self.entries, route, domain))
    }

    /// A virtual host in a form that hides nothing; `None` if there is no such
    /// form.
    pub(super) fn rewrite_host(
        &mut self,
        requested: EntryId,
        name: &Name,
        source: &Arc<Resource>,
        found: &HostMatch,
    ) -> Option<(Arc<Resource>, HostForm)> {
        let (made, form) = self.choose_rewrite(requested, name, source, found)?;
        let answers = made.name == *name || made.other_names().any(|other| other == *name);
        if answers {
            return Some((made, form));
        }
        // The client waits until a resource has the name that it requested.
        let rewrites = &mut self.hosts.as_mut()?.rewrites;
        let named = rewrites.get(requested, Rewrite::WithAlias, &made, || {
            rewrite::with_alias(&made, name)
        });
        Some((named, form))
    }

    fn choose_rewrite(
        &mut self,
        requested: EntryId,
        name: &Name,
        source: &Arc<Resource>,
        found: &HostMatch,
    ) -> Option<(Arc<Resource>, HostForm)> {
        let domains = &source.facts().domains;
        if !found.by_wildcard && !domains.have_wildcards() {
            return Some((Arc::clone(source), HostForm::Whole));
        }
        let narrowed = self.narrowed_name(name);
        let hosts = self.hosts.as_mut()?;
        let exclusive = |domain| hosts.is_exclusive(&self.entries, found.owner, domain);
        if domains.iter().all(exclusive) {
            return Some((Arc::clone(source), HostForm::Whole));
        }
        let rewrites = &mut hosts.rewrites;
        if found.by_wildcard {
            let (narrowed, host) = narrowed?;
            let make = || rewrite::for_one_host(source, narrowed, &host);
            let made = rewrites.get(requested, Rewrite::OneHost, source, make);
            return Some((made, HostForm::Narrowed));
        }
        domains.exact().next()?;
        let made = rewrites.get(found.owner, Rewrite::WithoutWildcards, source, || {
            rewrite::without_wildcards(source)
        });
        Some((made, HostForm::WithoutWildcards))
    }

    /// The name of a virtual host for one host alone: the requested name,
    /// unless an author used it for another.
    fn narrowed_name(&self, requested: &Name) -> Option<(Name, String)> {
        let requested = HostName::split(requested.as_str())?;
        let host = self.hosts.as_ref()?.normalize(requested);
        let name = self.unused_name(&format!("{}/{host}", requested.route));
        rewrite::can_be_domain(&host).then_some((name, host))
    }

    /// This name, or a longer one, that has no contents.
    fn unused_name(&self, name: &str) -> Name {
        let is_taken = |name: &str| {
            let entry = self.find(name).map(|id| self.entry(id));
            entry.is_some_and(|entry| !entry.content.resources().is_empty())
        };
        let mut name = name.to_owned();
        while is_taken(&name) {
            name.push('*');
        }
        Name::new(&name)
    }
}

impl Database {
    /// A name that has no contents: the requested one, if possible.
    pub(crate) fn unused_name(&self, type_id: TypeId, requested: &Name) -> Name {
        self.table(type_id).unused_name(requested.as_str())
    }

    /// Whether a virtual host has exactly this host as a domain.
    #[must_use]
    pub fn has_exact_domain(&self, type_id: TypeId, requested: &Name) -> bool {
        let table = self.table(type_id);
        let (Some(hosts), Some(name)) = (&table.hosts, HostName::split(requested.as_str())) else {
            return false;
        };
        let host = hosts.normalize(name);
        let owners = table.domain_owners(name.route, Domain::Exact(&host));
        !owners.is_empty()
    }

    /// Whether a virtual host has exactly this host as a domain, or is sent
    /// whole to a client that requests it. A client can request only as many of
    /// these as there are virtual hosts; all others are unbounded.
    #[must_use]
    pub fn is_bounded_host(&self, type_id: TypeId, requested: &Name) -> bool {
        let table = self.table(type_id);
        let (Some(hosts), Some(name)) = (&table.hosts, HostName::split(requested.as_str())) else {
            return false;
        };
        let host = hosts.normalize(name);
        let candidates = hosts.candidates(name.route, &host).into_iter();
        let mut found = candidates.map(|domain| (domain, table.domain_owners(name.route, domain)));
        let found = found.find(|(_, owners)| !owners.is_empty());
        found.is_some_and(|(domain, owners)| {
            let exclusive = |owner: &EntryId| {
                let mut own = own_domains(table.entry(*owner)).into_iter();
                own.all(|domain| hosts.is_exclusive(&table.entries, *owner, domain))
            };
            !domain.is_wildcard() || owners.iter().all(exclusive)
        })
    }
}
