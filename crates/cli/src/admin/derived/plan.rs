//! What a change means for virtual hosts; to be kept if it is made.

use std::collections::{BTreeMap, HashSet};

use trunkline::{Change, Name, TypeUrl, kind};

use super::{Route, Variant};

/// One request of a change.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Part {
    /// What the change is called by the client.
    pub(in crate::admin) name: String,
    /// Its number, from zero.
    pub(in crate::admin) number: u64,
    /// Whether it is the last request of it.
    pub(in crate::admin) last: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(in crate::admin) struct Plan {
    /// Those that are gone.
    pub(in crate::admin) removed: Vec<Change>,
    /// Those that stay although they are not listed, of which route.
    pub(in crate::admin) kept: Vec<(Name, usize)>,
    pub(super) mark: u64,
    pub(super) part: Option<Part>,
    /// By route: those that it lists.
    pub(super) listed: BTreeMap<Route, HashSet<Variant>>,
    /// By route: those that it no longer has.
    pub(super) lost: Vec<(Route, Variant)>,
    /// Those that were applied on their own.
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

    /// Whether a route lists anything.
    pub(super) fn lists(&self, route: &Route) -> bool {
        self.listed.contains_key(route)
    }

    /// Whether a route lists this one.
    pub(super) fn has(&self, route: &Route, host: &Variant) -> bool {
        let listed = self.listed.get(route);
        listed.is_some_and(|listed| listed.contains(host))
    }

    /// Those of a route that are not listed are gone.
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
