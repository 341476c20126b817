//! Explains the answer that a client gets for a host.

use std::sync::Arc;

use super::super::entry::EntryId;
use super::super::table::{Table, Work};
use super::super::{Database, TypeId};
use super::resolve::HostForm;
use crate::name::Name;
use crate::params::{Constraints, ParamsId, ParamsTable};
use crate::resource::Resource;

/// Why a client gets its answer for a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostExplanation {
    /// The host as it is compared with domains: in lower case, and without its
    /// port if the route configuration ignores ports.
    pub normalized: String,
    /// The virtual hosts that match, in order of precedence.
    pub candidates: Vec<HostCandidate>,
    /// The virtual host of the host.
    pub matched: Option<MatchedHost>,
}

/// A virtual host that matches a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCandidate {
    /// The domain that matches.
    pub domain: String,
    /// Its name.
    pub name: Name,
    /// The constraints of its variants that have the domain; `None` is for all
    /// clients.
    pub variants: Vec<Option<Constraints>>,
    /// Whether a client with these parameters sees one of them.
    pub is_seen: bool,
}

/// The virtual host of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedHost {
    /// The virtual host as its author wrote it.
    pub host: Arc<Resource>,
    /// The domain that matches; `None` if only the name or an alias does.
    pub domain: Option<String>,
    /// The resource that the client gets, and its form. `None` if every form
    /// would hide another virtual host.
    pub answer: Option<(Arc<Resource>, HostForm)>,
    /// The wildcard that hides, or may hide, another virtual host.
    pub hiding_wildcard: Option<String>,
}

impl Database {
    /// Explains what a client with these parameters gets for a host. The
    /// explanation is empty if the type has no hosts.
    pub fn explain_host(
        &mut self,
        type_id: TypeId,
        requested: &Name,
        params: ParamsId,
    ) -> HostExplanation {
        let table = &mut self.tables[type_id.0 as usize];
        let Some((route, normalized)) = table.split_host(requested) else {
            return HostExplanation::default();
        };

        let params_table = &mut self.params;
        let work = &mut self.work;
        let candidates = table.host_candidates(route, &normalized, params, params_table, work);
        let first_seen = candidates.iter().find(|candidate| candidate.is_seen);
        let domain = first_seen.map(|candidate| candidate.domain.clone());

        HostExplanation {
            normalized,
            candidates,
            matched: table.explain_match(requested, domain, params, params_table, work),
        }
    }
}

impl Table {
    /// Returns the virtual hosts that match a normalized host, in order of
    /// precedence, whether or not the client sees them.
    fn host_candidates(
        &mut self,
        route: &str,
        host: &str,
        params: ParamsId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) -> Vec<HostCandidate> {
        let hosts = self.hosts.as_ref();
        let domains = hosts.map_or_else(Vec::new, |hosts| hosts.candidates(route, host));

        let mut candidates = Vec::new();
        for domain in domains {
            // Variants of one virtual host may differ in their domains.
            let has_domain = |variant: &Arc<Resource>| variant.facts().domains.contains(domain);
            for owner in self.domain_owners(route, domain) {
                let choice = self.own_choice(owner, params, params_table, work);
                let entry = self.entry(owner);
                let variants = entry.content.resources().iter();
                let constraints = variants
                    .filter(|variant| has_domain(variant))
                    .map(|variant| variant.constraints.clone());
                candidates.push(HostCandidate {
                    domain: domain.to_string(),
                    name: entry.name.clone(),
                    variants: constraints.collect(),
                    is_seen: choice.resource().is_some_and(has_domain),
                });
            }
        }
        candidates
    }

    /// Explains the match of a requested host; `None` if the client sees no
    /// virtual host that matches it. `domain` is the first domain by which a
    /// virtual host that the client sees matches.
    fn explain_match(
        &mut self,
        requested_name: &Name,
        domain: Option<String>,
        params: ParamsId,
        params_table: &mut ParamsTable,
        work: &mut Work,
    ) -> Option<MatchedHost> {
        let domain_match = self.match_host(requested_name, params, params_table, work);
        let domain = domain.filter(|_| domain_match.is_some());

        // Rewritten virtual hosts are kept by entry: nobody may have subscribed
        // to this host, so the entry is for the time of the explanation.
        let entry = self.intern(requested_name);
        let name_matches = self.matches_by_name(entry, params, params_table, work);
        let mut matches = domain_match.into_iter().chain(name_matches);
        let matched = matches.find_map(|host_match| {
            let host = Arc::clone(host_match.choice.resource()?);
            Some(MatchedHost {
                domain: domain.clone(),
                answer: self.rewrite_host(entry, requested_name, &host, &host_match),
                hiding_wildcard: self.hiding_wildcard(host_match.owner, &host),
                host,
            })
        });

        self.remove_unused(entry);
        matched
    }

