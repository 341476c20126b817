//! Domains that two virtual hosts of a body have, where a client would see both.
//!
//! The database compares with the virtual hosts that the server has.

use std::collections::HashMap;

use trunkline::{Name, Resource, kind};
use trunkline_core::database::{Database, TypeId};
use trunkline_core::hosts::{Domain, HostName};

use super::body::BodyResource;
use super::error::Detail;

/// Finds virtual hosts of a body that Envoy would refuse together. Reports each
/// at the later one of the two.
pub(super) fn conflicts(resources: &[BodyResource]) -> Vec<Detail> {
    let mut seen: HashMap<(&str, Domain<'_>), Vec<&BodyResource>> = HashMap::new();
    let mut found = Vec::new();
    let hosts = resources.iter();
    for one in hosts.filter(|one| one.type_url.as_str() == kind::VHDS) {
        let name = &one.resource.name;
        let Some(HostName { route, .. }) = HostName::split(name.as_str()) else {
            continue;
        };
        for domain in one.resource.facts().domains.iter() {
            let others = seen.entry((route, domain)).or_default();
            let other = others.iter().find(|other| share_client(one, other));
            let message = match other {
                None => {
                    others.push(one);
                    continue;
                }
                Some(other) if std::ptr::eq(*other, one) => {
                    format!("virtual host {name:?} has the domain \"{domain}\" twice; take one out")
                }
                Some(other) => format!(
                    "virtual hosts {name:?}, this one, and {:?}, at {}, both have the domain \
                     \"{domain}\"; take it out of one",
                    other.resource.name, other.place
                ),
            };
            found.push(one.place.detail(message));
        }
    }
    found
}

/// Returns whether a client could see both; an undecidable pair is refused
/// later, with the reason.
fn share_client(one: &BodyResource, other: &BodyResource) -> bool {
    let overlap = one.resource.clients().overlap(&other.resource.clients());
    matches!(overlap, Ok(Some(_)))
}

/// Returns the server's virtual hosts that have a domain of this one, for
/// whichever clients; one that has several of its domains is there for each.
pub(super) fn holders(db: &Database, vhds: TypeId, host: &Resource) -> Vec<Name> {
    let Some(HostName { route, .. }) = HostName::split(host.name.as_str()) else {
        return Vec::new();
    };
    let domains = host.facts().domains.iter();
    let holders = domains.flat_map(|domain| db.hosts_with_domain(vhds, route, domain));
    holders.collect()
}
