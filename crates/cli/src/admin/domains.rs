//! The server's virtual hosts by their domains.

use trunkline::{Name, Resource};
use trunkline_core::database::{Database, TypeId};
use trunkline_core::hosts::HostName;

/// Returns the server's virtual hosts of the same route configuration that have
/// a domain of `host`, for whichever clients. One that has several of its
/// domains is there for each, and `host` itself may be among them.
pub(super) fn holders(db: &Database, vhds: TypeId, host: &Resource) -> Vec<Name> {
    let Some(HostName { route, .. }) = HostName::split(host.name.as_str()) else {
        return Vec::new();
    };
    let domains = host.facts().domains.iter();
    let holders = domains.flat_map(|domain| db.hosts_with_domain(vhds, route, domain));
    holders.collect()
}