    /// Returns the first wildcard of a virtual host that hides, or may hide,
    /// another virtual host; `None` if all its domains are exclusive.
    fn hiding_wildcard(&self, owner: EntryId, host: &Resource) -> Option<String> {
        let hosts = self.hosts.as_ref()?;
        let mut domains = host.facts().domains.iter();
        let hiding_domain =
            domains.find(|domain| !hosts.is_exclusive(&self.entries, owner, *domain));
        hiding_domain.map(|domain| domain.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;

    use crate::fixture::put_host;

    use crate::kind;
    use crate::params::Params;

    fn host(name: &str, domains: &[&str], constraints: Option<&str>) -> Change {
        put_host(name, domains, constraints, &[])
    }

    /// The matched host, its domain, form and hiding wildcard, and the
    /// candidates.
    fn explained(db: &mut Database, requested: &str, params: ParamsId) -> String {
        let hosts = db.find_type(&kind::VHDS.into()).unwrap();
        let explained = db.explain_host(hosts, &Name::new(requested), params);
        let candidates = explained.candidates.iter().map(|one| {
            let sign = if one.is_seen { "" } else { "!" };
            format!("{sign}{} {}", one.domain, one.name)
        });
        let candidates = candidates.collect::<Vec<_>>().join(", ");
        let found = explained.matched.map(|found| {
            let answer = found
                .answer
                .map(|(answer, form)| format!("{} {form:?}", answer.name));
            format!(
                "{} {:?} {:?} {:?}",
                found.host.name, found.domain, answer, found.hiding_wildcard
            )
        });
        assert_eq!(db.check(), Ok(()));
        format!("{}: {found:?} of [{candidates}]", explained.normalized).replace('\\', "")
    }

    #[test]
    fn s36_why_a_host_gets_what_it_gets() {
        let mut db = Database::new();
        let prod = db.intern_params(Params::new([("env", "prod")]).unwrap());
        db.apply(vec![
            host("r/wild", &["foo.com", "*.foo.com"], None),
            host("r/b", &["b.foo.com"], None),
            host("r/prod", &["p.com"], Some("env=prod")),
            host("r/alone", &["*.bar.com"], None),
        ])
        .unwrap();
        let none = ParamsId::EMPTY;
        let table = [
            (
                "r/B.foo.com",
                none,
                r#"b.foo.com: Some("r/b Some("b.foo.com") Some("r/b Whole") None") of [b.foo.com r/b, *.foo.com r/wild]"#,
            ),
            (
                "r/a.foo.com",
                none,
                r#"a.foo.com: Some("r/wild Some("*.foo.com") Some("r/a.foo.com Narrowed") Some("*.foo.com")") of [*.foo.com r/wild]"#,
            ),
            (
                "r/foo.com",
                none,
                r#"foo.com: Some("r/wild Some("foo.com") Some("r/wild WithoutWildcards") Some("*.foo.com")") of [foo.com r/wild]"#,
            ),
            (
                "r/x.bar.com",
                none,
                r#"x.bar.com: Some("r/alone Some("*.bar.com") Some("r/alone Whole") None") of [*.bar.com r/alone]"#,
            ),
            ("r/p.com", none, "p.com: None of [!p.com r/prod]"),
            (
                "r/p.com",
                prod,
                r#"p.com: Some("r/prod Some("p.com") Some("r/prod Whole") None") of [p.com r/prod]"#,
            ),
            (
                "r/b",
                none,
                r#"b: Some("r/b None Some("r/b Whole") None") of []"#,
            ),
            (
                "r/*.foo.com",
                none,
                r#"*.foo.com: Some("r/wild Some("*.foo.com") None Some("*.foo.com")") of [*.foo.com r/wild]"#,
            ),
            ("r/none", none, "none: None of []"),
            ("other/b.foo.com", none, "b.foo.com: None of []"),
        ];
        for (requested, params, expected) in table {
            assert_eq!(
                explained(&mut db, requested, params),
                expected,
                "{requested}"
            );
        }
        assert_eq!(explained(&mut db, "b", none), ": None of []");
    }
}
