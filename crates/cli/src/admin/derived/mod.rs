//! Tracks the virtual hosts that came with a route configuration, so that they
//! are removed with it.
//!
//! A route configuration with `vhds` that is applied with virtual hosts in it
//! is their author: applied again, those that it no longer lists are removed;
//! deleted, all of them. A virtual host that was applied on its own belongs to
//! none. The last author of a name counts.
//!
//! Each is marked with the change that last had it, so that many requests can
//! make one change ([`Part`]): at the end, a host with an older mark is one
//! that none of them had.

mod plan;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use trunkline::checked::{Document, Item};
use trunkline::{Name, Server, TypeUrl, kind};
use trunkline_core::database::{Database, TypeId};

pub(super) use self::plan::{Part, Plan};
use super::body::VariantId;
use super::domains;

/// Open changes that are remembered; the oldest is dropped.
const MOST_OPEN: usize = 16;

/// The hosts of a route configuration, each with the mark of the last change
/// that had it.
type Marked = HashMap<VariantId, u64>;

/// Virtual hosts by the route configurations that are their authors. See the
/// module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    hosts: BTreeMap<VariantId, Marked>,
    /// By the name that a client gave each.
    open: HashMap<String, OpenChange>,
    /// The mark of the last change.
    last: u64,
}

/// A change of several requests, of which the last is still to come.
#[derive(Clone, Debug, Default)]
struct OpenChange {
    mark: u64,
    /// The route configurations that listed hosts so far.
    routes: BTreeSet<VariantId>,
}

/// A request of a change whose first request is not known any more.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing is known of the first parts of this change; it was given up, or the server was \
     started again: apply all of it again"
)]
pub(super) struct Forgotten;

impl Derived {
    /// Plans which hosts are removed when the resources of a body are applied.
    ///
    /// # Errors
    /// The resources are a part of an unknown change.
    pub(super) fn plan(&self, body: &Document, part: Option<Part>) -> Result<Plan, Forgotten> {
        let mut plan = Plan::new(self.mark(part.as_ref())?, part);
        plan.add_hosts(&body.items);
        let routes = written_routes(body);
        for (route, uses_vhds) in &routes {
            self.plan_route(&mut plan, route, *uses_vhds);
            if route.constraints.is_none() {
                self.plan_replaced_variants(&mut plan, &route.name, &routes);
            }
        }
        self.plan_last_part(&mut plan);
        Ok(plan)
    }

    /// Returns the mark of a change: that of its first request, unless this is
    /// the first.
    fn mark(&self, part: Option<&Part>) -> Result<u64, Forgotten> {
        match part {
            Some(part) if part.number > 0 => {
                let open = self.open.get(&part.name);
                open.map(|open| open.mark).ok_or(Forgotten)
            }
            _ => Ok(self.last + 1),
        }
    }

    /// Removes the hosts that a route configuration no longer lists. One that
    /// does not use VHDS any more has none.
    fn plan_route(&self, plan: &mut Plan, route: &VariantId, uses_vhds: bool) {
        let Some(hosts) = self.hosts.get(route) else {
            return;
        };
        match plan.lists_any(route) {
            // The output of `get` lists none, and can be applied as it is
            // shown.
            false if uses_vhds => plan.kept.push((route.name.clone(), hosts.len())),
            // A later part may list them: see `plan_last_part`.
            _ if uses_vhds && plan.part.is_some() => {}
            _ => plan.remove_unlisted(route, hosts.keys()),
        }
    }

    /// Removes the hosts of variants that a route configuration without
    /// constraints replaces: all that are not `written` beside it.
    fn plan_replaced_variants(
        &self,
        plan: &mut Plan,
        name: &Name,
        written: &BTreeMap<VariantId, bool>,
    ) {
        for (route, hosts) in self.variants_of(name) {
            if !written.contains_key(route) {
                plan.remove_unlisted(route, hosts.keys());
            }
        }
    }

    /// Returns the hosts of all variants of a route configuration.
    fn variants_of(&self, name: &Name) -> impl Iterator<Item = (&VariantId, &Marked)> {
        let first = VariantId {
            name: name.clone(),
            constraints: None,
        };
        let known = self.hosts.range(first..);
        known.take_while(move |(route, _)| route.name == *name)
    }

    /// Removes, with the last request of a change, the hosts that no request of
    /// it had.
    fn plan_last_part(&self, plan: &mut Plan) {
        let Some(part) = plan.part.clone().filter(|part| part.last) else {
            return;
        };
        let open = self.open.get(&part.name).filter(|_| part.number > 0);
        let mut routes = open.map(|open| open.routes.clone()).unwrap_or_default();
        routes.extend(plan.listed.keys().cloned());
        for route in routes {
            let Some(hosts) = self.hosts.get(&route) else {
                continue;
            };
            let mark = plan.mark;
            let old = hosts.iter().filter(|(_, other)| **other != mark);
            plan.remove_unlisted(&route, old.map(|(host, _)| host));
        }
    }

