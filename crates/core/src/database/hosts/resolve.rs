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
    is_by_wildcard: bool,
}

impl Table {
    /// Returns what a client gets for a host that it asks for by VHDS, on
    /// demand: the virtual host that a domain gives it, else the one that has it as its name or alias, in a form that
    /// hides no other. `None` if the type has no hosts, or if the table is a
    /// cache, which does not know the virtual hosts that it lacks.
    pub(in super::super) fn choose_host(
        &mut self,
        id: EntryId,
        params: ParamsId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) -> Option<Choice> {
        if self.hosts.is_none() || self.is_cache {
            return None;
        }

        let name = self.entry(id).name.clone();
        if let Some(host_match) = self.match_host(&name, params, params_table, work) {
            return Some(self.rewrite_choice(id, &name, host_match));
        }

        for host_match in self.matches_by_name(id, params, params_table, work) {
            match self.rewrite_choice(id, &name, host_match) {
                Choice::Absent => {}
                choice => return Some(choice),
            }
        }
        Some(Choice::Absent)
    }

    /// Returns a match for the requested name itself, and then one for each
    /// resource that has it as an alias. The client may see none of them.
    pub(super) fn matches_by_name(
        &mut self,
        id: EntryId,
        params: ParamsId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) -> Vec<HostMatch> {
        let alias_owners = self.owners(id).to_vec();
        let owners = [id].into_iter().chain(alias_owners);
        let matches = owners.map(|owner| HostMatch {
            owner,
            choice: self.own_choice(owner, params, params_table, work),
            is_by_wildcard: false,
        });
        matches.collect()
    }

    /// Replaces the resource of a match by the form in which the client gets
    /// it. A resource that has no such form is absent; an error stays.
    fn rewrite_choice(
        &mut self,
        requested_entry: EntryId,
        name: &Name,
        host_match: HostMatch,
    ) -> Choice {
        let rewritten_host = host_match.choice.resource().and_then(|source| {
            let (resource, _) = self.rewrite_host(requested_entry, name, source, &host_match)?;
            Some(resource)
        });
        match host_match.choice {
            Choice::Failed(error, _) => Choice::Failed(error, rewritten_host),
            _ => rewritten_host.map_or(Choice::Absent, Choice::Resource),
        }
    }

    /// Finds the virtual host that a domain gives a host: the domains that
    /// match it are tried in order of precedence, until the client sees a
    /// virtual host that has one. `None` if it sees none.
    pub(super) fn match_host(
        &mut self,
        name: &Name,
        params: ParamsId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) -> Option<HostMatch> {
        let (route, host) = self.split_host(name)?;

        for domain in self.hosts.as_ref()?.candidates(route, &host) {
            for owner in self.domain_owners(route, domain) {
                work.entries += 1;
                let choice = self.own_choice(owner, params, params_table, work);
                // Variants of one virtual host may differ in their domains.
                let has_domain = |host: &Arc<Resource>| host.facts().domains.contains(domain);
                if choice.resource().is_some_and(has_domain) {
                    return Some(HostMatch {
                        owner,
                        choice,
                        is_by_wildcard: domain.is_wildcard(),
                    });
                }
            }
        }
        None
    }

