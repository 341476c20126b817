//! Which virtual hosts came with a route configuration, so that they go with it.
//!
//! A route configuration that has `vhds` and is applied with virtual hosts in
//! it is their author: applied again, those that it no longer lists are gone;
//! deleted, all of them. A virtual host that was applied on its own belongs to
//! nobody. Whoever applied a name last is its author.
//!
//! Each is marked with the change that last brought it, so that many requests
//! can make one change ([`Part`]): what they did not bring is found at the end
//! by its mark.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use trunkline::{Change, Name, Server, TypeUrl, kind};
use trunkline_core::hosts::HostName;
use trunkline_core::params::Constraints;

use super::given::Given;

/// Changes of many requests that are remembered; the oldest is forgotten.
const MOST_OPEN: usize = 16;

/// A route configuration, and which variant of it.
type Route = (Name, Option<Constraints>);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    hosts: BTreeMap<Route, HashMap<Name, u64>>,
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

/// One request of a change.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// What the change is called by the client.
    pub(super) name: String,
    /// Its number, from zero.
    pub(super) number: u64,
    /// Whether it is the last request of it.
    pub(super) last: bool,
}

/// A request of a change whose first request is not known any more.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing is known of the first parts of this change; it was given up, or the server was \
     started again: apply all of it again"
)]
pub(super) struct Forgotten;

/// What a change means for virtual hosts; to be kept if it is made.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Those that are gone.
    pub(super) removed: Vec<Change>,
    /// Those that stay although they are not listed, of which route.
    pub(super) kept: Vec<(Name, usize)>,
    mark: u64,
    part: Option<Part>,
    /// By route: those that it lists.
    listed: BTreeMap<Route, HashSet<Name>>,
    /// By route: those that it no longer has.
    lost: Vec<(Route, Name)>,
    /// Those that were applied on their own.
    own: Vec<(Name, Option<Constraints>)>,
}

impl Derived {
    /// What has to go when these are applied.
    ///
    /// # Errors
    /// If they are a part of something that is not known.
    pub(super) fn plan(&self, given: &[Given], part: Option<Part>) -> Result<Plan, Forgotten> {
        let mark = match &part {
            Some(part) if part.number > 0 => self.open.get(&part.name).ok_or(Forgotten)?.mark,
            _ => self.last + 1,
        };
        let mut plan = Plan {
            mark,
            part,
            ..Plan::default()
        };
        for one in given {
            let resource = &one.resource;
            let constraints = resource.constraints.clone();
            match (one.type_url.as_str(), one.route) {
                (kind::VHDS, Some(route)) => {
                    let name = given[route].resource.name.clone();
                    let listed = plan.listed.entry((name, constraints)).or_default();
                    listed.insert(resource.name.clone());
                }
                (kind::VHDS, None) => plan.own.push((resource.name.clone(), constraints)),
                _ => {}
            }
        }
        let routes = given
            .iter()
            .filter(|one| one.type_url.as_str() == kind::RDS);
        for one in routes {
            let leaves_them = one.resource.facts().vhds.is_some();
            let key = (one.resource.name.clone(), one.resource.constraints.clone());
            self.plan_route(&mut plan, key, leaves_them);
        }
        self.plan_end(&mut plan);
        Ok(plan)
    }

    fn plan_route(&self, plan: &mut Plan, route: Route, leaves_them: bool) {
        let Some(hosts) = self.hosts.get(&route) else {
            return;
        };
        let listed = plan.listed.get(&route);
        match listed {
            // What `get` shows has none: it is to be applied as it is shown.
            None if leaves_them => plan.kept.push((route.0, hosts.len())),
            _ if leaves_them && plan.part.is_some() => {}
            _ => {
                let gone = |host: &&Name| !listed.is_some_and(|listed| listed.contains(*host));
                let gone: Vec<Name> = hosts.keys().filter(gone).cloned().collect();
                gone.into_iter().for_each(|host| plan.lose(&route, host));
            }
        }
    }

