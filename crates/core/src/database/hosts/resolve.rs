//! From a host to what its client is given, and from a change of domains to
//! the hosts that it concerns.

use std::sync::Arc;

use super::super::content::{Choice, Content};
use super::super::entry::EntryId;
use super::super::table::{Table, Work};
use super::super::{Database, TypeId};
use super::form::{self, Shape};
use super::{Hosts, domains_of, own_domains};
use crate::hosts::{Domain, HostName};
use crate::kind;
use crate::name::Name;
use crate::params::{ParamsId, ParamsTable};
use crate::resource::{Resource, TypeUrl};

/// Why a host gets what it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostExplanation {
    /// The virtual hosts that match, the first to be preferred.
    pub considered: Vec<Considered>,
    /// What the client is given, and in which form.
    pub given: Option<(Arc<Resource>, Given)>,
}

/// A virtual host that matches a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Considered {
    /// By which of its domains.
    pub domain: String,
    /// Its name.
    pub name: Name,
    /// Whether it is for clients with these parameters.
    pub is_seen: bool,
}

/// In which form a virtual host is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// As its author wrote it.
    Whole,
    /// Without its wildcards, for something else is under one of them.
    WithoutWildcards,
    /// For this host alone: a wildcard matched it, and something else is under
    /// that.
    Narrowed,
}

/// What matched a host.
struct Match {
    owner: EntryId,
    choice: Choice,
    by_wildcard: bool,
}

