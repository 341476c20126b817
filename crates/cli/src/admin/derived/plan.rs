//! The effect of a change on virtual hosts; committed if the change is made.

use std::collections::{BTreeMap, HashSet};

use trunkline::checked::Item;
use trunkline::{Change, Name, TypeUrl, kind};

use crate::admin::body::VariantId;

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
    pub(super) listed: BTreeMap<VariantId, HashSet<VariantId>>,
    /// The hosts of `removed`, each after its route.
    pub(super) lost: Vec<(VariantId, VariantId)>,
    /// Hosts that were applied without a route, or deleted by name.
    pub(super) standalone: Vec<VariantId>,
}

impl Plan {
    /// Makes a plan of a change with this mark, which has no effects yet.
    /// `part` is `None` if the change is one request.
    pub(super) fn new(mark: u64, part: Option<Part>) -> Self {
        Self {
            mark,
            part,
            ..Self::default()
        }
    }

    /// Notes the virtual hosts among these resources: each is listed by its
    /// route, or stands alone.
    pub(super) fn add_hosts(&mut self, items: &[Item]) {
        let hosts = items.iter();
        for host in hosts.filter(|item| item.type_url.as_str() == kind::VHDS) {
            let id = VariantId::of(&host.resource);
            match VariantId::route_of(host) {
                Some(route) => self.add_listed(&route, id),
                None => self.standalone.push(id),
            }
        }
    }

    /// Adds a host to those that a route lists. A route may list many, so its
    /// key is cloned for the first one only.
    fn add_listed(&mut self, route: &VariantId, host: VariantId) {
        match self.listed.get_mut(route) {
            Some(listed) => drop(listed.insert(host)),
            None => drop(self.listed.insert(route.clone(), HashSet::from([host]))),
        }
    }

    /// Returns whether a route lists any host.
    pub(super) fn lists_any(&self, route: &VariantId) -> bool {
        self.listed.contains_key(route)
    }

    /// Returns whether a route lists this host.
    pub(super) fn lists(&self, route: &VariantId, host: &VariantId) -> bool {
        let listed = self.listed.get(route);
        listed.is_some_and(|listed| listed.contains(host))
    }

    /// Plans to remove those of a route's `hosts` that the route does not list
    /// in this request.
    pub(super) fn remove_unlisted<'a>(
        &mut self,
        route: &VariantId,
        hosts: impl Iterator<Item = &'a VariantId>,
    ) {
        for host in hosts {
            if !self.lists(route, host) {
                self.remove(route, host.clone());
            }
        }
    }

    /// Plans to remove a host of a route.
    pub(super) fn remove(&mut self, route: &VariantId, host: VariantId) {
        let vhds = TypeUrl::from(kind::VHDS);
        self.removed.push(host.clone().removal(vhds));
        self.lost.push((route.clone(), host));
    }
}
