//! No client may find two virtual hosts by one domain: Envoy would reject both.

use std::sync::Arc;

use hashbrown::HashTable;

use super::super::apply::{ApplyError, Draft, Drafts, seen_together};
use super::super::table::Table;
use super::super::{Database, TypeId};
use super::{domains_of, spread};
use crate::hosts::{Domain, HostName};
use crate::name::Name;
use crate::resource::Resource;

/// A domain of one of the virtual hosts that a transaction brings.
struct New {
    hash: u32,
    draft: u32,
}

type Drafted<'d> = (&'d (TypeId, Name), &'d Draft);

impl Database {
    /// Refuses virtual hosts of which a client could find two by one domain.
    /// Costs what is new, not what there is.
    pub(in super::super) fn check_domains(&self, drafts: &Drafts) -> Result<(), ApplyError> {
        let hosts = |((type_id, _), draft): &Drafted<'_>| {
            self.table(*type_id).hosts.is_some() && !draft.resources.is_empty()
        };
        let new: Vec<Drafted<'_>> = drafts.iter().filter(hosts).collect();
        let mut seen: HashTable<New> = HashTable::with_capacity(2 * new.len());
        for (place, (key, draft)) in new.iter().enumerate() {
            let (type_id, name) = key;
            let Some(HostName { route, .. }) = HostName::split(name.as_str()) else {
                continue;
            };
            let table = self.table(*type_id);
            for domain in domains_of(&draft.resources) {
                let hash = table.hosts.as_ref().map_or(0, |h| h.hash(route, domain));
                let earlier = seen.iter_hash(spread(hash)).filter(|n| n.hash == hash);
                for ((other_type, other), draft_of_other) in earlier.map(|n| new[n.draft as usize])
                {
                    let its = HostName::split(other.as_str()).map(|name| name.route);
                    if other_type == type_id && its == Some(route) {
                        let (a, b) = (
                            (other, &*draft_of_other.resources),
                            (name, &*draft.resources),
                        );
                        exclude(route, domain, a, b)?;
                    }
                }
                let held = held_beside(table, *type_id, route, domain, drafts);
                for (other, resources) in held {
                    exclude(route, domain, (other, resources), (name, &draft.resources))?;
                }
                let draft = place as u32;
                seen.insert_unique(spread(hash), New { hash, draft }, |n| spread(n.hash));
            }
        }
        Ok(())
    }
}

/// The virtual hosts that have a domain and that a transaction leaves alone.
fn held_beside<'t>(
    table: &'t Table,
    type_id: TypeId,
    route: &str,
    domain: Domain<'_>,
    drafts: &Drafts,
) -> Vec<(&'t Name, &'t [Arc<Resource>])> {
    let Some(hosts) = &table.hosts else {
        return Vec::new();
    };
    let owners = hosts.owners(&table.entries, route, domain).into_iter();
    owners
        .map(|owner| table.entry(owner))
        .filter(|entry| !drafts.contains_key(&(type_id, entry.name.clone())))
        .map(|entry| (&entry.name, entry.content.resources()))
        .collect()
}

fn exclude(
    route: &str,
    domain: Domain<'_>,
    (first, some): (&Name, &[Arc<Resource>]),
    (second, others): (&Name, &[Arc<Resource>]),
) -> Result<(), ApplyError> {
    let has_it = |r: &&Arc<Resource>| r.facts().domains.contains(domain);
    for a in some.iter().filter(has_it) {
        for b in others.iter().filter(has_it) {
            if let Some(witness) = seen_together(second, a, b)? {
                return Err(ApplyError::Domain {
                    route: route.to_owned(),
                    domain: domain.to_string(),
                    first: first.clone(),
                    second: second.clone(),
                    witness,
                });
            }
        }
    }
    Ok(())
}
