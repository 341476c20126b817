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

use trunkline::{Change, Name, TypeUrl, kind};
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

    /// Virtual hosts that go with what is deleted.
    pub(super) fn plan_delete(&self, type_url: &TypeUrl, names: &[Name]) -> Plan {
        let mut plan = Plan::default();
        for (route, hosts) in &self.hosts {
            match type_url.as_str() {
                kind::RDS if names.contains(&route.0) => {
                    hosts.keys().for_each(|host| plan.lose(route, host.clone()));
                }
                kind::VHDS => {
                    let known = names.iter().filter(|name| hosts.contains_key(*name));
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
