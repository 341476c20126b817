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

use trunkline::{Name, Server, TypeUrl, kind};
use trunkline_core::hosts::HostName;
use trunkline_core::params::Constraints;

pub(super) use self::plan::{Part, Plan};
use super::body::{Author as Route, BodyResource};

/// Open changes that are remembered; the oldest is dropped.
const MOST_OPEN: usize = 16;

/// A variant of a name.
pub(super) type Variant = (Name, Option<Constraints>);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    hosts: BTreeMap<Route, HashMap<Variant, u64>>,
    /// By the name that a client gave each.
    open: HashMap<String, Open>,
    last: u64,
}

/// A change that is made by several requests.
#[derive(Clone, Debug, Default)]
struct Open {
    mark: u64,
    routes: BTreeSet<Route>,
}

/// A request of a change whose first request is not known any more.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing is known of the first parts of this change; it was given up, or the server was \
     started again: apply all of it again"
)]
pub(super) struct Forgotten;

impl Derived {
    /// The hosts to remove when these resources are applied. Of the route
    /// configurations `empty` no variant is left.
    ///
    /// # Errors
    /// If they are a part of an unknown change.
    pub(super) fn plan(
        &self,
        given: &[BodyResource],
        empty: &[(TypeUrl, Name)],
        part: Option<Part>,
    ) -> Result<Plan, Forgotten> {
        let mark = match &part {
            Some(part) if part.number > 0 => self.open.get(&part.name).ok_or(Forgotten)?.mark,
            _ => self.last + 1,
        };
        let mut plan = Plan::new(mark, part);
        // By route, whether it uses VHDS.
        let mut routes: BTreeMap<Route, bool> = BTreeMap::new();
        for one in given {
            let resource = &one.resource;
            match (one.type_url.as_str(), &one.route) {
                (kind::VHDS, Some(route)) => plan.list(route, variant(one)),
                (kind::VHDS, None) => plan.own.push(variant(one)),
                (kind::RDS, _) => {
                    let route = (resource.name.clone(), one.written.clone());
                    *routes.entry(route).or_default() |= resource.facts().vhds_version().is_some();
                }
                _ => {}
            }
        }
        let empty = empty.iter().filter(|(url, _)| url.as_str() == kind::RDS);
        routes.extend(empty.map(|(_, name)| ((name.clone(), None), false)));
        for (route, leaves_them) in &routes {
            self.plan_route(&mut plan, route, *leaves_them);
            if route.1.is_none() {
                self.plan_whole(&mut plan, &route.0, &routes);
            }
        }
        self.plan_end(&mut plan);
        Ok(plan)
    }

    fn plan_route(&self, plan: &mut Plan, route: &Route, leaves_them: bool) {
        let Some(hosts) = self.hosts.get(route) else {
            return;
        };
        match plan.lists(route) {
            // The output of `get` lists none, and can be applied as it is
            // shown.
            false if leaves_them => plan.kept.push((route.0.clone(), hosts.len())),
            _ if leaves_them && plan.part.is_some() => {}
            _ => plan.lose_unlisted(route, hosts.keys()),
        }
    }

    /// A route configuration without constraints replaces all its variants, so
    /// the hosts of those are removed.
    fn plan_whole(&self, plan: &mut Plan, name: &Name, given: &BTreeMap<Route, bool>) {
        for (route, hosts) in self.of(name) {
            if !given.contains_key(route) {
                plan.lose_unlisted(route, hosts.keys());
            }
        }
    }

    /// The hosts of all variants of a route configuration.
    fn of(&self, name: &Name) -> impl Iterator<Item = (&Route, &HashMap<Variant, u64>)> {
        let known = self.hosts.range((name.clone(), None)..);
        known.take_while(move |(route, _)| route.0 == *name)
    }

