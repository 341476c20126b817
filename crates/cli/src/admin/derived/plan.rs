//! The effect of a change on virtual hosts; to be kept if it is made.

use std::collections::{BTreeMap, HashSet};

use trunkline::{Change, Name, TypeUrl, kind};

use super::{Route, Variant};

/// One request of a change.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Part {
    /// The client's name for the change.
    pub(in crate::admin) name: String,
    /// The index of the request.
    pub(in crate::admin) number: u64,
    /// Whether it is the last request of it.
    pub(in crate::admin) last: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(in crate::admin) struct Plan {
    /// Removals of hosts.
    pub(in crate::admin) removed: Vec<Change>,
    /// The number of hosts of a route that stay although they are not listed.
    pub(in crate::admin) kept: Vec<(Name, usize)>,
    pub(super) mark: u64,
    pub(super) part: Option<Part>,
    /// The hosts that each route lists.
    pub(super) listed: BTreeMap<Route, HashSet<Variant>>,
    /// The hosts that each route no longer has.
    pub(super) lost: Vec<(Route, Variant)>,
    /// Hosts that were applied on their own.
    pub(super) own: Vec<Variant>,
}

impl Plan {
    pub(super) fn new(mark: u64, part: Option<Part>) -> Self {
        Self {
            mark,
            part,
            ..Self::default()
        }
    }

    pub(super) fn list(&mut self, route: &Route, host: Variant) {
        match self.listed.get_mut(route) {
            Some(listed) => drop(listed.insert(host)),
            None => drop(self.listed.insert(route.clone(), HashSet::from([host]))),
        }
    }

    /// Whether a route lists any host.
    pub(super) fn lists(&self, route: &Route) -> bool {
        self.listed.contains_key(route)
    }

    /// Whether a route lists this host.
    pub(super) fn has(&self, route: &Route, host: &Variant) -> bool {
        let listed = self.listed.get(route);
        listed.is_some_and(|listed| listed.contains(host))
    }

    /// Removes the hosts of a route that are not listed.
    pub(super) fn lose_unlisted<'a>(
        &mut self,
        route: &Route,
        hosts: impl Iterator<Item = &'a Variant>,
    ) {
        for host in hosts {
            if !self.has(route, host) {
                self.lose(route, host.clone());
            }
        }
    }

    pub(super) fn lose(&mut self, route: &Route, host: Variant) {
        let vhds = TypeUrl::from(kind::VHDS);
        let (name, constraints) = host.clone();
        let change = Change::RemoveVariant(vhds, name, constraints);
        self.removed.push(change);
        self.lost.push((route.clone(), host));
    }
}