    /// At the end of a change, what none of its requests brought is gone.
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
            let listed = plan.listed.get(&route);
            let old = hosts.iter().filter(|(host, mark)| {
                **mark != plan.mark && !listed.is_some_and(|listed| listed.contains(*host))
            });
            let old: Vec<Name> = old.map(|(host, _)| host.clone()).collect();
            old.into_iter().for_each(|host| plan.lose(&route, host));
        }
    }

    /// In a change that takes several requests, a virtual host whose domain is
    /// given to another goes now, if it is one that may not be listed any more.
    /// If it is, it comes again.
    pub(super) fn give_way(&self, plan: &mut Plan, given: &[Given], server: &Server) {
        if plan.part.is_none() || self.hosts.is_empty() {
            return;
        }
        let mut gone = BTreeSet::new();
        server.read(|db| {
            let Some(vhds) = db.find_type(&kind::VHDS.into()) else {
                return;
            };
            for one in given.iter().filter(|one| one.route.is_some()) {
                let Some(name) = HostName::split(one.resource.name.as_str()) else {
                    continue;
                };
                let route = (Name::new(name.route), one.resource.constraints.clone());
                let Some(hosts) = self.hosts.get(&route) else {
                    continue;
                };
                let listed = plan.listed.get(&route);
                let is_old = |host: &Name| {
                    hosts.get(host).is_some_and(|mark| *mark != plan.mark)
                        && !listed.is_some_and(|listed| listed.contains(host))
                };
                for domain in one.resource.facts().domains.iter() {
                    let holders = db.hosts_with(vhds, name.route, domain);
                    let old = holders.into_iter().filter(is_old);
                    gone.extend(old.map(|host| (route.clone(), host)));
                }
            }
        });
        // What is gone anyway at the end of it is known.
        for (route, host) in &plan.lost {
            gone.remove(&(route.clone(), host.clone()));
        }
        for (route, host) in gone {
            plan.lose(&route, host);
        }
    }

    /// Virtual hosts that go with what is deleted.
    pub(super) fn plan_delete(
        &self,
        type_url: &TypeUrl,
        names: &[Name],
        variants: &[(Name, Option<Constraints>)],
    ) -> Plan {
        let mut plan = Plan::default();
        for (route, hosts) in &self.hosts {
            match type_url.as_str() {
                kind::RDS if names.contains(&route.0) || variants.contains(route) => {
                    hosts.keys().for_each(|host| plan.lose(route, host.clone()));
                }
                kind::VHDS => {
                    let parts = variants.iter().filter(|(_, variant)| *variant == route.1);
                    let names = names.iter().chain(parts.map(|(name, _)| name));
                    let known = names.filter(|name| hosts.contains_key(*name));
                    plan.own
                        .extend(known.map(|name| (name.clone(), route.1.clone())));
                }
                _ => {}
            }
        }
        plan
    }

    /// The change was made.
    pub(super) fn keep(&mut self, plan: Plan) {
        self.last = self.last.max(plan.mark);
        for (route, host) in &plan.lost {
            self.forget(route, host);
        }
        for (host, constraints) in plan.own {
            let route = host
                .as_str()
                .rsplit_once('/')
                .map_or("", |(route, _)| route);
            self.forget(&(Name::new(route), constraints), &host);
        }
        if let Some(part) = plan.part {
            self.note(part, plan.mark, plan.listed.keys());
        }
        for (route, listed) in plan.listed {
            let hosts = self.hosts.entry(route).or_default();
            hosts.extend(listed.into_iter().map(|host| (host, plan.mark)));
        }
    }

    fn forget(&mut self, route: &Route, host: &Name) {
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

impl Plan {
    fn lose(&mut self, route: &Route, host: Name) {
        let vhds = TypeUrl::from(kind::VHDS);
        let change = Change::RemoveVariant(vhds, host.clone(), route.1.clone());
        self.removed.push(change);
        self.lost.push((route.clone(), host));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::given::{Form, Read};
    use trunkline_proto::text::Format;

    fn given(hosts: &str) -> Vec<Given> {
        let text = format!(
            "{{\"@type\": {}, name: r, vhds: {{config_source: {{ads: {{}}}}}}, \
             virtual_hosts: [{hosts}]}}",
            kind::RDS
        );
        let read = Read::new(text.into(), Form::Text(Format::Yaml));
        assert_eq!(read.errors, []);
        read.given
    }

    fn hosts(names: &[&str]) -> Vec<Given> {
        let one = |name: &&str| format!("{{name: {name}, domains: [{name}]}}");
        given(&names.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    fn part(name: &str, number: u64, last: bool) -> Option<Part> {
        let name = name.to_owned();
        Some(Part { name, number, last })
    }

    /// Makes a change; what it takes away.
    fn made(derived: &mut Derived, given: &[Given], part: Option<Part>) -> Vec<String> {
        let plan = derived.plan(given, part).unwrap();
        let gone = plan.removed.iter().map(|change| match change {
            Change::RemoveVariant(_, name, None) => name.to_string(),
            other => panic!("{other:?}"),
        });
        let mut gone: Vec<String> = gone.collect();
        gone.sort();
        derived.keep(plan);
        gone
    }

    #[test]
    fn what_no_part_listed_is_gone_with_the_last() {
        let mut derived = Derived::default();
        made(&mut derived, &hosts(&["a", "b", "c", "d"]), None);
        let none = [""; 0];
        assert_eq!(
            made(&mut derived, &hosts(&["b"]), part("x", 0, false)),
            none
        );
        assert_eq!(
            made(&mut derived, &hosts(&["e"]), part("x", 1, false)),
            none
        );
        let gone = made(&mut derived, &hosts(&["d"]), part("x", 2, true));
        assert_eq!(gone, ["r/a", "r/c"]);
        assert_eq!(
            made(&mut derived, &hosts(&["a"]), None),
            ["r/b", "r/d", "r/e"]
        );
        // A change of one part.
        assert_eq!(
            made(&mut derived, &hosts(&["b"]), part("y", 0, true)),
            ["r/a"]
        );
    }

    #[test]
    fn a_part_of_what_is_not_known_is_refused() {
        let mut derived = Derived::default();
        made(&mut derived, &hosts(&["a"]), None);
        let plan = derived.plan(&hosts(&["b"]), part("x", 1, true));
        assert_eq!(plan.unwrap_err(), Forgotten);
        for n in 0..=MOST_OPEN {
            made(&mut derived, &hosts(&["b"]), part(&n.to_string(), 0, false));
        }
        let plan = derived.plan(&hosts(&["b"]), part("0", 1, true));
        assert_eq!(plan.unwrap_err(), Forgotten);
        assert!(derived.plan(&hosts(&["b"]), part("1", 1, true)).is_ok());
        assert_eq!(derived.open.len(), MOST_OPEN);
    }

    #[test]
    fn a_change_that_is_not_made_is_not_kept() {
        let mut derived = Derived::default();
        made(&mut derived, &hosts(&["a"]), None);
        let plan = derived.plan(&hosts(&["b"]), None).unwrap();
        assert_eq!(plan.removed.len(), 1);
        assert_eq!(made(&mut derived, &hosts(&["c"]), None), ["r/a"]);
    }
}
