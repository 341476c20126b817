//! The server's virtual hosts by their domains.

use trunkline::{Name, Resource};
use trunkline_core::database::{Database, TypeId};
use trunkline_core::hosts::HostName;

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
