//! Domains that two virtual hosts of a body have, where a client would see both.
//!
//! The database compares with the virtual hosts that the server has.

use std::collections::HashMap;

use trunkline::kind;
use trunkline_core::hosts::{Domain, HostName};

use super::body::BodyResource;
use super::error::Detail;

/// Virtual hosts that Envoy would refuse together.
pub(super) fn conflicts(given: &[BodyResource]) -> Vec<Detail> {
    let mut seen: HashMap<(&str, Domain<'_>), Vec<&BodyResource>> = HashMap::new();
    let mut found = Vec::new();
    let hosts = given.iter();
    for one in hosts.filter(|one| one.type_url.as_str() == kind::VHDS) {
        let name = &one.resource.name;
        let Some(HostName { route, .. }) = HostName::split(name.as_str()) else {
            continue;
        };
        for domain in one.resource.facts().domains.iter() {
            let others = seen.entry((route, domain)).or_default();
            let other = others.iter().find(|other| together(one, other));
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
            found.push(one.place.wrong(message));
        }
    }
    found
}

/// Whether a client could see both; an undecidable pair is refused later, with
/// the reason.
fn together(one: &BodyResource, other: &BodyResource) -> bool {
    let overlap = one.resource.clients().overlap(&other.resource.clients());
    matches!(overlap, Ok(Some(_)))
}
