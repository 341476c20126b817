//! Why a host gets what it gets, for people.

use std::sync::Arc;

use super::super::{Database, TypeId};
use super::resolve::{HostForm, HostMatch};
use crate::hosts::{Domain, HostName};
use crate::name::Name;
use crate::params::{Constraints, ParamsId};
use crate::resource::Resource;

/// Why a host gets what it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostExplanation {
    /// The host as domains are compared with it: in lower case, and without its
    /// port where the route configuration ignores ports.
    pub normalized: String,
    /// The virtual hosts that match, the first to be preferred.
    pub candidates: Vec<HostCandidate>,
    /// The one that it is.
    pub matched: Option<MatchedHost>,
}

/// A virtual host that matches a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCandidate {
    /// By which of its domains.
    pub domain: String,
    /// Its name.
    pub name: Name,
    /// For whom its variants are that have the domain; `None` is everybody.
    pub variants: Vec<Option<Constraints>>,
    /// Whether one is for clients with these parameters.
    pub is_seen: bool,
}

/// The virtual host of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedHost {
    /// As its author wrote it.
    pub host: Arc<Resource>,
    /// By which of its domains; `None` if it is only called so.
    pub domain: Option<String>,
    /// What the client is given, and in which form. `None` if no form of it
    /// would hide nothing.
    pub answer: Option<(Arc<Resource>, HostForm)>,
    /// The wildcard of it that would hide something, or might.
    pub hiding_wildcard: Option<String>,
}

impl Database {
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
        let sought = hosts.normalize(name);
        let mut considered = Vec::new();
        for domain in hosts.candidates(name.route, &sought) {
            let has_it = |r: &Arc<Resource>| r.facts().domains.contains(domain);
            for owner in table.domain_owners(name.route, domain) {
                let entry = table.entry(owner);
                let variants = entry.content.resources().iter().filter(|r| has_it(r));
                let variants = variants.map(|r| r.constraints.clone()).collect();
                let name = entry.name.clone();
                let choice = table.own_choice(owner, params, &mut self.params, &mut self.work);
                considered.push(HostCandidate {
                    domain: domain.to_string(),
                    name,
                    variants,
                    is_seen: choice.resource().is_some_and(has_it),
                });
            }
        }
        let by_domain = table.match_host(asked, params, &mut self.params, &mut self.work);
        let domain = by_domain.as_ref().and_then(|_| {
            let mut seen = considered.iter().filter(|one| one.is_seen);
            Some(seen.next()?.domain.clone())
        });
        let asked_at = table.intern(asked);
        let called = table.matches_by_name(asked_at, params, &mut self.params, &mut self.work);
        let mut found = by_domain.into_iter().chain(called);
        let found = found.find_map(|found: HostMatch| {
            let host = Arc::clone(found.choice.resource()?);
            let given = table.rewrite_host(asked_at, asked, &host, &found);
            let hosts = table.hosts.as_ref()?;
            let domains = host.facts().domains.iter();
            let is_crowded = |d: &Domain<'_>| !hosts.is_exclusive(&table.entries, found.owner, *d);
            let crowded = domains.filter(is_crowded).map(|d| d.to_string()).next();
            Some(MatchedHost {
                domain: domain.clone(),
                answer: given,
                hiding_wildcard: crowded,
                host,
            })
        });
        table.remove_unused(asked_at);
        HostExplanation {
            normalized: sought,
            candidates: considered,
            matched: found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::facts::Facts;
    use crate::hosts::Domains;
    use crate::kind;
    use crate::params::Params;

    fn host(name: &str, domains: &[&str], constraints: Option<&str>) -> Change {
        let facts = Facts {
            domains: Domains::new(domains),
            ..Facts::default()
        };
        let resource = Resource {
            constraints: constraints.map(|text| text.parse().unwrap()),
            facts: Some(Box::new(facts)),
            ..Resource::new(Name::new(name), "x".into())
        };
        Change::Upsert(kind::VHDS.into(), Arc::new(resource))
    }

    /// What is given, by what, in which form, and what else was looked at.
    fn explained(db: &mut Database, asked: &str, params: ParamsId) -> String {
        let hosts = db.find_type(&kind::VHDS.into()).unwrap();
        let explained = db.explain_host(hosts, &Name::new(asked), params);
        let considered = explained.candidates.iter().map(|one| {
            let sign = if one.is_seen { "" } else { "!" };
            format!("{sign}{} {}", one.domain, one.name)
        });
        let considered = considered.collect::<Vec<_>>().join(", ");
        let found = explained.matched.map(|found| {
            let given = found
                .answer
                .map(|(given, form)| format!("{} {form:?}", given.name));
            format!(
                "{} {:?} {:?} {:?}",
                found.host.name, found.domain, given, found.hiding_wildcard
            )
        });
        assert_eq!(db.check(), Ok(()));
        format!("{}: {found:?} of [{considered}]", explained.normalized).replace('\\', "")
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
        for (asked, params, expected) in table {
            assert_eq!(explained(&mut db, asked, params), expected, "{asked}");
        }
        assert_eq!(explained(&mut db, "b", none), ": None of []");
    }
}