    /// At the end of a change, removes the hosts that none of its requests had.
    fn plan_end(&self, plan: &mut Plan) {
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
            plan.lose_unlisted(&route, old.map(|(host, _)| host));
        }
    }

    /// In a change of several requests, a virtual host whose domain another one
    /// takes is removed now, if a later request may not list it any more. If
    /// one does, it is added again.
    pub(super) fn give_way(&self, plan: &mut Plan, given: &[BodyResource], server: &Server) {
        if plan.part.is_none() || self.hosts.is_empty() {
            return;
        }
        let mut gone = BTreeSet::new();
        server.read(|db| {
            let Some(vhds) = db.find_type(&kind::VHDS.into()) else {
                return;
            };
            for one in given {
                let name = HostName::split(one.resource.name.as_str());
                let (Some(route), Some(name)) = (&one.route, name) else {
                    continue;
                };
                let Some(hosts) = self.hosts.get(route) else {
                    continue;
                };
                let is_old = |host: &Variant| {
                    hosts.get(host).is_some_and(|mark| *mark != plan.mark) && !plan.has(route, host)
                };
                for domain in one.resource.facts().domains.iter() {
                    for holder in db.hosts_with_domain(vhds, name.route, domain) {
                        let variants = db.variants(vhds, &holder).iter();
                        let variants = variants.map(|r| (holder.clone(), r.constraints.clone()));
                        let old = variants.filter(is_old);
                        gone.extend(old.map(|host| (route.clone(), host)));
                    }
                }
            }
        });
        // Hosts that are removed at its end anyway are known.
        for lost in &plan.lost {
            gone.remove(lost);
        }
        for (route, host) in gone {
            plan.lose(&route, host);
        }
    }

    /// Virtual hosts that are removed with deleted route configurations: names
    /// as a whole, and these variants in all.
    pub(super) fn plan_delete(
        &self,
        type_url: &TypeUrl,
        names: &[Name],
        variants: &[Variant],
    ) -> Plan {
        let mut plan = Plan::new(0, None);
        match type_url.as_str() {
            kind::RDS => {
                for (route, hosts) in &self.hosts {
                    if names.contains(&route.0) || variants.contains(route) {
                        plan.lose_unlisted(route, hosts.keys());
                    }
                }
            }
            kind::VHDS => plan.own.extend(variants.iter().cloned()),
            _ => {}
        }
        plan
    }

    /// Takes note of a change that was made.
    pub(super) fn keep(&mut self, plan: Plan) {
        self.last = self.last.max(plan.mark);
        for (route, host) in &plan.lost {
            self.forget(route, host);
        }
        for host in &plan.own {
            self.disown(host, None);
        }
        if let Some(part) = plan.part {
            self.note(part, plan.mark, plan.listed.keys());
        }
        for (route, listed) in plan.listed {
            if self.of(&route.0).any(|(other, _)| *other != route) {
                listed
                    .iter()
                    .for_each(|host| self.disown(host, Some(&route)));
            }
            let hosts = self.hosts.entry(route).or_default();
            hosts.extend(listed.into_iter().map(|host| (host, plan.mark)));
        }
    }

    /// Removes a virtual host from all route configurations but this one.
    fn disown(&mut self, host: &Variant, but: Option<&Route>) {
        let route = host.0.as_str().rsplit_once('/');
        let route = Name::new(route.map_or("", |(route, _)| route));
        let of = self.of(&route).map(|(route, _)| route);
        let of: Vec<Route> = of.filter(|of| Some(*of) != but).cloned().collect();
        of.iter().for_each(|route| self.forget(route, host));
    }

    fn forget(&mut self, route: &Route, host: &Variant) {
        if let Some(hosts) = self.hosts.get_mut(route) {
            hosts.remove(host);
            if hosts.is_empty() {
                self.hosts.remove(route);
            }
        }
    }

    fn note<'a>(&mut self, part: Part, mark: u64, routes: impl Iterator<Item = &'a Route>) {
        if part.last {
            self.open.remove(&part.name);
            return;
        }
        let open = self.open.entry(part.name).or_default();
        if part.number == 0 {
            *open = Open::default();
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

fn variant(given: &BodyResource) -> Variant {
    let resource = &given.resource;
    (resource.name.clone(), resource.constraints.clone())
}
