//! Finds the owners of a domain, for a caller that is about to give it to
//! another virtual host.

use super::super::{Database, TypeId};
use crate::hosts::Domain;
use crate::name::Name;

impl Database {
    /// Returns the virtual hosts of a route configuration that have a domain,
    /// whichever clients they are for; none if the type has no virtual hosts.
    #[must_use]
    pub fn hosts_with_domain(&self, type_id: TypeId, route: &str, domain: Domain<'_>) -> Vec<Name> {
        let table = self.table(type_id);
        let Some(hosts) = &table.hosts else {
            return Vec::new();
        };
        let owners = hosts.owners(&table.entries, route, domain).into_iter();
        owners
            .map(|owner| table.entry(owner).name.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::change::Change;
    use crate::facts::Facts;
    use crate::hosts::Domains;
    use crate::kind::{CDS, VHDS};
    use crate::resource::Resource;

    #[test]
    fn a_domain_is_had_by_those_of_its_route_configuration() {
        let mut db = Database::new();
        let host = |name: &str| Resource {
            facts: Some(Box::new(Facts {
                domains: Domains::new(["A.com", "*.a.com"]),
                ..Facts::default()
            })),
            ..Resource::new(name.into(), "".into())
        };
        let put = |name| Change::Upsert(VHDS.into(), Arc::new(host(name)));
        db.apply(vec![put("r/a"), put("s/b")]).unwrap();
        let (vhds, cds) = (db.type_id(&VHDS.into()), db.type_id(&CDS.into()));
        for domain in ["a.com", "*.a.com"] {
            let domain = Domain::of(domain);
            assert_eq!(db.hosts_with_domain(vhds, "r", domain), ["r/a".into()]);
            assert_eq!(db.hosts_with_domain(vhds, "t", domain), []);
            assert_eq!(db.hosts_with_domain(cds, "r", domain), []);
        }
        assert_eq!(db.hosts_with_domain(vhds, "r", Domain::of("b.a.com")), []);
        db.apply(vec![Change::Remove(VHDS.into(), "r/a".into())])
            .unwrap();
        assert_eq!(db.hosts_with_domain(vhds, "r", Domain::of("a.com")), []);
    }
}