    /// Returns the route configuration and the normalized host of a requested
    /// name; `None` if it has no route configuration, or the type no hosts.
    pub(super) fn split_host<'n>(&self, requested_name: &'n Name) -> Option<(&'n str, String)> {
        let name = HostName::split(requested_name.as_str())?;
        let hosts = self.hosts.as_ref()?;
        Some((name.route, hosts.normalize(name)))
    }

    /// Returns the virtual hosts that have exactly this domain; none if the
    /// type has no hosts.
    pub(in super::super) fn domain_owners(&self, route: &str, domain: Domain<'_>) -> Vec<EntryId> {
        let hosts = self.hosts.as_ref();
        hosts.map_or_else(Vec::new, |hosts| hosts.owners(&self.entries, route, domain))
    }

    /// Returns the matched virtual host `source` in a form that hides no other
    /// virtual host, and that has the requested name as its name or alias.
    /// `None` if there is no such form.
    pub(super) fn rewrite_host(
        &mut self,
        requested_entry: EntryId,
        name: &Name,
        source: &Arc<Resource>,
        host_match: &HostMatch,
    ) -> Option<(Arc<Resource>, HostForm)> {
        let (host, form) = self.choose_rewrite(requested_entry, name, source, host_match)?;
        let has_name =
            host.name == *name || host.other_names().any(|other_name| other_name == *name);
        if has_name {
            return Some((host, form));
        }

        // The client waits until a resource has the name that it requested.
        let rewrites = &mut self.hosts.as_mut()?.rewrites;
        let make = || rewrite::add_alias(&host, name);
        let aliased_host = rewrites.get_or_make(requested_entry, Rewrite::WithAlias, &host, make);
        Some((aliased_host, form))
    }

    /// Returns the virtual host whole if none of its domains hides another one.
    /// Otherwise a host that a wildcard matched gets a copy for itself alone,
    /// and any other host a copy without wildcards. `None` if such a copy would
    /// have no domain. The name is not looked at: [`Self::rewrite_host`] adds
    /// the requested one.
    fn choose_rewrite(
        &mut self,
        requested_entry: EntryId,
        name: &Name,
        source: &Arc<Resource>,
        host_match: &HostMatch,
    ) -> Option<(Arc<Resource>, HostForm)> {
        let domains = &source.facts().domains;
        if !domains.have_wildcards() {
            return Some((Arc::clone(source), HostForm::Whole));
        }

        let narrowed_name = self.narrowed_name(name);
        let hosts = self.hosts.as_mut()?;
        let is_exclusive = |domain| hosts.is_exclusive(&self.entries, host_match.owner, domain);
        if domains.iter().all(is_exclusive) {
            return Some((Arc::clone(source), HostForm::Whole));
        }

        let rewrites = &mut hosts.rewrites;
        if host_match.is_by_wildcard {
            let (name, host) = narrowed_name?;
            let make = || rewrite::narrow_to_host(source, name, &host);
            let copy = rewrites.get_or_make(requested_entry, Rewrite::OneHost, source, make);
            return Some((copy, HostForm::Narrowed));
        }

        let has_exact_domain = domains.exact().next().is_some();
        has_exact_domain.then(|| {
            let make = || rewrite::remove_wildcards(source);
            let copy =
                rewrites.get_or_make(host_match.owner, Rewrite::WithoutWildcards, source, make);
            (copy, HostForm::WithoutWildcards)
        })
    }

    /// Returns the name and the only domain of a virtual host that is narrowed
    /// to one host. The name is the requested one, unless an author used it for
    /// another virtual host. `None` if the host cannot be a domain.
    fn narrowed_name(&self, requested_name: &Name) -> Option<(Name, String)> {
        let (route, host) = self.split_host(requested_name)?;
        let name = self.unused_name(&format!("{route}/{host}"));
        rewrite::can_be_domain(&host).then_some((name, host))
    }

    /// Returns this name if it has no contents, else the shortest that has none
    /// with `*` added to its end.
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
    /// Returns the requested name if it has no contents, else a longer one that
    /// has none.
    pub(crate) fn unused_name(&self, type_id: TypeId, requested_name: &Name) -> Name {
        self.table(type_id).unused_name(requested_name.as_str())
    }

    /// Returns whether a virtual host has exactly this host as a domain.
    #[must_use]
    pub fn has_exact_domain(&self, type_id: TypeId, requested: &Name) -> bool {
        let table = self.table(type_id);
        table.split_host(requested).is_some_and(|(route, host)| {
            let owners = table.domain_owners(route, Domain::Exact(&host));
            !owners.is_empty()
        })
    }

    /// Returns whether a virtual host has exactly this host as a domain, or is
    /// sent whole to a client that requests it. A client can request only as
    /// many of these as there are virtual hosts; all others are unbounded.
    #[must_use]
    pub fn is_bounded_host(&self, type_id: TypeId, requested: &Name) -> bool {
        let table = self.table(type_id);
        let (Some(hosts), Some((route, host))) = (&table.hosts, table.split_host(requested)) else {
            return false;
        };
        let is_sent_whole = |owner: &EntryId| {
            let mut domains = own_domains(table.entry(*owner)).into_iter();
            domains.all(|domain| hosts.is_exclusive(&table.entries, *owner, domain))
        };

        // The first domain that a virtual host has decides.
        for domain in hosts.candidates(route, &host) {
            let owners = table.domain_owners(route, domain);
            if !owners.is_empty() {
                return !domain.is_wildcard() || owners.iter().all(is_sent_whole);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;

    use crate::fixture::put_host;
    use crate::hosts::Domains;
    use crate::kind::{CDS, VHDS};
    use crate::params::Params;
    use crate::resource::{ErrorCode, ResourceError};

    fn host(name: &str, clients: Option<&str>, domains: &[&str]) -> Change {
        put_host(name, domains, clients, &[])
    }

    #[test]
    fn a_host_is_bounded_if_it_is_a_domain_or_gets_a_whole_virtual_host() {
        let mut db = Database::new();
        let [vhds, cds] = [VHDS, CDS].map(|url| db.type_id(&url.into()));
        db.apply(vec![
            host("r/a", None, &["a.com", "*.a.com"]),
            host("r/b", None, &["b.a.com"]),
            host("r/c", None, &["*.c.com"]),
            host("r/d1", Some("env=a"), &["*.d.com"]),
            host("r/d2", Some("env=b"), &["*.d.com"]),
        ])
        .unwrap();
        for (requested, is_exact, is_bounded) in [
            ("r/a.com", true, true),
            ("r/A.com", true, true),
            ("r/b.a.com", true, true),
            ("r/x.a.com", false, false),
            ("r/x.c.com", false, true),
            ("r/x.d.com", false, false),
            ("r/none.com", false, false),
            ("s/a.com", false, false),
            ("a.com", false, false),
        ] {
            let name = Name::new(requested);
            assert_eq!(db.has_exact_domain(vhds, &name), is_exact, "{requested}");
            assert_eq!(db.is_bounded_host(vhds, &name), is_bounded, "{requested}");
            assert!(!db.has_exact_domain(cds, &name) && !db.is_bounded_host(cds, &name));
        }
    }

    #[test]
    fn a_name_that_a_virtual_host_has_is_made_longer() {
        let mut db = Database::new();
        let vhds = db.type_id(&VHDS.into());
        let taken = ["r/a", "r/b", "r/b*"].map(|name| host(name, None, &[]));
        db.apply(taken.into()).unwrap();
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, vhds, ParamsId::EMPTY);
        db.subscribe(subscriber, &"r/requested".into(), ParamsId::EMPTY);
        for (name, unused) in [
            ("r/a", "r/a*"),
            ("r/b", "r/b**"),
            ("r/c", "r/c"),
            ("r/requested", "r/requested"),
        ] {
            assert_eq!(db.unused_name(vhds, &name.into()).as_str(), unused);
        }
    }

    #[test]
    fn a_choice_costs_the_virtual_hosts_that_have_the_domain() {
        let mut db = Database::new();
        let vhds = db.type_id(&VHDS.into());
        db.apply(vec![
            host("r/a", Some("env=a"), &["x.com"]),
            host("r/b", Some("env=b"), &["x.com"]),
            host("r/c", None, &["*.com", "y.com"]),
        ])
        .unwrap();
        for (env, visited, owner) in [("a", 1, "r/a"), ("b", 2, "r/b"), ("c", 3, "r/x.com")] {
            let params = db.intern_params(Params::new([("env", env)]).unwrap());
            let stream = db.open_stream();
            let subscriber = db.add_subscriber(stream, vhds, params);
            let entry = db.subscribe(subscriber, &"r/x.com".into(), params);
            let before = db.work().entries;
            let choice = db.choose(vhds, entry, params);
            assert_eq!(choice.resource().map(|r| r.name.as_str()), Some(owner));
            // The requested name itself counts as well.
            assert_eq!(db.work().entries - before, 1 + visited, "{env}");
        }
    }

    #[test]
    fn s61_a_host_of_a_virtual_host_with_an_error_gets_the_error() {
        let mut db = Database::new();
        let vhds = db.type_id(&VHDS.into());
        let error = Arc::new(ResourceError {
            code: ErrorCode::Unavailable,
            message: "down".into(),
        });
        let put = host("r/a", None, &["a.com", "*.a.com"]);
        let other = host("r/b", None, &["b.a.com"]);
        db.apply(vec![put, other]).unwrap();
        let fail = Change::Fail(VHDS.into(), "r/a".into(), Arc::clone(&error));
        db.apply(vec![fail]).unwrap();
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, vhds, ParamsId::EMPTY);
        let entry = db.subscribe(subscriber, &"r/a.com".into(), ParamsId::EMPTY);
        let Choice::Failed(told, Some(kept)) = db.choose(vhds, entry, ParamsId::EMPTY) else {
            panic!("the host has an error, and a virtual host that stays in use");
        };
        assert_eq!(told, error);
        assert_eq!(kept.facts().domains, Domains::new(["a.com"]));
    }

    #[test]
    fn s51_a_cache_does_not_know_the_virtual_host_of_a_host_until_it_is_authoritative() {
        let mut db = Database::cache();
        let vhds = db.type_id(&VHDS.into());
        db.apply(vec![host("r/a", None, &["a.com"])]).unwrap();
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, vhds, ParamsId::EMPTY);
        let entry = db.subscribe(subscriber, &"r/a.com".into(), ParamsId::EMPTY);
        assert_eq!(db.choose(vhds, entry, ParamsId::EMPTY), Choice::Unknown);
        db.set_authoritative();
        let choice = db.choose(vhds, entry, ParamsId::EMPTY);
        assert_eq!(choice.resource().map(|r| r.name.as_str()), Some("r/a"));
    }
}
