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
    /// `part` is given if the body is one request of a change of several.
    ///
    /// # Errors
    /// The resources are a part of an unknown change.
    pub(super) fn plan(&self, body: &Document, part: Option<Part>) -> Result<Plan, Forgotten> {
        let mark = self.mark_of(part.as_ref())?;
        let mut plan = Plan::new(mark, part);
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

    /// Returns the mark of a change: a new one with its first request, and then
    /// the same with every other.
    ///
    /// # Errors
    /// The first request of the change is not known any more.
    fn mark_of(&self, part: Option<&Part>) -> Result<u64, Forgotten> {
        match part {
            Some(part) if part.number > 0 => {
                let open = self.open.get(&part.name);
                open.map(|open| open.mark).ok_or(Forgotten)
            }
            _ => Ok(self.last + 1),
        }
    }

    /// Plans to remove the hosts that a route configuration no longer lists. If
    /// it lists none at all, they are kept. One that does not use VHDS any more
    /// loses all.
    fn plan_route(&self, plan: &mut Plan, route: &VariantId, uses_vhds: bool) {
        let Some(hosts) = self.hosts.get(route) else {
            return;
        };
        if !uses_vhds {
            plan.remove_unlisted(route, hosts.keys());
        } else if !plan.lists_any(route) {
            // The output of `get` lists none, and can be applied as it is
            // shown.
            plan.kept.push((route.name.clone(), hosts.len()));
        } else if plan.part.is_none() {
            plan.remove_unlisted(route, hosts.keys());
        }
        // Else a later part may list them: see `plan_last_part`.
    }

    /// Plans to remove the hosts of variants that a route configuration without
    /// constraints replaces: all variants of its `name` that are not `written`
    /// in the same body.
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

    /// Returns all variants of a route configuration that are authors, each
    /// with its hosts. The variant without constraints is the first of a name
    /// in the order of the map.
    fn variants_of(&self, name: &Name) -> impl Iterator<Item = (&VariantId, &Marked)> {
        let first = VariantId {
            name: name.clone(),
            constraints: None,
        };
        let known = self.hosts.range(first..);
        known.take_while(move |(route, _)| route.name == *name)
    }

    /// Plans to remove, with the last request of a change, the hosts that no
    /// request of it listed: those with an older mark. With any other request,
    /// this does nothing.
    fn plan_last_part(&self, plan: &mut Plan) {
        let Some(part) = plan.part.clone().filter(|part| part.last) else {
            return;
        };

        let is_first = part.number == 0;
        let open = self.open.get(&part.name).filter(|_| !is_first);
        let mut routes = open.map(|open| open.routes.clone()).unwrap_or_default();
        routes.extend(plan.listed.keys().cloned());

        for route in routes {
            let Some(hosts) = self.hosts.get(&route) else {
                continue;
            };
            let mark = plan.mark;
            let older = hosts.iter().filter(|(_, host_mark)| **host_mark != mark);
            plan.remove_unlisted(&route, older.map(|(host, _)| host));
        }
    }

    /// Plans to remove hosts whose domains hosts of the body take, in a change
    /// of several requests: the server refuses two hosts of one domain, and
    /// only the last request shows that the older one is no longer listed. If a
    /// later request lists it after all, it is added again. A change of one
    /// request needs nothing of this.
    pub(super) fn free_domains(&self, plan: &mut Plan, body: &Document, server: &Server) {
        if plan.part.is_none() || self.hosts.is_empty() {
            return;
        }
        let mut holders: BTreeSet<(VariantId, VariantId)> = server.read(|db| {
            let Some(vhds) = db.find_type(&kind::VHDS.into()) else {
                return BTreeSet::new();
            };
            let items = body.items.iter();
            items
                .flat_map(|item| self.unlisted_holders((db, vhds), plan, item))
                .collect()
        });

        // Hosts that the plan removes already are not removed twice.
        for lost in &plan.lost {
            holders.remove(lost);
        }
        for (route, host) in holders {
            plan.remove(&route, host);
        }
    }

    /// Returns the hosts that share a domain and a route configuration with
    /// `host`, and that no request of the change has listed so far; each after
    /// the route configuration. There are none if `host` is no virtual host
    /// that came with a route configuration.
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

    /// Plans which hosts are removed with deleted resources of a type: `names`
    /// of which nothing is left, and all `variants` that are deleted. A deleted
    /// route configuration takes its hosts with it; a deleted host has no
    /// author any more.
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

    /// Takes over the plan of a change that was made: hosts that were removed
    /// are forgotten, those that stand alone have no author any more, and those
    /// that are listed have a new author and mark.
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
            let is_other = |(other, _): (&VariantId, &Marked)| *other != route;
            let has_others = self.variants_of(&route.name).any(is_other);
            if has_others {
                for host in &listed {
                    self.disown(host, Some(&route));
                }
            }
            let hosts = self.hosts.entry(route).or_default();
            hosts.extend(listed.into_iter().map(|host| (host, plan.mark)));
        }
    }

    /// Removes a virtual host from all variants of its route configuration,
    /// except from its author, if it has one.
    fn disown(&mut self, host: &VariantId, author: Option<&VariantId>) {
        // A virtual host is called `<route configuration>/<host>`.
        let name = host.name.as_str().rsplit_once('/');
        let route_name = Name::new(name.map_or("", |(route, _)| route));
        let routes = self.variants_of(&route_name).map(|(route, _)| route);
        let others = routes.filter(|route| Some(*route) != author);
        let others: Vec<VariantId> = others.cloned().collect();
        for route in others {
            self.forget(&route, host);
        }
    }

    /// Removes a virtual host from those of a route configuration, and with the
    /// last one the route configuration.
    fn forget(&mut self, route: &VariantId, host: &VariantId) {
        if let Some(hosts) = self.hosts.get_mut(route) {
            hosts.remove(host);
            if hosts.is_empty() {
                self.hosts.remove(route);
            }
        }
    }

    /// Opens a change with its first part and closes it with its last; of more
    /// than [`MOST_OPEN`] open changes the oldest is dropped. `routes` are the
    /// route configurations that list hosts in this part.
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
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.open.remove(&name);
            }
        }
    }
}

/// Returns the route configurations that a body has, each with whether it uses
/// VHDS. One whose conditions hold for no client is there too, and uses none.
fn written_routes(body: &Document) -> BTreeMap<VariantId, bool> {
    let mut routes: BTreeMap<VariantId, bool> = BTreeMap::new();
    for item in &body.items {
        if item.type_url.as_str() == kind::RDS {
            let uses_vhds = item.resource.facts().vhds_version().is_some();
            // Its conditions may have made several variants of it.
            *routes.entry(VariantId::as_written(item)).or_default() |= uses_vhds;
        }
    }

    let empty = body.empty.iter();
    for (_, name) in empty.filter(|(url, _)| url.as_str() == kind::RDS) {
        let route = VariantId {
            name: name.clone(),
            constraints: None,
        };
        routes.insert(route, false);
    }
    routes
}