    /// Removes hosts whose domains other hosts take, in a change of several
    /// requests: the server refuses two hosts of one domain, and only the last
    /// request shows that the older one is no longer listed. If a later request
    /// lists it after all, it is added again.
    pub(super) fn free_domains(&self, plan: &mut Plan, body: &Document, server: &Server) {
        if plan.part.is_none() || self.hosts.is_empty() {
            return;
        }
        let mut holders: BTreeSet<(VariantId, VariantId)> = server.read(|db| {
            let Some(vhds) = db.find_type(&kind::VHDS.into()) else {
                return BTreeSet::new();
            };
            let all = body.items.iter();
            all.flat_map(|host| self.unlisted_holders((db, vhds), plan, host))
                .collect()
        });
        // Hosts that are removed at its end anyway are known.
        for lost in &plan.lost {
            holders.remove(lost);
        }
        for (route, host) in holders {
            plan.remove(&route, host);
        }
    }

    /// Returns the hosts that share a domain and a route configuration with
    /// this one, and that no request of the change has listed so far; each
    /// after the route configuration.
    fn unlisted_holders(
        &self,
        (db, vhds): (&Database, TypeId),
        plan: &Plan,
        host: &Item,
    ) -> Vec<(VariantId, VariantId)> {
        let Some(route) = VariantId::route_of(host) else {
            return Vec::new();
        };
        let Some(hosts) = self.hosts.get(&route) else {
            return Vec::new();
        };
        let is_unlisted = |holder: &VariantId| {
            let mark = hosts.get(holder);
            mark.is_some_and(|mark| *mark != plan.mark) && !plan.lists(&route, holder)
        };
        let holders = domains::holders(db, vhds, &host.resource).into_iter();
        let variants = holders.flat_map(|holder| db.variants(vhds, &holder));
        let unlisted = variants.map(|r| VariantId::of(r)).filter(is_unlisted);
        unlisted.map(|holder| (route.clone(), holder)).collect()
    }

    /// Plans which hosts are removed with deleted resources: `names` of which
    /// nothing is left, and all `variants` that are deleted.
    pub(super) fn plan_delete(
        &self,
        type_url: &TypeUrl,
        names: &[Name],
        variants: &[VariantId],
    ) -> Plan {
        let mut plan = Plan::new(0, None);
        match type_url.as_str() {
            kind::RDS => {
                for (route, hosts) in &self.hosts {
                    if names.contains(&route.name) || variants.contains(route) {
                        plan.remove_unlisted(route, hosts.keys());
                    }
                }
            }
            kind::VHDS => plan.standalone.extend(variants.iter().cloned()),
            _ => {}
        }
        plan
    }

    /// Takes over the plan of a change that was made: hosts that were removed are
    /// forgotten, and those that are listed have a new author and mark.
    pub(super) fn commit(&mut self, plan: Plan) {
        self.last = self.last.max(plan.mark);
        for (route, host) in &plan.lost {
            self.forget(route, host);
        }
        for host in &plan.standalone {
            self.disown(host, None);
        }
        if let Some(part) = plan.part {
            self.commit_part(part, plan.mark, plan.listed.keys());
        }
        for (route, listed) in plan.listed {
            if self
                .variants_of(&route.name)
                .any(|(other, _)| *other != route)
            {
                listed
                    .iter()
                    .for_each(|host| self.disown(host, Some(&route)));
            }
            let hosts = self.hosts.entry(route).or_default();
            hosts.extend(listed.into_iter().map(|host| (host, plan.mark)));
        }
    }

    /// Removes a virtual host from all variants of its route configuration, but
    /// for its author, if it has one.
    fn disown(&mut self, host: &VariantId, author: Option<&VariantId>) {
        let name = host.name.as_str().rsplit_once('/');
        let name = Name::new(name.map_or("", |(route, _)| route));
        let routes = self.variants_of(&name).map(|(route, _)| route);
        let others: Vec<VariantId> = routes
            .filter(|route| Some(*route) != author)
            .cloned()
            .collect();
        others.iter().for_each(|route| self.forget(route, host));
    }

    /// Removes a virtual host from a route configuration, and this with its
    /// last one.
    fn forget(&mut self, route: &VariantId, host: &VariantId) {
        if let Some(hosts) = self.hosts.get_mut(route) {
            hosts.remove(host);
            if hosts.is_empty() {
                self.hosts.remove(route);
            }
        }
    }

    /// Opens a change with its first part and closes it with its last.
    /// `routes` are those that list hosts in this part.
    fn commit_part<'a>(
        &mut self,
        part: Part,
        mark: u64,
        routes: impl Iterator<Item = &'a VariantId>,
    ) {
        if part.last {
            self.open.remove(&part.name);
            return;
        }
        let open = self.open.entry(part.name).or_default();
        if part.number == 0 {
            *open = OpenChange::default();
        }
        open.mark = mark;
        open.routes.extend(routes.cloned());
        if self.open.len() > MOST_OPEN {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.mark);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.and_then(|name| self.open.remove(&name));
        }
    }
}

/// Returns the route configurations that a change has, each with whether it
/// uses VHDS.
fn written_routes(body: &Document) -> BTreeMap<VariantId, bool> {
    let mut routes: BTreeMap<VariantId, bool> = BTreeMap::new();
    for one in &body.items {
        if one.type_url.as_str() == kind::RDS {
            let uses_vhds = one.resource.facts().vhds_version().is_some();
            // Its conditions may have made several variants of it.
            *routes.entry(VariantId::written(one)).or_default() |= uses_vhds;
        }
    }
    let empty = body
        .empty
        .iter()
        .filter(|(url, _)| url.as_str() == kind::RDS);
    routes.extend(empty.map(|(_, name)| {
        let route = VariantId {
            name: name.clone(),
            constraints: None,
        };
        (route, false)
    }));
    routes
}