impl Table {
    /// What a client sees of a host: the virtual host that has it as a domain,
    /// else the one that has it as its name or alias; in a form that hides
    /// nothing. `None` if the type has no hosts, or not all are known.
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
            return Some(self.given(id, &name, found));
        }
        let owners = self.owners(id).to_vec();
        for owner in [id].into_iter().chain(owners) {
            let choice = self.own_choice(owner, params, table, work);
            let found = Match {
                owner,
                choice,
                by_wildcard: false,
            };
            match self.given(id, &name, found) {
                Choice::Absent => {}
                choice => return Some(choice),
            }
        }
        Some(Choice::Absent)
    }

    fn given(&mut self, asked: EntryId, name: &Name, found: Match) -> Choice {
        let source = found.choice.resource();
        let given = source.and_then(|source| self.give(asked, name, source, &found));
        let given = given.map(|(given, _)| given);
        match found.choice {
            Choice::Failed(error, _) => Choice::Failed(error, given),
            _ => given.map_or(Choice::Absent, Choice::Is),
        }
    }

    /// The virtual host that a host belongs to.
    fn match_host(
        &mut self,
        name: &Name,
        params: ParamsId,
        table: &mut ParamsTable,
        work: &mut Work,
    ) -> Option<Match> {
        let name = HostName::split(name.as_str())?;
        let (route, host) = (name.route, self.hosts.as_ref()?.sought(name));
        for domain in self.hosts.as_ref()?.candidates(route, &host) {
            for owner in self.owners_of(route, domain) {
                work.entries += 1;
                let choice = self.own_choice(owner, params, table, work);
                // Variants of one virtual host may differ in their domains.
                let has_it = |r: &Arc<Resource>| r.facts().domains.contains(domain);
                if choice.resource().is_some_and(has_it) {
                    return Some(Match {
                        owner,
                        choice,
                        by_wildcard: domain.is_wildcard(),
                    });
                }
            }
        }
        None
    }

    fn owners_of(&self, route: &str, domain: Domain<'_>) -> Vec<EntryId> {
        let hosts = self.hosts.as_ref();
        hosts.map_or_else(Vec::new, |hosts| hosts.owners(&self.entries, route, domain))
    }

    /// A virtual host in the form in which it hides nothing; `None` if there is
    /// no such form.
    fn give(
        &mut self,
        asked: EntryId,
        name: &Name,
        source: &Arc<Resource>,
        found: &Match,
    ) -> Option<(Arc<Resource>, Given)> {
        let (made, given) = self.shape(asked, name, source, found)?;
        let answers = made.name == *name || made.other_names().any(|other| other == *name);
        if answers {
            return Some((made, given));
        }
        // Who asked waits until it is named.
        let forms = &mut self.hosts.as_mut()?.forms;
        let named = forms.get(asked, Shape::Named, &made, || form::named(&made, name));
        Some((named, given))
    }

    fn shape(
        &mut self,
        asked: EntryId,
        name: &Name,
        source: &Arc<Resource>,
        found: &Match,
    ) -> Option<(Arc<Resource>, Given)> {
        let domains = &source.facts().domains;
        if !found.by_wildcard && !domains.have_wildcards() {
            return Some((Arc::clone(source), Given::Whole));
        }
        let narrowed = self.narrowed_name(name);
        let hosts = self.hosts.as_mut()?;
        let alone = |domain| hosts.is_alone(&self.entries, found.owner, domain);
        if domains.iter().all(alone) {
            return Some((Arc::clone(source), Given::Whole));
        }
        let forms = &mut hosts.forms;
        if found.by_wildcard {
            let (narrowed, host) = narrowed?;
            let make = || form::narrow(source, narrowed, &host);
            let made = forms.get(asked, Shape::Narrow, source, make);
            return Some((made, Given::Narrowed));
        }
        domains.explicit().next()?;
        let place = found.owner;
        let made = forms.get(place, Shape::Explicit, source, || form::explicit(source));
        Some((made, Given::WithoutWildcards))
    }

    /// What a virtual host for one host alone is called: as it was asked for,
    /// unless an author called another so.
    fn narrowed_name(&self, asked: &Name) -> Option<(Name, String)> {
        let asked = HostName::split(asked.as_str())?;
        let host = self.hosts.as_ref()?.sought(asked);
        let name = self.unused_name(&format!("{}/{host}", asked.route));
        form::can_be_domain(&host).then_some((name, host))
    }

    /// This name, or one like it, that no author gave to anything.
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

    /// Takes note of what domains a virtual host has now, and had in `old`.
    /// Returns the hosts that are asked for and may get something else.
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
        let crowded = self.crowded_by(route, &moved, &all);
        if let Some(hosts) = &mut self.hosts {
            hosts.forget_forms(id);
            for domain in moved {
                match after.contains(&domain) {
                    true => hosts.insert(route, domain, id),
                    false => hosts.remove(route, domain, id),
                }
            }
        }
        let mut concerned = self.asked_under(route, &all);
        for (owner, wildcard, alone) in crowded {
            let hosts = self.hosts.as_deref();
            if hosts.is_some_and(|hosts| hosts.is_alone(&self.entries, owner, wildcard) != alone) {
                let own = own_domains(self.entry(owner));
                concerned.extend(self.asked_under(route, &own));
                concerned.push(owner);
            }
        }
        concerned
    }

    /// The wildcards of other virtual hosts that may be alone no longer, or
    /// again, once some domains moved; and whether they are now.
    fn crowded_by<'d>(
        &self,
        route: &str,
        moved: &[Domain<'d>],
        own: &[Domain<'d>],
    ) -> Vec<(EntryId, Domain<'d>, bool)> {
        let Some(hosts) = &self.hosts else {
            return Vec::new();
        };
        let covering = moved
            .iter()
            .flat_map(|domain| hosts.covering(route, *domain));
        let mut covering: Vec<_> = covering.filter(|domain| !own.contains(domain)).collect();
        covering.sort_unstable();
        covering.dedup();
        let owners = covering.into_iter().flat_map(|wildcard| {
            let owners = hosts.owners(&self.entries, route, wildcard).into_iter();
            owners.map(move |owner| (owner, wildcard))
        });
        owners
            .map(|(owner, wildcard)| {
                let alone = hosts.is_alone(&self.entries, owner, wildcard);
                (owner, wildcard, alone)
            })
            .collect()
    }

    /// The hosts that are asked for and that one of these domains matches.
    fn asked_under(&self, route: &str, domains: &[Domain<'_>]) -> Vec<EntryId> {
        let hosts = self
            .hosts
            .as_deref()
            .filter(|hosts| !hosts.asked.is_empty());
        let under = |hosts: &Hosts| {
            let found = domains.iter().flat_map(|d| hosts.asked.under(route, *d));
            found.collect()
        };
        hosts.map_or_else(Vec::new, under)
    }
}

impl Database {
    /// A route configuration changed: ports may count now, or no longer.
    pub(in super::super) fn note_ports(&mut self, type_id: TypeId, entry: EntryId) {
        let routes = self.table(type_id);
        if routes.url.as_str() != kind::RDS {
            return;
        }
        let (name, variants) = (routes.entry(entry).name.clone(), routes.entry(entry));
        let variants = variants.content.resources();
        let portless = !variants.is_empty() && variants.iter().all(|r| r.facts().ignores_port);
        let hosts = match self.find_type(&TypeUrl::from(kind::VHDS)) {
            Some(hosts) => hosts,
            None if !portless => return,
            None => self.type_id(&TypeUrl::from(kind::VHDS)),
        };
        let table = self.table_mut(hosts);
        let asked = table.hosts.as_mut().map(|hosts| {
            let entries = &table.entries;
            hosts.set_portless(entries, name.as_str(), portless)
        });
        for host in asked.into_iter().flatten() {
            self.tell_asking(hosts, host);
        }
    }

    /// A name under which nothing is held: the one that was asked for, if it may be.
    pub(crate) fn unused_name(&self, type_id: TypeId, asked: &Name) -> Name {
        self.table(type_id).unused_name(asked.as_str())
    }

    /// Whether a virtual host names this host itself.
    #[must_use]
    pub fn names_host(&self, type_id: TypeId, asked: &Name) -> bool {
        let table = self.table(type_id);
        let (Some(hosts), Some(name)) = (&table.hosts, HostName::split(asked.as_str())) else {
            return false;
        };
        let host = hosts.sought(name);
        let owners = table.owners_of(name.route, Domain::Exact(&host));
        !owners.is_empty()
    }

    /// Why a client with these parameters gets what it gets for a host.
    pub fn explain_host(
        &mut self,
        type_id: TypeId,
        asked: &Name,
        params: ParamsId,
    ) -> HostExplanation {
        let table = &mut self.tables[type_id.0 as usize];
        let (Some(hosts), Some(name)) = (&table.hosts, HostName::split(asked.as_str())) else {
            return HostExplanation::default();
        };
        let host = hosts.sought(name);
        let mut considered = Vec::new();
        for domain in hosts.candidates(name.route, &host) {
            for owner in table.owners_of(name.route, domain) {
                let choice = table.own_choice(owner, params, &mut self.params, &mut self.work);
                let has_it = |r: &Arc<Resource>| r.facts().domains.contains(domain);
                considered.push(Considered {
                    domain: domain.to_string(),
                    name: table.entry(owner).name.clone(),
                    is_seen: choice.resource().is_some_and(has_it),
                });
            }
        }
        let found = table.match_host(asked, params, &mut self.params, &mut self.work);
        let given = found.and_then(|found| {
            let asked_at = table.intern(asked);
            let source = found.choice.resource().cloned();
            let given = source.and_then(|source| table.give(asked_at, asked, &source, &found));
            table.tidy(asked_at);
            given
        });
        HostExplanation { considered, given }
    }
}
